use super::*;

/// Row r has the columns that `row` returns.
fn matrix(rows: usize, cols: usize, row: impl Fn(usize) -> Vec<u32>) -> Csr {
    let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for r in 0..rows {
        csr.col_idxs.extend(row(r));
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = vec![1.0; csr.col_idxs.len()];
    csr
}

#[test]
fn statistics_match_a_hand_count() {
    let statistics = matrix(4, 5, |r| [vec![1, 3], vec![], vec![0, 1, 2, 3, 4], vec![2]][r].clone()).analyse();
    assert_eq!((statistics.rows, statistics.cols, statistics.entries, statistics.longest), (4, 5, 8, 5));
    assert_eq!((statistics.mean, statistics.variance), (2.0, 3.5));
    assert_eq!((statistics.empty_rows, statistics.bandwidth, statistics.triangular), (1, 3, false));
    assert_eq!((statistics.hybrid_width, statistics.hybrid_list), (5, 0));
    assert_eq!(matrix(0, 0, |_| vec![]).analyse(), Statistics::default());
}

#[test]
fn row_lengths_determine_the_format() {
    let format = |csr: Csr| csr.analyse().textbook_format().0;
    let all = |n: usize| (0..n as u32).collect::<Vec<_>>();
    assert_eq!(format(matrix(50, 50, |_| vec![1, 2, 3])), "ell");
    assert_eq!(format(matrix(50, 50, |r| (r.saturating_sub(1)..(r + 2).min(50)).map(|c| c as u32).collect())), "ell");
    assert_eq!(format(matrix(50, 50, |r| if r % 4 == 0 { vec![1] } else { vec![] })), "coo");
    assert_eq!(format(matrix(50, 50, |r| all(r + 1))), "jds");
    assert_eq!(format(matrix(50, 50, |r| (r as u32..50).collect())), "jds");
    assert_eq!(format(matrix(500, 500, |r| if r == 7 { all(500) } else { vec![0, 3, r as u32] })), "hybrid");
    // All lengths, on both sides of the diagonal.
    let last = |len: usize| (500 - len as u32..500).collect();
    assert_eq!(format(matrix(500, 500, |r| last(r % 100))), "csr");
    assert_eq!(format(matrix(5, 5, |_| vec![])), "csr");
}
