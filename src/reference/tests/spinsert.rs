use super::*;

#[test]
fn entries_take_the_first_free_slot_or_none() {
    let (col_idxs, values) = (vec![1, PADDING, PADDING, PADDING], vec![5.0, 0.0, 0.0, 0.0]);
    let ell = HostMatrix::Ell(Ell { rows: 2, cols: 3, width: 2, col_idxs, values });
    let new = |rows: &[u32]| Coo {
        rows: 2,
        cols: 3,
        row_idxs: rows.to_vec(),
        col_idxs: vec![2; rows.len()],
        values: vec![7.0; rows.len()],
    };
    let (HostMatrix::Ell(got), 0) = spinsert(&ell, &new(&[0, 1])).unwrap() else { panic!() };
    assert_eq!((got.col_idxs, got.values), (vec![1, 2, 2, PADDING], vec![5.0, 7.0, 7.0, 0.0]));
    assert_eq!(spinsert(&ell, &new(&[0, 0, 1])).unwrap(), (ell.clone(), 1));
    assert!(spinsert(&ell, &new(&[2])).is_err());
    let coo = HostMatrix::Coo(new(&[1]));
    let (HostMatrix::Coo(got), 0) = spinsert(&coo, &new(&[0])).unwrap() else { panic!() };
    assert_eq!(got.row_idxs, [1, 0]);
}
