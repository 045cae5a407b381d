use super::*;

#[test]
fn triangles_by_hand() {
    let (x, n) = ([1.0, 10.0], f32::NAN);
    assert_eq!(trmv(&Trmv::new(2), &[2.0, n, 3.0, 4.0], &x).unwrap(), [2.0, 43.0]);
    assert_eq!(trmv(&Trmv::new(2).trans().unit(), &[n, n, 3.0, n], &x).unwrap(), [31.0, 10.0]);
    assert_eq!(trmv(&Trmv::new(2).upper().packed(), &[2.0, 3.0, 4.0], &x).unwrap(), [32.0, 40.0]);
}
