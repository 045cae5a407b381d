//! The formats in the host's memory, and ways between them.

use crate::error::{Result, copied, err, filled, make_room, with_room};
use crate::io::matrix_market::Triplets as Coo;
use crate::shape::{elements, index_u32};
use std::cmp::Reverse;

/// The column of a place that holds no entry. Its value is never looked at.
pub const PADDING: u32 = u32::MAX;

/// What becomes of a position that comes more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Its values are added up, in the order in which they come.
    Sum,
    /// It is an error.
    Refuse,
}

/// Compressed rows: the entries of row r are number `row_ptrs[r]` to `row_ptrs[r + 1]`, the latter left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csr {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Where each row begins, and the number of entries: rows + 1 numbers.
    pub row_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// Compressed columns: as [`Csr`], with rows and columns in each other's place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csc {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Where each column begins, and the number of entries: cols + 1 numbers.
    pub col_ptrs: Vec<u32>,
    /// The row of each entry.
    pub row_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// ELLPACK: `width` places in every row; place k of row r is number `k * rows + r`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Places in a row.
    pub width: usize,
    /// The column of each place, [`PADDING`] where it holds nothing: behind the entries of its row.
    pub col_idxs: Vec<u32>,
    /// The value of each place.
    pub values: Vec<f32>,
}

/// The first entries of each row as [`Ell`], the others as [`Coo`], by rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hybrid {
    /// Up to `width` entries of each row.
    pub ell: Ell,
    /// What does not fit there.
    pub coo: Coo,
}

/// Jagged diagonals: rows by falling length; diagonal k holds entry k of every row that has so many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Jds {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The row that lies at each place.
    pub row_order: Vec<u32>,
    /// Where each diagonal begins, and the number of entries.
    pub diagonal_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// SELL-C-sigma: rows in slices of `slice` (C), each as wide as its longest row, and sorted by falling length within
/// windows of `window` (sigma) rows. Place k of the i-th row of slice s is number `slice_ptrs[s] + k * slice + i`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows of a slice.
    pub slice: usize,
    /// The row that lies at each place; [`PADDING`] for those behind the last row of the last slice.
    pub row_order: Vec<u32>,
    /// Where each slice begins, and the number of places.
    pub slice_ptrs: Vec<u32>,
    /// The column of each place, [`PADDING`] where it holds nothing.
    pub col_idxs: Vec<u32>,
    /// The value of each place.
    pub values: Vec<f32>,
}

/// That lists of a format are as long as they must be.
fn same_length(format: &str, lists: &[(&str, usize)], want: usize) -> Result<()> {
    match lists.iter().find(|(_, len)| *len != want) {
        None => Ok(()),
        Some((name, len)) => Err(err!(
            Shape,
            "{format}: `{name}` has {len} elements and must have {want}, as its other lists say"
        )),
    }
}

/// That all indices are below `extent`, or padding where that may be.
fn in_range(format: &str, what: &str, idxs: &[u32], extent: usize, padded: bool) -> Result<()> {
    let fits = |&i: &u32| (i as usize) < extent || padded && i == PADDING;
    match idxs.iter().position(|i| !fits(i)) {
        None => Ok(()),
        Some(at) => {
            Err(err!(Shape, "{format}: `{what}`[{at}] is {}, and the matrix has {extent} of them", idxs[at]))
        }
    }
}

/// That `ptrs` rise from 0 to `total`.
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

/// That `order` names each of `rows` once, with padding behind them.
fn permutation(format: &str, order: &[u32], rows: usize) -> Result<()> {
    let mut seen = filled(format, rows, false)?;
    for (at, &row) in order.iter().enumerate() {
        let fresh = seen.get_mut(row as usize).is_some_and(|s| !std::mem::replace(s, true));
        if !(fresh || row == PADDING && at >= rows) {
            return Err(err!(
                Shape,
                "{format}: `row_order`[{at}] is {row}; each of {rows} rows must be there once, padding behind them"
            ));
        }
    }
    Ok(())
}

