use super::*;

/// (1 0 2; 0 0 0; 0 3 0)
fn matrix() -> Csr {
    let (row_ptrs, col_idxs, values) = (vec![0, 2, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values }
}

#[test]
fn product_of_3x3_is_known() {
    let (a, x) = (matrix(), [1.0, 10.0, 100.0]);
    assert_eq!(spmv(1.0, &a, &x, 0.0, &[f32::NAN; 3]).unwrap(), [201.0, 0.0, 30.0]);
    assert_eq!(spmv(2.0, &a, &x, -1.0, &[1.0, 2.0, 3.0]).unwrap(), [401.0, -2.0, 57.0]);
    assert_eq!(spmv(0.0, &a, &[f32::NAN; 3], 1.0, &[1.0, 2.0, 3.0]).unwrap(), [1.0, 2.0, 3.0]);
    assert!(spmv(1.0, &a, &x[..2], 0.0, &[0.0; 3]).is_err());
}

#[test]
fn bound_grows_with_a_row_and_covers_rounding() {
    let bound = spmv_bound(1.0, &matrix(), &[0.1, 0.2, 0.3], 0.0, &[0.0; 3]).unwrap();
    let got = 0.1f32 + 2.0 * 0.3f32;
    let exact = f64::from(0.1f32) + 2.0 * f64::from(0.3f32);
    assert!((f64::from(got) - exact).abs() <= bound[0] && bound[0] < 1e-6 && bound[1] < 1e-30, "{bound:?}");
}
