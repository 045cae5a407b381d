use super::{Coo, Csc, Csr, Ell, Hybrid, Jds, PADDING, Sell};
use crate::program::prelude::*;

pub(super) fn same_length(format: &str, lists: &[(&str, usize)], want: usize) -> Result<()> {
    match lists.iter().find(|(_, len)| *len != want) {
        None => Ok(()),
        Some((name, len)) => Err(err!(Shape, "{format}: `{name}` has {len} elements; the other lists require {want}")),
    }
}

/// Checks that indices are below `extent`, or padding if `padded`.
pub(super) fn in_range(format: &str, what: &str, idxs: &[u32], extent: usize, padded: bool) -> Result<()> {
    let fits = |&i: &u32| (i as usize) < extent || padded && i == PADDING;
    match idxs.iter().position(|i| !fits(i)) {
        None => Ok(()),
        Some(at) => Err(err!(Shape, "{format}: `{what}`[{at}] is {}; it must be below {extent}", idxs[at])),
    }
}

/// Checks that `ptrs` rise from 0 to `total`.
fn rising(format: &str, what: &str, ptrs: &[u32], total: usize) -> Result<()> {
    let wrong = |at: usize, rule: &str| Err(err!(Shape, "{format}: `{what}`[{at}] is {}; {rule}", ptrs[at]));
    let (Some(&first), Some(&last)) = (ptrs.first(), ptrs.last()) else {
        return Err(err!(Shape, "{format}: `{what}` is empty; it must hold at least one 0"));
    };
    if first != 0 {
        return wrong(0, "the first must be 0");
    }
    if let Some(at) = ptrs.windows(2).position(|pair| pair[1] < pair[0]) {
        return wrong(at + 1, &format!("it must be at least {}, the one before it", ptrs[at]));
    }
    if last as usize != total {
        return wrong(ptrs.len() - 1, &format!("the last must be the number of entries, {total}"));
    }
    Ok(())
}

/// Checks that `order` names each of `rows` rows once, followed by padding.
fn permutation(format: &str, order: &[u32], rows: usize) -> Result<()> {
    let mut seen = filled(format, rows, false)?;
    for (at, &row) in order.iter().enumerate() {
        let fresh = seen.get_mut(row as usize).is_some_and(|s| !std::mem::replace(s, true));
        if !(fresh || row == PADDING && at >= rows) {
            return Err(err!(
                Shape,
                "{format}: `row_order`[{at}] is {row}; it must name each of {rows} rows once, then padding"
            ));
        }
    }
    Ok(())
}

/// Returns the number of slots of a padded format. It must fit 32 bits.
pub(super) fn places(extents: &[usize], format: &str, what: impl Fn() -> String) -> Result<usize> {
    let places = extents.iter().try_fold(1usize, |all, &x| all.checked_mul(x));
    match places {
        Some(places) if u32::try_from(places).is_ok() => Ok(places),
        _ => Err(err!(
            TooLarge,
            "{format}: {} need more than 2^32 - 1 slots, padding included; use csr, or hybrid with a smaller width",
            what()
        )),
    }
}

impl Coo {
    /// Checks lengths and index ranges.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape), naming the list and the element.
    pub fn validate(&self) -> Result<()> {
        let lists = [("row_idxs", self.row_idxs.len()), ("col_idxs", self.col_idxs.len())];
        same_length("coo", &lists, self.values.len())?;
        in_range("coo", "row_idxs", &self.row_idxs, self.rows, false)?;
        in_range("coo", "col_idxs", &self.col_idxs, self.cols, false)
    }
}

impl Csr {
    /// Checks lengths, pointers and index ranges. Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        same_length("csr", &[("row_ptrs", self.row_ptrs.len())], self.rows.saturating_add(1))?;
        same_length("csr", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("csr", "row_ptrs", &self.row_ptrs, self.values.len())?;
        in_range("csr", "col_idxs", &self.col_idxs, self.cols, false)
    }
}