impl Coo {
    /// Checks lengths and ranges.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        let lists = [("row_idxs", self.row_idxs.len()), ("col_idxs", self.col_idxs.len())];
        same_length("coo", &lists, self.values.len())?;
        in_range("coo", "row_idxs", &self.row_idxs, self.rows, false)?;
        in_range("coo", "col_idxs", &self.col_idxs, self.cols, false)
    }
}

impl Csr {
    /// From entries in any order, as a file holds them; within a row they come by rising column.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if lists differ in length or an index is out of range;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a position that comes twice where that is refused;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 entries.
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
                            "csr: row {} and column {} come more than once; have them added up, or take one away",
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

    /// From coordinates. By rows, they keep their order; otherwise they are sorted by row and column, and those at one
    /// position keep theirs. None are added up.
    ///
    /// # Errors
    /// Those of `validate`; [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows or entries;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
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

    /// From rows, columns and values in any order, the same in each call; those of a row keep theirs.
    fn gathered<I: Iterator<Item = (u32, u32, f32)>>(
        format: &str,
        (rows, cols): (usize, usize),
        entries: impl Fn() -> I,
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

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Checks lengths, pointers and ranges.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        same_length("csr", &[("row_ptrs", self.row_ptrs.len())], self.rows.saturating_add(1))?;
        same_length("csr", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("csr", "row_ptrs", &self.row_ptrs, self.values.len())?;
        in_range("csr", "col_idxs", &self.col_idxs, self.cols, false)
    }

    /// Entries of row `row`: columns and values.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.row_ptrs[row] as usize..self.row_ptrs[row + 1] as usize;
        self.col_idxs[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Entries of a row.
    fn len(&self, row: usize) -> usize {
        (self.row_ptrs[row + 1] - self.row_ptrs[row]) as usize
    }

    fn longest(&self) -> usize {
        (0..self.rows).map(|row| self.len(row)).max().unwrap_or(0)
    }

    /// A copy, if there is memory for it.
    pub(crate) fn try_clone(&self, doing: &str) -> Result<Self> {
        Ok(Self {
            rows: self.rows,
            cols: self.cols,
            row_ptrs: copied(doing, &self.row_ptrs)?,
            col_idxs: copied(doing, &self.col_idxs)?,
            values: copied(doing, &self.values)?,
        })
    }

    /// All entries, by rows.
    fn all(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        (0..self.rows).flat_map(|row| self.row(row).map(move |(col, value)| (row as u32, col, value)))
    }

    /// As coordinates, by rows.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_coo(&self) -> Result<Coo> {
        self.validate()?;
        index_u32("coo", "rows", self.rows)?;
        let mut row_idxs = with_room("coo", self.entries())?;
        row_idxs.extend(self.all().map(|(row, ..)| row));
        let (col_idxs, values) = (copied("coo", &self.col_idxs)?, copied("coo", &self.values)?);
        Ok(Coo { rows: self.rows, cols: self.cols, row_idxs, col_idxs, values })
    }

    /// As compressed columns; rows rise within each.
    ///
    /// # Errors
    /// Those of [`transposed`](Self::transposed).
    pub fn to_csc(&self) -> Result<Csc> {
        let Self { row_ptrs, col_idxs, values, .. } = self.transposed()?;
        Ok(Csc { rows: self.rows, cols: self.cols, col_ptrs: row_ptrs, row_idxs: col_idxs, values })
    }

    /// The transposed matrix; columns rise within each row.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows or columns;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn transposed(&self) -> Result<Self> {
        self.validate()?;
        index_u32("csr", "rows", self.rows)?;
        let turned = || self.all().map(|(row, col, value)| (col, row, value));
        Self::gathered("csr", (self.cols, self.rows), turned)
    }

