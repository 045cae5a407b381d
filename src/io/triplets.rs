//! Lists of entries: what files of sparse matrices hold, and the coordinate format.

/// A sparse matrix as a list of entries, in no order; a position may come more than once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Triplets {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The row of each entry, from 0.
    pub row_idxs: Vec<u32>,
    /// The column of each entry, from 0.
    pub col_idxs: Vec<u32>,
    /// The value of each entry: 1 in a `pattern` file; of an integer the nearest f32.
    pub values: Vec<f32>,
}
