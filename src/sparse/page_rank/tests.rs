use super::*;

#[test]
fn transitions_match_a_hand_calculation() {
    // 0 links to 1 (weight 1) and 2 (weight 3), 1 to nothing, 2 to 0 (weight 5).
    let (row_ptrs, col_idxs, values) = (vec![0, 2, 2, 3], vec![1, 2, 0], vec![1.0, 3.0, 5.0]);
    let links = Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values };
    let t = links.transitions().unwrap();
    assert_eq!((t.row_ptrs.as_slice(), t.col_idxs.as_slice()), (&[0, 1, 2, 3][..], &[2, 0, 0][..]));
    assert_eq!(t.values, [1.0, 0.25, 0.75]);
    assert!(Csr { values: vec![1.0, -1.0, 1.0], ..links.clone() }.transitions().is_err());
    assert!(Csr { cols: 4, ..links }.transitions().is_err());
}