    /// With as many places in every row as its longest has entries.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) if there are 2^32 places or more:
    /// one long row makes all of them long; [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_ell(&self) -> Result<Ell> {
        self.validate()?;
        Ok(self.to_hybrid(self.longest())?.ell)
    }

    /// With `width` places in every row, and a list of what does not fit.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 places or more;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
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

    /// All rows, by falling length within windows of `window` rows; rows of the same length keep their order.
    fn by_length(&self, format: &str, window: usize) -> Result<Vec<u32>> {
        let rows = index_u32(format, "rows", self.rows)?;
        let mut order = with_room(format, self.rows)?;
        order.extend(0..rows);
        for rows in order.chunks_mut(window.max(1)) {
            rows.sort_unstable_by_key(|&row| (Reverse(self.len(row as usize)), row));
        }
        Ok(order)
    }

    /// As jagged diagonals.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_jds(&self) -> Result<Jds> {
        self.validate()?;
        let row_order = self.by_length("jds", self.rows)?;
        let diagonals = self.longest();
        let mut diagonal_ptrs = with_room("jds", diagonals + 1)?;
        diagonal_ptrs.push(0);
        let (mut col_idxs, mut values) =
            (with_room("jds", self.entries())?, with_room("jds", self.entries())?);
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

    /// In slices of `slice` rows, sorted within windows of `window` rows.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a slice or window
    /// of 0 rows; [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 places or more;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_sell(&self, slice: usize, window: usize) -> Result<Sell> {
        if slice == 0 || window == 0 {
            return Err(err!(
                InvalidArgument,
                "sell: slices of {slice} rows in windows of {window}; both have at least 1"
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

/// Pointers of `extent` rows or columns that hold nothing yet.
fn no_entries(format: &str, what: &str, extent: usize) -> Result<Vec<u32>> {
    index_u32(format, what, extent)?;
    filled(format, extent + 1, 0)
}

/// Numbers of entries by row and column; those at one position in the order in which they come.
fn by_position(format: &str, row_idxs: &[u32], col_idxs: &[u32]) -> Result<Vec<u32>> {
    let entries = index_u32(format, "entries", row_idxs.len())?;
    let mut order = with_room(format, row_idxs.len())?;
    order.extend(0..entries);
    order.sort_unstable_by_key(|&i| (row_idxs[i as usize], col_idxs[i as usize], i));
    Ok(order)
}

/// Places of a padded format, which are counted in 32 bits.
fn places(extents: &[usize], format: &str, what: impl Fn() -> String) -> Result<usize> {
    let places = extents.iter().try_fold(1usize, |all, &x| all.checked_mul(x));
    match places {
        Some(places) if u32::try_from(places).is_ok() => Ok(places),
        _ => Err(err!(
            TooLarge,
            "{format}: {} need more than 2^32 - 1 places with their padding; take csr, or hybrid with a smaller width",
            what()
        )),
    }
}

/// Counts, each behind its place, become where each begins.
fn accumulate(counts: &mut [u32]) {
    let mut total = 0;
    for count in counts {
        total += *count;
        *count = total;
    }
}

impl Csc {
    /// Checks lengths, pointers and ranges.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        same_length("csc", &[("col_ptrs", self.col_ptrs.len())], self.cols.saturating_add(1))?;
        same_length("csc", &[("row_idxs", self.row_idxs.len())], self.values.len())?;
        rising("csc", "col_ptrs", &self.col_ptrs, self.values.len())?;
        in_range("csc", "row_idxs", &self.row_idxs, self.rows, false)
    }

    /// As compressed rows; columns rise within each.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows or columns;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        index_u32("csr", "columns", self.cols)?;
        let column = |col: usize| self.col_ptrs[col] as usize..self.col_ptrs[col + 1] as usize;
        let entries = || {
            (0..self.cols).flat_map(move |col| {
                column(col).map(move |at| (self.row_idxs[at], col as u32, self.values[at]))
            })
        };
        Csr::gathered("csr", (self.rows, self.cols), entries)
    }
}

impl Ell {
    /// Checks lengths and ranges, and that no entry stands behind padding.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        let Self { rows, width, .. } = *self;
        let places = places(&[rows, width], "ell", || format!("{rows} rows of {width}"))?;
        same_length("ell", &[("col_idxs", self.col_idxs.len()), ("values", self.values.len())], places)?;
        in_range("ell", "col_idxs", &self.col_idxs, self.cols, true)?;
        for at in rows..places {
            if self.col_idxs[at] != PADDING && self.col_idxs[at - rows] == PADDING {
                return Err(err!(
                    Shape,
                    "ell: `col_idxs`[{at}] is an entry behind padding of row {}",
                    at % rows
                ));
            }
        }
        Ok(())
    }

    /// Rows, columns and values, those of a row in their order.
    fn entries(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        let places =
            self.col_idxs.iter().zip(&self.values).enumerate().filter(|(_, (col, _))| **col != PADDING);
        places.map(|(at, (&col, &value))| ((at % self.rows) as u32, col, value))
    }

    /// As compressed rows.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        Csr::gathered("csr", (self.rows, self.cols), || self.entries())
    }
}

