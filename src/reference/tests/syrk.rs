use super::*;

#[test]
fn triangles_by_hand() {
    let a = [1.0, 2.0, 3.0, 4.0];
    let c = [9.0; 4];
    assert_eq!(syrk(&Syrk::new(2, 2), &a, &c).unwrap(), [5.0, 9.0, 11.0, 25.0]);
    let op = Syrk::new(2, 2).upper().trans().alpha(2.0).beta(1.0);
    assert_eq!(syrk(&op, &a, &c).unwrap(), [29.0, 37.0, 9.0, 49.0]);
    assert_eq!(syrk_bound(&op, &a, &c).unwrap()[2], 0.0);
}
