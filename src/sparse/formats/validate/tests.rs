use super::super::tests::matrix;
use super::*;
use crate::error::ErrorKind;

#[test]
fn errors_name_the_list_and_the_element() {
    let refused = |result: Result<()>, text: &str| {
        let e = result.unwrap_err();
        assert!(e.kind() == ErrorKind::Shape && e.to_string().contains(text), "{e}");
    };
    let csr = matrix();
    refused(
        Csr { row_ptrs: vec![0, 2, 1, 7, 8], ..csr.clone() }.validate(),
        "`row_ptrs`[2] is 1; it must be at least 2",
    );
    refused(Csr { row_ptrs: vec![1, 2, 2, 7, 8], ..csr.clone() }.validate(), "`row_ptrs`[0] is 1; the first must be 0");
    refused(Jds { diagonal_ptrs: vec![], ..csr.to_jds().unwrap() }.validate(), "`diagonal_ptrs` is empty");
    refused(Sell { slice_ptrs: vec![], ..csr.to_sell(2, 4).unwrap() }.validate(), "slice_ptrs");
    refused(Csr { row_ptrs: vec![0, 2, 2, 7, 9], ..csr.clone() }.validate(), "number of entries, 8");
    refused(Csr { row_ptrs: vec![0, 8], ..csr.clone() }.validate(), "has 2 elements; the other lists require 5");
    refused(Csr { cols: 4, ..csr.clone() }.validate(), "`col_idxs`[6] is 4; it must be below 4");
    refused(Csr { values: vec![], ..csr.clone() }.validate(), "`col_idxs` has 8 elements");
    refused(Coo { rows: 2, ..csr.to_coo().unwrap() }.validate(), "`row_idxs`[2] is 2");
    refused(Csc { rows: 3, ..csr.to_csc().unwrap() }.validate(), "`row_idxs`[4] is 3");
    let mut ell = csr.to_ell().unwrap();
    ell.col_idxs[5] = 0;
    refused(ell.validate(), "after padding of row 1");
    let mut jds = csr.to_jds().unwrap();
    jds.row_order[1] = 2;
    refused(jds.validate(), "`row_order`[1] is 2");
    let jds = Jds { diagonal_ptrs: vec![0, 1, 5, 6, 7, 8], ..csr.to_jds().unwrap() };
    refused(jds.validate(), "diagonal 1 has 4 entries; only 1 rows");
    let sell = Sell { slice_ptrs: vec![0, 9, 12], ..csr.to_sell(2, 4).unwrap() };
    refused(sell.validate(), "must be a multiple of 2");
    let mut sell = csr.to_sell(2, 4).unwrap();
    sell.col_idxs[7] = 0;
    refused(sell.validate(), "`col_idxs`[7] is an entry after padding");
    let mut hybrid = csr.to_hybrid(2).unwrap();
    hybrid.coo.cols = 6;
    refused(hybrid.validate(), "4 x 6");
    assert_eq!(csr.to_sell(0, 4).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let wide = csr.to_hybrid(usize::MAX).unwrap_err();
    assert!(wide.kind() == ErrorKind::TooLarge && wide.to_string().contains("2^32 - 1 slots"), "{wide}");
}
