use super::*;

#[test]
fn product_of_2x3_and_3x2_is_known() {
    // (1 0 2; 0 3 0)
    let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    let a = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
    let b = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0];
    assert_eq!(spmm(1.0, &a, &b, 2, 0.0, &[f32::NAN; 4]).unwrap(), [201.0, 402.0, 30.0, 60.0]);
    assert_eq!(spmm(2.0, &a, &b, 2, -1.0, &[1.0; 4]).unwrap(), [401.0, 803.0, 59.0, 119.0]);
    assert!(spmm(1.0, &a, &b[..5], 2, 0.0, &[0.0; 4]).is_err());
    let bound = spmm_bound(1.0, &a, &b, 2, 0.0, &[0.0; 4]).unwrap();
    assert!(bound[1] == 2.0 * bound[0] || (bound[1] / bound[0] - 2.0).abs() < 1e-6, "{bound:?}");
}
