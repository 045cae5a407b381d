use super::*;

#[test]
fn products_by_hand() {
    let op = GemmGrouped::new([[1, 1, 2], [2, 2, 1]]);
    let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    let begins = op.packed().unwrap().0;
    let of = |begins: &[[usize; 3]]| gemm_grouped(&op, begins, &a, &b, &[9.0; 5]).unwrap();
    assert_eq!(of(&begins), [17.0, 21.0, 24.0, 28.0, 32.0]);
    assert_eq!(of(&[[2, 2, 4], [4, 0, 0]]), [9.0, 9.0, 9.0, 9.0, 53.0]);
}