impl Csc {
    /// Checks lengths, pointers and index ranges. Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        same_length("csc", &[("col_ptrs", self.col_ptrs.len())], self.cols.saturating_add(1))?;
        same_length("csc", &[("row_idxs", self.row_idxs.len())], self.values.len())?;
        rising("csc", "col_ptrs", &self.col_ptrs, self.values.len())?;
        in_range("csc", "row_idxs", &self.row_idxs, self.rows, false)
    }
}

impl Ell {
    /// Checks lengths and index ranges, and that padding follows the entries of each row. Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        let Self { rows, width, .. } = *self;
        let places = places(&[rows, width], "ell", || format!("{rows} rows of {width}"))?;
        same_length("ell", &[("col_idxs", self.col_idxs.len()), ("values", self.values.len())], places)?;
        in_range("ell", "col_idxs", &self.col_idxs, self.cols, true)?;
        for at in rows..places {
            if self.col_idxs[at] != PADDING && self.col_idxs[at - rows] == PADDING {
                return Err(err!(Shape, "ell: `col_idxs`[{at}] is an entry after padding of row {}", at % rows));
            }
        }
        Ok(())
    }
}

impl Hybrid {
    /// Checks both parts, and that their shapes agree. Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        let shapes = [[self.ell.rows, self.ell.cols], [self.coo.rows, self.coo.cols]];
        let [[rows, cols], [other_rows, other_cols]] = shapes;
        if shapes[0] != shapes[1] {
            return Err(err!(
                Shape,
                "hybrid: the ell part is {rows} x {cols}, the coo part {other_rows} x {other_cols}"
            ));
        }
        self.ell.validate()?;
        self.coo.validate()
    }
}

impl Jds {
    /// Checks lengths, pointers, the row order and index ranges, and that no diagonal is longer than the one before.
    /// Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        same_length("jds", &[("row_order", self.row_order.len())], self.rows)?;
        same_length("jds", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("jds", "diagonal_ptrs", &self.diagonal_ptrs, self.values.len())?;
        permutation("jds", &self.row_order, self.rows)?;
        in_range("jds", "col_idxs", &self.col_idxs, self.cols, false)?;
        let mut max = self.rows;
        for (k, pair) in self.diagonal_ptrs.windows(2).enumerate() {
            let len = (pair[1] - pair[0]) as usize;
            if len > max {
                return Err(err!(Shape, "jds: diagonal {k} has {len} entries; only {max} rows reach it"));
            }
            max = len;
        }
        Ok(())
    }
}

impl Sell {
    /// Checks lengths, pointers, the row order and index ranges, and that padding follows the entries of each row.
    /// Fails like [`Coo::validate`].
    pub fn validate(&self) -> Result<()> {
        let Self { rows, slice, .. } = *self;
        if slice == 0 {
            return Err(err!(Shape, "sell: slices of 0 rows; a slice needs at least 1"));
        }
        let slices = rows.div_ceil(slice);
        same_length("sell", &[("slice_ptrs", self.slice_ptrs.len())], slices + 1)?;
        same_length("sell", &[("row_order", self.row_order.len())], elements("sell", "row_order", &[slices, slice])?)?;
        same_length("sell", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("sell", "slice_ptrs", &self.slice_ptrs, self.values.len())?;
        if let Some(s) = self.slice_ptrs.iter().position(|at| !(*at as usize).is_multiple_of(slice)) {
            return Err(err!(
                Shape,
                "sell: `slice_ptrs`[{s}] is {}; it must be a multiple of {slice}, the rows in a slice",
                self.slice_ptrs[s]
            ));
        }
        permutation("sell", &self.row_order, rows)?;
        in_range("sell", "col_idxs", &self.col_idxs, self.cols, true)?;
        for (order, pair) in self.row_order.chunks(slice).zip(self.slice_ptrs.windows(2)) {
            let first = pair[0] as usize;
            for at in first..pair[1] as usize {
                let row = order[(at - first) % slice];
                let after = at >= first + slice && self.col_idxs[at - slice] == PADDING;
                if self.col_idxs[at] != PADDING && (after || row == PADDING) {
                    return Err(err!(Shape, "sell: `col_idxs`[{at}] is an entry after padding, or of no row"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
