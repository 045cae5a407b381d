//! Converting every other format to compressed rows.

use super::{Coo, Csc, Csr, Ell, Hybrid, Jds, PADDING, Sell};
use crate::program::prelude::*;

impl Csc {
    /// Converts to compressed rows. Columns rise within each row. Fails like [`Csr::to_csc`].
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        index_u32("csr", "columns", self.cols)?;
        let column = |col: usize| self.col_ptrs[col] as usize..self.col_ptrs[col + 1] as usize;
        let entries = || {
            (0..self.cols)
                .flat_map(move |col| column(col).map(move |at| (self.row_idxs[at], col as u32, self.values[at])))
        };
        Csr::gathered("csr", (self.rows, self.cols), entries)
    }
}

impl Ell {
    /// Iterates over rows, columns and values. The entries of a row keep their order.
    fn entries(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        let places = self.col_idxs.iter().zip(&self.values).enumerate().filter(|(_, (col, _))| **col != PADDING);
        places.map(|(at, (&col, &value))| ((at % self.rows) as u32, col, value))
    }

    /// Converts to compressed rows. Fails like [`Csr::to_csc`].
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        Csr::gathered("csr", (self.rows, self.cols), || self.entries())
    }
}

impl Hybrid {
    /// Converts to compressed rows. The COO entries of a row follow its ELL entries. Fails like [`Csr::to_csc`].
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        let Coo { row_idxs, col_idxs, values, .. } = &self.coo;
        let list = || row_idxs.iter().zip(col_idxs).zip(values).map(|((&row, &col), &value)| (row, col, value));
        Csr::gathered("csr", (self.ell.rows, self.ell.cols), || self.ell.entries().chain(list()))
    }
}

impl Jds {
    /// Converts to compressed rows. Fails like [`Csr::to_csc`].
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        let entries = || {
            self.diagonal_ptrs.windows(2).flat_map(|pair| {
                let places = (pair[0] as usize..pair[1] as usize).zip(&self.row_order);
                places.map(|(at, &row)| (row, self.col_idxs[at], self.values[at]))
            })
        };
        Csr::gathered("csr", (self.rows, self.cols), entries)
    }
}

impl Sell {
    /// Converts to compressed rows. Fails like [`Csr::to_csc`].
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        let entries = || {
            let slices = self.row_order.chunks(self.slice).zip(self.slice_ptrs.windows(2));
            let places =
                slices.flat_map(|(order, pair)| (pair[0] as usize..pair[1] as usize).zip(order.iter().cycle()));
            let held = places.filter(|(at, _)| self.col_idxs[*at] != PADDING);
            held.map(|(at, &row)| (row, self.col_idxs[at], self.values[at]))
        };
        Csr::gathered("csr", (self.rows, self.cols), entries)
    }
}
