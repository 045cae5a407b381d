use super::*;
use crate::sparse::Coo;

#[test]
fn unsorted_entries_convert_to_every_format() {
    // . 5 .
    // 1 2,3 .    with a duplicate
    let coo = Coo {
        rows: 2,
        cols: 3,
        row_idxs: vec![1, 1, 0, 1],
        col_idxs: vec![1, 0, 1, 1],
        values: vec![2.0, 1.0, 5.0, 3.0],
    };
    let to = |target| spconvert(&HostMatrix::Coo(coo.clone()), target).unwrap();
    let HostMatrix::Csr(csr) = to(Target::Csr) else { panic!("no csr") };
    assert_eq!((csr.row_ptrs.as_slice(), csr.col_idxs.as_slice()), (&[0, 1, 4][..], &[1, 0, 1, 1][..]));
    assert_eq!(csr.values, [5.0, 1.0, 2.0, 3.0]);
    let HostMatrix::Csc(csc) = to(Target::Csc) else { panic!("no csc") };
    assert_eq!((csc.col_ptrs, csc.row_idxs), (vec![0, 1, 4, 4], vec![1, 0, 1, 1]));
    assert_eq!(csc.values, [1.0, 5.0, 2.0, 3.0]);
    let HostMatrix::Hybrid(hybrid) = to(Target::Hybrid { width: Some(1) }) else { panic!("no hybrid") };
    assert_eq!((hybrid.ell.values, hybrid.coo.values), (vec![5.0, 1.0], vec![2.0, 3.0]));
    let HostMatrix::Jds(jds) = to(Target::Jds) else { panic!("no jds") };
    assert_eq!((jds.row_order, jds.values), (vec![1, 0], vec![1.0, 5.0, 2.0, 3.0]));
    for target in [
        Target::Coo,
        Target::Csc,
        Target::Ell,
        Target::Hybrid { width: None },
        Target::Jds,
        Target::Sell { slice: 2, window: 2 },
    ] {
        assert_eq!(to(target).to_csr().unwrap(), csr);
    }
}
