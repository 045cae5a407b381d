use crate::program::prelude::*;
use crate::sparse::Csr;
use std::ops::Range;

/// A square matrix whose rows and columns are ordered by the rank that holds them.
#[derive(Debug, Clone, PartialEq)]
pub struct Partitioned {
    /// The matrix in that order.
    pub matrix: Csr,
    /// The rows of each rank.
    pub rows: Vec<Range<usize>>,
    /// For each row of the new order, its number before.
    pub order: Vec<u32>,
}

/// Orders the rows and columns of a square matrix by rank: row `i` belongs to rank `parts[i]` of `ranks`. Rows of a
/// rank keep their order.
///
/// ```
/// use tilework::shard::partitioned;
/// use tilework::sparse::Csr;
///
/// // Rows 0 and 2 are coupled, and so are 1 and 3.
/// let a = Csr {
///     rows: 4,
///     cols: 4,
///     row_ptrs: vec![0, 2, 4, 6, 8],
///     col_idxs: vec![0, 2, 1, 3, 0, 2, 1, 3],
///     values: vec![4.0, 1.0, 5.0, 1.0, 1.0, 6.0, 1.0, 7.0],
/// };
/// let cut = partitioned(&a, &[0, 1, 0, 1], 2)?;
/// assert_eq!((cut.rows, cut.order), (vec![0..2, 2..4], vec![0, 2, 1, 3]));
/// assert_eq!(cut.matrix.col_idxs, [0, 1, 0, 1, 2, 3, 2, 3]); // no rank needs an element of the other
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// [`Shape`](ErrorKind::Shape) if the matrix is not square or the list has another length;
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for a rank that is not there; those of [`Csr::validate`].
pub fn partitioned(a: &Csr, parts: &[u32], ranks: usize) -> Result<Partitioned> {
    const OP: &str = "partition";
    a.validate()?;
    if a.rows != a.cols || parts.len() != a.rows {
        return Err(err!(
            Shape,
            "{OP}: a list of {} ranks for a matrix of {} rows and {} columns; a square matrix needs one for each row",
            parts.len(),
            a.rows,
            a.cols
        ));
    }
    let mut begins = filled(OP, ranks + 1, 0usize)?;
    for (row, part) in parts.iter().enumerate() {
        let count = begins.get_mut(*part as usize + 1).ok_or_else(|| {
            err!(InvalidArgument, "{OP}: row {row} belongs to rank {part}; there are {ranks}, from 0")
        })?;
        *count += 1;
    }
    for rank in 0..ranks {
        begins[rank + 1] += begins[rank];
    }
    let rows = begins.windows(2).map(|w| w[0]..w[1]).collect();
    let (mut order, mut places) = (filled(OP, a.rows, 0u32)?, filled(OP, a.rows, 0u32)?);
    let mut next = begins;
    for (row, part) in parts.iter().enumerate() {
        let place = &mut next[*part as usize];
        order[*place] = row as u32;
        places[row] = *place as u32;
        *place += 1;
    }
    let mut matrix = Csr { rows: a.rows, cols: a.cols, row_ptrs: with_room(OP, a.rows + 1)?, ..Csr::default() };
    make_room(OP, &mut matrix.col_idxs, a.col_idxs.len())?;
    make_room(OP, &mut matrix.values, a.values.len())?;
    matrix.row_ptrs.push(0);
    let mut entries: Vec<(u32, f32)> = Vec::new();
    for &row in &order {
        let range = a.row_ptrs[row as usize] as usize..a.row_ptrs[row as usize + 1] as usize;
        entries.clear();
        make_room(OP, &mut entries, range.len())?;
        entries.extend(range.map(|i| (places[a.col_idxs[i] as usize], a.values[i])));
        entries.sort_by_key(|entry| entry.0);
        matrix.col_idxs.extend(entries.iter().map(|entry| entry.0));
        matrix.values.extend(entries.iter().map(|entry| entry.1));
        matrix.row_ptrs.push(matrix.col_idxs.len() as u32);
    }
    Ok(Partitioned { matrix, rows, order })
}

/// Reads a list of ranks, one number a line for each row, as METIS and its kin write it.
///
/// ```
/// assert_eq!(tilework::shard::read_partition("0\n1\n\n0\n")?, [0, 1, 0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed), with the line.
pub fn read_partition(text: &str) -> Result<Vec<u32>> {
    let mut parts = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        make_room("partition", &mut parts, 1)?;
        parts.push(line.trim().parse().map_err(|_| {
            err!(Malformed, "partition: line {}: `{}` is no rank; write a number from 0 a line", i + 1, line.trim())
        })?);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
