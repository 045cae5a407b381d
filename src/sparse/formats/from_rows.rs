//! Building compressed rows from entries, and converting them to every other format.

use super::validate::{in_range, places, same_length};
use super::{Coo, Csc, Csr, Duplicates, Ell, Hybrid, Jds, PADDING, Sell};
use crate::program::prelude::*;
use std::cmp::Reverse;

impl Csr {
    /// Builds compressed rows from entries in any order, as files hold them. Columns rise within each row.
    ///
    /// # Errors
    /// - [`Shape`](ErrorKind::Shape): lists of different lengths, or an index out of range.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): a duplicate position under [`Duplicates::Refuse`].
    /// - [`TooLarge`](ErrorKind::TooLarge): 2^32 or more rows or entries.
    ///
    /// ```
    /// use tilework::io::matrix_market::Triplets;
    /// use tilework::sparse::{Csr, Duplicates};
    ///
    /// let (row_idxs, col_idxs, values) = (vec![1, 0, 1], vec![2, 1, 2], vec![4.0, 1.0, 0.5]);
    /// let triplets = Triplets { rows: 2, cols: 3, row_idxs, col_idxs, values };
    /// let matrix = Csr::from_triplets(&triplets, Duplicates::Sum)?;
    /// assert_eq!(matrix.row_ptrs, [0, 1, 2]);
    /// assert_eq!(matrix.col_idxs, [1, 2]);
    /// assert_eq!(matrix.values, [1.0, 4.5]);
    /// assert!(Csr::from_triplets(&triplets, Duplicates::Refuse).is_err());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn from_triplets(triplets: &Coo, duplicates: Duplicates) -> Result<Self> {
        let Coo { rows, cols, row_idxs, col_idxs, values } = triplets;
        let (rows, cols) = (*rows, *cols);
        let lists = [("row_idxs", row_idxs.len()), ("col_idxs", col_idxs.len())];
        same_length("csr", &lists, values.len())?;
        in_range("csr", "row_idxs", row_idxs, rows, false)?;
        in_range("csr", "col_idxs", col_idxs, cols, false)?;
        let row_ptrs = no_entries("csr", "rows", rows)?;
        let order = by_position("csr", row_idxs, col_idxs)?;
        let (col_list, value_list) = (with_room("csr", values.len())?, with_room("csr", values.len())?);
        let mut matrix = Self { rows, cols, row_ptrs, col_idxs: col_list, values: value_list };
        let mut last = None;
        for i in order.into_iter().map(|i| i as usize) {
            let at = (row_idxs[i], col_idxs[i]);
            match matrix.values.last_mut() {
                Some(value) if last == Some(at) => {
                    if duplicates == Duplicates::Refuse {
                        return Err(err!(
                            InvalidArgument,
                            "csr: several entries at row {}, column {}; remove all but one, or use Duplicates::Sum",
                            at.0,
                            at.1
                        ));
                    }
                    *value += values[i];
                }
                _ => {
                    matrix.row_ptrs[at.0 as usize + 1] += 1;
                    matrix.col_idxs.push(at.1);
                    matrix.values.push(values[i]);
                }
            }
            last = Some(at);
        }
        accumulate(&mut matrix.row_ptrs);
        Ok(matrix)
    }

    /// Converts coordinates. Entries sorted by row keep their order; others are sorted by row and column, stably.
    /// Duplicates are kept. Fails like [`to_csc`](Self::to_csc).
    pub fn from_coo(coo: &Coo) -> Result<Self> {
        coo.validate()?;
        let Coo { rows, cols, row_idxs, col_idxs, values } = coo;
        let entry = |i: usize| (row_idxs[i], col_idxs[i], values[i]);
        if row_idxs.is_sorted() {
            return Self::gathered("csr", (*rows, *cols), || (0..values.len()).map(entry));
        }
        let order = by_position("csr", row_idxs, col_idxs)?;
        Self::gathered("csr", (*rows, *cols), || order.iter().map(|&i| entry(i as usize)))
    }

    /// Collects entries in any order, the same on each call. The entries of a row keep their order.
    pub(super) fn gathered<I: Iterator<Item = (u32, u32, f32)>>(
        format: &str, (rows, cols): (usize, usize), entries: impl Fn() -> I,
    ) -> Result<Self> {
        let mut row_ptrs = no_entries(format, "rows", rows)?;
        let mut count = 0usize;
        for (row, ..) in entries() {
            let counter = &mut row_ptrs[row as usize + 1];
            *counter = u32::wrapping_add(*counter, 1);
            count += 1;
        }
        index_u32(format, "entries", count)?;
        accumulate(&mut row_ptrs);
        let mut next = copied(format, &row_ptrs)?;
        let (mut col_idxs, mut values) = (filled(format, count, 0)?, filled(format, count, 0.0)?);
        for (row, col, value) in entries() {
            let at = next[row as usize] as usize;
            next[row as usize] += 1;
            (col_idxs[at], values[at]) = (col, value);
        }
        Ok(Self { rows, cols, row_ptrs, col_idxs, values })
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Iterates over the entries of row `row`: column and value.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.row_ptrs[row] as usize..self.row_ptrs[row + 1] as usize;
        self.col_idxs[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    fn len(&self, row: usize) -> usize {
        (self.row_ptrs[row + 1] - self.row_ptrs[row]) as usize
    }

    fn longest(&self) -> usize {
        (0..self.rows).map(|row| self.len(row)).max().unwrap_or(0)
    }

    /// Copies the matrix, or fails if memory runs out.
    pub(crate) fn try_clone(&self, doing: &str) -> Result<Self> {
        Ok(Self {
            rows: self.rows,
            cols: self.cols,
            row_ptrs: copied(doing, &self.row_ptrs)?,
            col_idxs: copied(doing, &self.col_idxs)?,
            values: copied(doing, &self.values)?,
        })
    }

    /// Iterates over all entries, row by row.
    fn all(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        (0..self.rows).flat_map(|row| self.row(row).map(move |(col, value)| (row as u32, col, value)))
    }

    /// Converts to coordinates, sorted by row. Fails like [`to_csc`](Self::to_csc).
    pub fn to_coo(&self) -> Result<Coo> {
        self.validate()?;
        index_u32("coo", "rows", self.rows)?;
        let mut row_idxs = with_room("coo", self.entries())?;
        row_idxs.extend(self.all().map(|(row, ..)| row));
        let (col_idxs, values) = (copied("coo", &self.col_idxs)?, copied("coo", &self.values)?);
        Ok(Coo { rows: self.rows, cols: self.cols, row_idxs, col_idxs, values })
    }

    /// Converts to compressed columns. Rows rise within each column.
    ///
    /// # Errors
    /// - [`Shape`](ErrorKind::Shape): the matrix is not valid, see [`validate`](Self::validate).
    /// - [`TooLarge`](ErrorKind::TooLarge): 2^32 or more rows, columns, entries, or slots of the result.
    /// - [`OutOfMemory`](ErrorKind::OutOfMemory): the host has too little memory.
    pub fn to_csc(&self) -> Result<Csc> {
        let Self { row_ptrs, col_idxs, values, .. } = self.transposed()?;
        Ok(Csc { rows: self.rows, cols: self.cols, col_ptrs: row_ptrs, row_idxs: col_idxs, values })
    }

    /// Transposes the matrix. Columns rise within each row. Fails like [`to_csc`](Self::to_csc).
    pub fn transposed(&self) -> Result<Self> {
        self.validate()?;
        index_u32("csr", "rows", self.rows)?;
        let turned = || self.all().map(|(row, col, value)| (col, row, value));
        Self::gathered("csr", (self.cols, self.rows), turned)
    }

    /// Converts to ELL, as wide as the longest row. One long row makes all rows long. Fails like
    /// [`to_csc`](Self::to_csc).
    pub fn to_ell(&self) -> Result<Ell> {
        self.validate()?;
        Ok(self.to_hybrid(self.longest())?.ell)
    }

    /// Converts to `width` slots for each row, and coordinates for the other entries. Fails like
    /// [`to_csc`](Self::to_csc).
    pub fn to_hybrid(&self, width: usize) -> Result<Hybrid> {
        self.validate()?;
        let (rows, cols) = (self.rows, self.cols);
        let places = places(&[rows, width], "ell", || format!("{rows} rows of {width}"))?;
        let (col_idxs, values) = (filled("ell", places, PADDING)?, filled("ell", places, 0.0)?);
        let mut ell = Ell { rows, cols, width, col_idxs, values };
        let list = (0..rows).map(|row| self.len(row).saturating_sub(width)).sum();
        let (row_list, col_list) = (with_room("hybrid", list)?, with_room("hybrid", list)?);
        let value_list = with_room("hybrid", list)?;
        let mut coo = Coo { rows, cols, row_idxs: row_list, col_idxs: col_list, values: value_list };
        for row in 0..rows {
            for (k, (col, value)) in self.row(row).enumerate() {
                if k < width {
                    (ell.col_idxs[k * rows + row], ell.values[k * rows + row]) = (col, value);
                } else {
                    coo.row_idxs.push(row as u32);
                    coo.col_idxs.push(col);
                    coo.values.push(value);
                }
            }
        }
        Ok(Hybrid { ell, coo })
    }

    /// Returns all rows by falling length within windows of `window` rows. Rows of equal length keep their order.
    fn by_length(&self, format: &str, window: usize) -> Result<Vec<u32>> {
        let rows = index_u32(format, "rows", self.rows)?;
        let mut order = with_room(format, self.rows)?;
        order.extend(0..rows);
        for rows in order.chunks_mut(window.max(1)) {
            rows.sort_unstable_by_key(|&row| (Reverse(self.len(row as usize)), row));
        }
        Ok(order)
    }

    /// Converts to jagged diagonals. Fails like [`to_csc`](Self::to_csc).
    pub fn to_jds(&self) -> Result<Jds> {
        self.validate()?;
        let row_order = self.by_length("jds", self.rows)?;
        let diagonals = self.longest();
        let mut diagonal_ptrs = with_room("jds", diagonals + 1)?;
        diagonal_ptrs.push(0);
        let (mut col_idxs, mut values) = (with_room("jds", self.entries())?, with_room("jds", self.entries())?);
        for k in 0..diagonals {
            for &row in row_order.iter().take_while(|&&row| self.len(row as usize) > k) {
                let at = self.row_ptrs[row as usize] as usize + k;
                col_idxs.push(self.col_idxs[at]);
                values.push(self.values[at]);
            }
            diagonal_ptrs.push(values.len() as u32);
        }
        Ok(Jds { rows: self.rows, cols: self.cols, row_order, diagonal_ptrs, col_idxs, values })
    }

    /// Converts to slices of `slice` rows, sorted by length within windows of `window` rows.
    ///
    /// # Errors
    /// As [`to_csc`](Self::to_csc), and [`InvalidArgument`](ErrorKind::InvalidArgument) if `slice` or `window`
    /// is 0.
    pub fn to_sell(&self, slice: usize, window: usize) -> Result<Sell> {
        if slice == 0 || window == 0 {
            return Err(err!(
                InvalidArgument,
                "sell: slices of {slice} rows in windows of {window}; both must be at least 1"
            ));
        }
        self.validate()?;
        let mut row_order = self.by_length("sell", window)?;
        let slices = self.rows.div_ceil(slice);
        let padded = elements("sell", "row_order", &[slices, slice])?;
        make_room("sell", &mut row_order, padded - self.rows)?;
        row_order.resize(padded, PADDING);
        let len = |row: u32| if row == PADDING { 0 } else { self.len(row as usize) };
        let mut slice_ptrs = with_room("sell", slices + 1)?;
        slice_ptrs.push(0);
        let mut total = 0usize;
        for rows in row_order.chunks(slice) {
            let width = rows.iter().map(|&row| len(row)).max().unwrap_or(0);
            total = total.saturating_add(width.saturating_mul(slice));
            slice_ptrs.push(places(&[total], "sell", || format!("slices of {slice} rows"))? as u32);
        }
        let mut col_idxs = filled("sell", total, PADDING)?;
        let mut values = filled("sell", total, 0.0)?;
        for (rows, &first) in row_order.chunks(slice).zip(&slice_ptrs) {
            for (i, &row) in rows.iter().enumerate().filter(|(_, row)| **row != PADDING) {
                for (k, (col, value)) in self.row(row as usize).enumerate() {
                    let at = first as usize + k * slice + i;
                    (col_idxs[at], values[at]) = (col, value);
                }
            }
        }
        Ok(Sell { rows: self.rows, cols: self.cols, slice, row_order, slice_ptrs, col_idxs, values })
    }
}

fn no_entries(format: &str, what: &str, extent: usize) -> Result<Vec<u32>> {
    index_u32(format, what, extent)?;
    filled(format, extent + 1, 0)
}

/// Returns the indices of entries by row and column, stably.
fn by_position(format: &str, row_idxs: &[u32], col_idxs: &[u32]) -> Result<Vec<u32>> {
    let entries = index_u32(format, "entries", row_idxs.len())?;
    let mut order = with_room(format, row_idxs.len())?;
    order.extend(0..entries);
    order.sort_unstable_by_key(|&i| (row_idxs[i as usize], col_idxs[i as usize], i));
    Ok(order)
}

/// Turns counts, each stored one place ahead, into pointers.
fn accumulate(counts: &mut [u32]) {
    let mut total = 0;
    for count in counts {
        total += *count;
        *count = total;
    }
}
