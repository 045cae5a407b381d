use super::*;

#[test]
fn products_by_hand() {
    // (1 + 2i, i) (3; 1 - i)
    let (a, b) = ([1.0, 2.0, 0.0, 1.0], [3.0, 0.0, 1.0, -1.0]);
    let op = Cgemm::new(1, 1, 2);
    assert_eq!(cgemm(&op, &a, &b, &[]), [4.0, 7.0]);
    assert_eq!(cgemm(&op.clone().conjugated_a(), &a, &b, &[]), [2.0, -7.0]);
    assert_eq!(cgemm(&op.clone().alpha([0.0, 1.0]).beta([0.0, 2.0]), &a, &b, &[1.0, 1.0]), [-9.0, 6.0]);
    assert_eq!(cgemm(&op.alpha([0.0; 2]), &[f32::NAN; 4], &b, &[]), [0.0, 0.0]);
    let outer = cgemm(&Cgemm::new(2, 1, 1).trans_a(), &a, &[0.0, 1.0], &[]);
    assert_eq!(outer, [-2.0, 1.0, -1.0, 0.0]);
}
