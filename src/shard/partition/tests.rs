use super::*;
use crate::error::ErrorKind;

fn chain(n: usize) -> Csr {
    let mut a = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..n {
        for column in row.saturating_sub(1)..(row + 2).min(n) {
            a.col_idxs.push(column as u32);
            a.values.push((10 * row + column) as f32);
        }
        a.row_ptrs.push(a.col_idxs.len() as u32);
    }
    a
}

#[test]
fn entries_move_with_rows_and_columns() {
    let a = chain(7);
    let cut = partitioned(&a, &[2, 0, 2, 0, 0, 2, 2], 4).unwrap();
    assert_eq!(cut.rows, [0..3, 3..3, 3..7, 7..7]);
    cut.matrix.validate().unwrap();
    for (row, entries) in cut.matrix.row_ptrs.windows(2).enumerate() {
        for i in entries[0] as usize..entries[1] as usize {
            let (from, to) = (cut.order[row], cut.order[cut.matrix.col_idxs[i] as usize]);
            assert_eq!(cut.matrix.values[i], (10 * from + to) as f32);
        }
    }
    assert_eq!(cut.matrix.values.len(), a.values.len());
}

#[test]
fn rejects_wrong_lists() {
    let kind = |parts: &[u32], ranks| partitioned(&chain(3), parts, ranks).unwrap_err().kind();
    assert_eq!(kind(&[0, 1], 2), ErrorKind::Shape);
    assert_eq!(kind(&[0, 1, 2], 2), ErrorKind::InvalidArgument);
    assert_eq!(kind(&[0, 0, u32::MAX], 1), ErrorKind::InvalidArgument);
    for text in ["0\nx", "-1", "0 1", "4294967296"] {
        assert_eq!(read_partition(text).unwrap_err().kind(), ErrorKind::Malformed, "{text}");
    }
    assert_eq!(read_partition("").unwrap(), [0u32; 0]);
}
