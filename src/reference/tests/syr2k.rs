use super::*;

#[test]
fn triangles_by_hand() {
    let (a, b, c) = ([1.0, 2.0], [3.0, 4.0], [9.0; 4]);
    assert_eq!(syr2k(&Syr2k::new(2, 1), &a, &b, &c).unwrap(), [6.0, 9.0, 10.0, 16.0]);
    let op = Syr2k::new(2, 1).upper().trans().alpha(2.0).beta(1.0);
    assert_eq!(syr2k(&op, &a, &b, &c).unwrap(), [21.0, 29.0, 9.0, 41.0]);
    // Two rows of one: x y^T + y x^T with sums of two products each.
    let op = Syr2k::new(1, 2).full();
    assert_eq!(syr2k(&op, &a, &b, &c[..1]).unwrap(), [22.0]);
    assert_eq!(syr2k_bound(&Syr2k::new(2, 1), &a, &b, &c).unwrap()[1], 0.0);
}
