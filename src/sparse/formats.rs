mod from_rows;
mod to_rows;
mod validate;

use crate::io::triplets::Triplets as Coo;

/// The column index of an empty slot. The value of such a slot is ignored.
pub const PADDING: u32 = u32::MAX;

/// How to treat several entries at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Add their values, in the order of the entries.
    Sum,
    /// Return an error.
    Refuse,
}

/// Compressed sparse rows: row r has the entries `row_ptrs[r]..row_ptrs[r + 1]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csr {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The first entry of each row, then the number of entries: rows + 1 numbers.
    pub row_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// Compressed sparse columns: column c has the entries `col_ptrs[c]..col_ptrs[c + 1]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csc {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The first entry of each column, then the number of entries: cols + 1 numbers.
    pub col_ptrs: Vec<u32>,
    /// The row of each entry.
    pub row_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// ELLPACK: every row has `width` slots. Slot k of row r is at index `k * rows + r`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Slots of each row.
    pub width: usize,
    /// The column of each slot; [`PADDING`] in empty slots, which follow the entries of their row.
    pub col_idxs: Vec<u32>,
    /// The value of each slot.
    pub values: Vec<f32>,
}

/// The first entries of each row as [`Ell`], the others as [`Coo`], sorted by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hybrid {
    /// The first `width` entries of each row.
    pub ell: Ell,
    /// The entries that do not fit there.
    pub coo: Coo,
}

/// Jagged diagonals: rows sorted by falling length. Diagonal k holds entry k of every row with more than k entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Jds {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The row at each position of the sorted order.
    pub row_order: Vec<u32>,
    /// The first entry of each diagonal, then the number of entries.
    pub diagonal_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// SELL-C-sigma: slices of `slice` (C) rows, each slice as wide as its longest row. Rows are sorted by falling length
/// within windows of `window` (sigma) rows. Slot k of row i of slice s is at index `slice_ptrs[s] + k * slice + i`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows in a slice.
    pub slice: usize,
    /// The row at each position of the sorted order; [`PADDING`] after the last row.
    pub row_order: Vec<u32>,
    /// The first slot of each slice, then the number of slots.
    pub slice_ptrs: Vec<u32>,
    /// The column of each slot; [`PADDING`] in empty slots.
    pub col_idxs: Vec<u32>,
    /// The value of each slot.
    pub values: Vec<f32>,
}

#[cfg(test)]
mod tests;
