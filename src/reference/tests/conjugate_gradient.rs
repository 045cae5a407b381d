use super::*;

#[test]
fn two_equations_take_two_steps() {
    let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0]);
    let a = Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values };
    for jacobi in [false, true] {
        let (x, history) = conjugate_gradient(&a, &[1.0, 2.0], &[2.0, 1.0], jacobi, 1e-12, 9).unwrap();
        assert!((x[0] - 1.0 / 11.0).abs() < 1e-12 && (x[1] - 7.0 / 11.0).abs() < 1e-12, "{x:?}");
        assert_eq!(history.len(), 3);
    }
    // The residual of (2, 1) is (-8, -3).
    let (_, history) = conjugate_gradient(&a, &[1.0, 2.0], &[2.0, 1.0], false, 1e-12, 0).unwrap();
    assert!((history[0] - (73.0f64 / 5.0).sqrt()).abs() < 1e-12);
    assert!(conjugate_gradient(&a, &[1.0], &[2.0, 1.0], false, 1e-12, 9).is_err());
}