impl Hybrid {
    /// Checks both parts, and that they are of one shape.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
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

    /// As compressed rows: the entries of the list behind those of its row.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows or entries;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        let Coo { row_idxs, col_idxs, values, .. } = &self.coo;
        let list =
            || row_idxs.iter().zip(col_idxs).zip(values).map(|((&row, &col), &value)| (row, col, value));
        Csr::gathered("csr", (self.ell.rows, self.ell.cols), || self.ell.entries().chain(list()))
    }
}

impl Jds {
    /// Checks lengths, pointers, the order of rows and ranges, and that no diagonal is longer than the one before.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        same_length("jds", &[("row_order", self.row_order.len())], self.rows)?;
        same_length("jds", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("jds", "diagonal_ptrs", &self.diagonal_ptrs, self.values.len())?;
        permutation("jds", &self.row_order, self.rows)?;
        in_range("jds", "col_idxs", &self.col_idxs, self.cols, false)?;
        let mut most = self.rows;
        for (k, pair) in self.diagonal_ptrs.windows(2).enumerate() {
            let len = (pair[1] - pair[0]) as usize;
            if len > most {
                return Err(err!(
                    Shape,
                    "jds: diagonal {k} has {len} entries, and only {most} rows reach it"
                ));
            }
            most = len;
        }
        Ok(())
    }

    /// As compressed rows.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
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
    /// Checks lengths, pointers, the order of rows and ranges, and that no entry stands behind padding.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape), with what is wrong and where.
    pub fn validate(&self) -> Result<()> {
        let Self { rows, slice, .. } = *self;
        if slice == 0 {
            return Err(err!(Shape, "sell: slices of 0 rows; a slice has at least 1"));
        }
        let slices = rows.div_ceil(slice);
        same_length("sell", &[("slice_ptrs", self.slice_ptrs.len())], slices + 1)?;
        same_length(
            "sell",
            &[("row_order", self.row_order.len())],
            elements("sell", "row_order", &[slices, slice])?,
        )?;
        same_length("sell", &[("col_idxs", self.col_idxs.len())], self.values.len())?;
        rising("sell", "slice_ptrs", &self.slice_ptrs, self.values.len())?;
        if let Some(s) = self.slice_ptrs.iter().position(|at| !(*at as usize).is_multiple_of(slice)) {
            return Err(err!(
                Shape,
                "sell: `slice_ptrs`[{s}] is {}, no multiple of the {slice} rows of a slice",
                self.slice_ptrs[s]
            ));
        }
        permutation("sell", &self.row_order, rows)?;
        in_range("sell", "col_idxs", &self.col_idxs, self.cols, true)?;
        for (order, pair) in self.row_order.chunks(slice).zip(self.slice_ptrs.windows(2)) {
            let first = pair[0] as usize;
            for at in first..pair[1] as usize {
                let row = order[(at - first) % slice];
                let behind = at >= first + slice && self.col_idxs[at - slice] == PADDING;
                if self.col_idxs[at] != PADDING && (behind || row == PADDING) {
                    return Err(err!(
                        Shape,
                        "sell: `col_idxs`[{at}] is an entry behind padding, or of no row"
                    ));
                }
            }
        }
        Ok(())
    }

