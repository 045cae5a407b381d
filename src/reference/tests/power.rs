use super::*;

#[test]
fn largest_eigenvalue_of_2x2_is_found() {
    let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]);
    let a = Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values };
    let (value, x) = power_iteration(&a, &[1.0, 0.0], 60).unwrap();
    assert!((value - 3.0).abs() < 1e-12 && (x[0] - 0.5f64.sqrt()).abs() < 1e-12, "{value} {x:?}");
    assert!(power_iteration(&a, &[1.0], 1).is_err());
}

#[test]
fn ranks_of_three_nodes_are_known() {
    // 0 and 1 link to 2, which is dangling: x2 = c + d (x0 + x1), x0 = x1 = c, with c = (1 - d) / 3 + d x2 / 3.
    let (row_ptrs, col_idxs, values) = (vec![0, 0, 0, 2], vec![0, 1], vec![1.0, 1.0]);
    let t = Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values };
    let x = page_rank(&t, 0.5, None, 100).unwrap();
    assert!((x[0] - 0.25).abs() < 1e-12 && (x[2] - 0.5).abs() < 1e-12, "{x:?}");
    // All walks start at node 1, so node 0 is never reached.
    let x = page_rank(&t, 0.5, Some(&[0.0, 1.0, 0.0]), 100).unwrap();
    assert!(x[0] == 0.0 && (x[1] - 2.0 / 3.0).abs() < 1e-12, "{x:?}");
    assert!(page_rank(&t, 0.5, Some(&[1.0]), 1).is_err());
}
