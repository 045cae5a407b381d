use super::*;

#[test]
fn triangles_by_hand() {
    let (x, y) = ([1.0, 2.0], [3.0, 4.0]);
    assert_eq!(syr2(&Syr2::new(2), &x, &y, &[0.0, 7.0, 0.0, 0.0]), [6.0, 7.0, 10.0, 16.0]);
    assert_eq!(syr2(&Syr2::new(2).upper().packed(), &x, &y, &[1.0; 3]), [7.0, 11.0, 17.0]);
}
