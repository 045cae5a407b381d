//! Coordinates: the content of sparse matrix files, and the COO format.

/// A sparse matrix as a list of entries in any order; positions may repeat.
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
    /// The value of each entry; 1 in `pattern` files; integers are rounded to f32.
    pub values: Vec<f32>,
}