    /// As compressed rows.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate); [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 rows;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn to_csr(&self) -> Result<Csr> {
        self.validate()?;
        let entries = || {
            let slices = self.row_order.chunks(self.slice).zip(self.slice_ptrs.windows(2));
            let places = slices
                .flat_map(|(order, pair)| (pair[0] as usize..pair[1] as usize).zip(order.iter().cycle()));
            let held = places.filter(|(at, _)| self.col_idxs[*at] != PADDING);
            held.map(|(at, &row)| (row, self.col_idxs[at], self.values[at]))
        };
        Csr::gathered("csr", (self.rows, self.cols), entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::sparse::SparseMatrix;

    /// ```text
    /// . 1 . 2 .
    /// . . . . .
    /// 3 4 5 6 7
    /// . . 8 . .
    /// ```
    fn matrix() -> Csr {
        Csr {
            rows: 4,
            cols: 5,
            row_ptrs: vec![0, 2, 2, 7, 8],
            col_idxs: vec![1, 3, 0, 1, 2, 3, 4, 2],
            values: (1..=8).map(|x| x as f32).collect(),
        }
    }

    /// Of any shape, with rows of 0 to 9 entries.
    fn random(rows: usize, cols: usize, mut state: u32) -> Csr {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 10
        };
        let mut triplets = Coo { rows, cols, ..Coo::default() };
        for row in 0..rows {
            for _ in 0..if cols == 0 { 0 } else { next() % 10 } {
                triplets.row_idxs.push(row as u32);
                triplets.col_idxs.push(next() % cols as u32);
                triplets.values.push(next() as f32);
            }
        }
        Csr::from_triplets(&triplets, Duplicates::Sum).unwrap()
    }

    #[test]
    fn formats_are_as_drawn_by_hand() {
        let csr = matrix();
        csr.validate().unwrap();
        let csc = csr.to_csc().unwrap();
        assert_eq!(csc.col_ptrs, [0, 1, 3, 5, 7, 8]);
        assert_eq!(csc.row_idxs, [2, 0, 2, 2, 3, 0, 2, 2]);
        assert_eq!(csc.values, [3.0, 1.0, 4.0, 5.0, 8.0, 2.0, 6.0, 7.0]);
        let hybrid = csr.to_hybrid(2).unwrap();
        assert_eq!(hybrid.ell.col_idxs, [1, PADDING, 0, 2, 3, PADDING, 1, PADDING]);
        assert_eq!(hybrid.ell.values, [1.0, 0.0, 3.0, 8.0, 2.0, 0.0, 4.0, 0.0]);
        assert_eq!((hybrid.coo.row_idxs, hybrid.coo.col_idxs), (vec![2, 2, 2], vec![2, 3, 4]));
        let jds = csr.to_jds().unwrap();
        assert_eq!(jds.row_order, [2, 0, 3, 1]);
        assert_eq!(jds.diagonal_ptrs, [0, 3, 5, 6, 7, 8]);
        assert_eq!(jds.values, [3.0, 1.0, 8.0, 4.0, 2.0, 5.0, 6.0, 7.0]);
        let sell = csr.to_sell(2, 4).unwrap();
        assert_eq!(sell.row_order, [2, 0, 3, 1]);
        assert_eq!(sell.slice_ptrs, [0, 10, 12]);
        assert_eq!(sell.values, [3.0, 1.0, 4.0, 2.0, 5.0, 0.0, 6.0, 0.0, 7.0, 0.0, 8.0, 0.0]);
        assert_eq!(csr.to_ell().unwrap().width, 5);
    }

    #[test]
    fn every_format_comes_back_as_it_was() {
        let shapes = [(0, 0), (0, 3), (3, 0), (1, 1), (7, 3), (33, 65), (100, 10)];
        for (i, (rows, cols)) in shapes.into_iter().enumerate() {
            let csr = random(rows, cols, i as u32);
            csr.validate().unwrap();
            assert_eq!(Csr::from_triplets(&csr.to_coo().unwrap(), Duplicates::Refuse).unwrap(), csr);
            csr.to_coo().unwrap().validate().unwrap();
            csr.to_csc().unwrap().validate().unwrap();
            assert_eq!(csr.to_csc().unwrap().to_csr().unwrap(), csr);
            assert_eq!(csr.transposed().unwrap().transposed().unwrap(), csr);
            let ell = csr.to_ell().unwrap();
            ell.validate().unwrap();
            assert_eq!(ell.to_csr().unwrap(), csr);
            for width in [0, 1, 4, 50] {
                let hybrid = csr.to_hybrid(width).unwrap();
                hybrid.validate().unwrap();
                assert_eq!(hybrid.to_csr().unwrap(), csr);
            }
            csr.to_jds().unwrap().validate().unwrap();
            assert_eq!(csr.to_jds().unwrap().to_csr().unwrap(), csr);
            for (slice, window) in [(1, 1), (4, 8), (32, 32), (8, usize::MAX)] {
                let sell = csr.to_sell(slice, window).unwrap();
                sell.validate().unwrap();
                assert_eq!(sell.to_csr().unwrap(), csr);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let refused = |result: Result<()>, text: &str| {
            let e = result.unwrap_err();
            assert!(e.kind() == ErrorKind::Shape && e.to_string().contains(text), "{e}");
        };
        let csr = matrix();
        refused(
            Csr { row_ptrs: vec![0, 2, 1, 7, 8], ..csr.clone() }.validate(),
            "`row_ptrs`[2] is 1; it must be at least 2",
        );
        refused(
            Csr { row_ptrs: vec![1, 2, 2, 7, 8], ..csr.clone() }.validate(),
            "`row_ptrs`[0] is 1; the first must be 0",
        );
        refused(
            Jds { diagonal_ptrs: vec![], ..csr.to_jds().unwrap() }.validate(),
            "`diagonal_ptrs` is empty",
        );
        refused(Sell { slice_ptrs: vec![], ..csr.to_sell(2, 4).unwrap() }.validate(), "slice_ptrs");
        refused(Csr { row_ptrs: vec![0, 2, 2, 7, 9], ..csr.clone() }.validate(), "number of entries, 8");
        refused(Csr { row_ptrs: vec![0, 8], ..csr.clone() }.validate(), "has 2 elements and must have 5");
        refused(Csr { cols: 4, ..csr.clone() }.validate(), "`col_idxs`[6] is 4, and the matrix has 4");
        refused(Csr { values: vec![], ..csr.clone() }.validate(), "`col_idxs` has 8 elements");
        refused(Coo { rows: 2, ..csr.to_coo().unwrap() }.validate(), "`row_idxs`[2] is 2");
        refused(Csc { rows: 3, ..csr.to_csc().unwrap() }.validate(), "`row_idxs`[4] is 3");
        let mut ell = csr.to_ell().unwrap();
        ell.col_idxs[5] = 0;
        refused(ell.validate(), "behind padding of row 1");
        let mut jds = csr.to_jds().unwrap();
        jds.row_order[1] = 2;
        refused(jds.validate(), "`row_order`[1] is 2");
        let jds = Jds { diagonal_ptrs: vec![0, 1, 5, 6, 7, 8], ..csr.to_jds().unwrap() };
        refused(jds.validate(), "diagonal 1 has 4 entries, and only 1 rows");
        let sell = Sell { slice_ptrs: vec![0, 9, 12], ..csr.to_sell(2, 4).unwrap() };
        refused(sell.validate(), "no multiple of the 2 rows");
        let mut sell = csr.to_sell(2, 4).unwrap();
        sell.col_idxs[7] = 0;
        refused(sell.validate(), "`col_idxs`[7] is an entry behind padding");
        let mut hybrid = csr.to_hybrid(2).unwrap();
        hybrid.coo.cols = 6;
        refused(hybrid.validate(), "4 x 6");
        assert_eq!(csr.to_sell(0, 4).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let wide = csr.to_hybrid(usize::MAX).unwrap_err();
        assert!(wide.kind() == ErrorKind::TooLarge && wide.to_string().contains("2^32 - 1 places"), "{wide}");
    }

    #[test]
    fn extents_beyond_kernels_and_memory_are_errors() {
        let kind = |result: Result<Csr>| result.unwrap_err().kind();
        for rows in [1 << 32, 1 << 40, usize::MAX - 1, usize::MAX] {
            let one = Coo { rows, cols: 3, row_idxs: vec![1], col_idxs: vec![2], values: vec![5.0] };
            for duplicates in [Duplicates::Sum, Duplicates::Refuse] {
                assert_eq!(kind(Csr::from_triplets(&one, duplicates)), ErrorKind::TooLarge, "{rows}");
            }
            assert_eq!(kind(Csr::from_coo(&one)), ErrorKind::TooLarge, "{rows}");
            let none = Csr { rows, ..Csr::default() };
            assert_eq!(none.validate().unwrap_err().kind(), ErrorKind::Shape, "{rows}");
            let wide = Csr { cols: rows, ..matrix() };
            assert_eq!(kind(wide.transposed()), ErrorKind::TooLarge, "{rows}");
            assert_eq!(wide.to_csc().unwrap_err().kind(), ErrorKind::TooLarge, "{rows}");
            let tall = Csc { rows, ..matrix().to_csc().unwrap() };
            assert_eq!(kind(tall.to_csr()), ErrorKind::TooLarge, "{rows}");
        }
    }

    #[test]
    fn rows_without_entries_take_no_memory_to_count() {
        let (row_idxs, col_idxs, values) = (vec![7, 1, 7, 0, 7], vec![0; 5], vec![1.0; 5]);
        for rows in [8, 11, 1000, 1 << 40] {
            let mut coo = Coo {
                rows,
                cols: 1,
                row_idxs: row_idxs.clone(),
                col_idxs: col_idxs.clone(),
                values: values.clone(),
            };
            assert_eq!(coo.stored().unwrap().longest, 3, "{rows}");
            coo.row_idxs.sort_unstable();
            assert_eq!(coo.stored().unwrap().longest, 3, "{rows}");
        }
    }

    #[test]
    fn matrices_that_are_not_valid_are_refused_and_not_converted() {
        let wrong = Csr { cols: 2, ..matrix() };
        assert!(wrong.to_coo().is_err() && wrong.to_csc().is_err() && wrong.to_ell().is_err());
        assert!(wrong.to_jds().is_err() && wrong.to_sell(2, 2).is_err() && wrong.to_hybrid(1).is_err());
        let csr = matrix();
        assert!(Csr::from_coo(&Coo { rows: 1, ..csr.to_coo().unwrap() }).is_err());
        assert!(Csc { rows: 1, ..csr.to_csc().unwrap() }.to_csr().is_err());
        assert!(Ell { rows: 3, ..csr.to_ell().unwrap() }.to_csr().is_err());
        assert!(Jds { rows: 3, ..csr.to_jds().unwrap() }.to_csr().is_err());
        assert!(Sell { slice: 0, ..csr.to_sell(2, 4).unwrap() }.to_csr().is_err());
        let mut hybrid = csr.to_hybrid(2).unwrap();
        hybrid.coo.row_idxs[0] = 9;
        assert!(hybrid.to_csr().is_err());
    }
}
