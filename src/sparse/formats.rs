//! The formats in the host's memory, and ways between them.

use crate::error::{Result, err};
use crate::io::matrix_market::Triplets as Coo;
use crate::shape::{elements, index_u32};

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
    let wrong = |at: usize, rule: &str| {
        Err(err!(Shape, "{format}: `{what}`[{at}] is {}, and {rule}", ptrs.get(at).copied().unwrap_or(0)))
    };
    if ptrs.first() != Some(&0) {
        return wrong(0, "the first begins at 0");
    }
    if let Some(at) = ptrs.windows(2).position(|pair| pair[1] < pair[0]) {
        return wrong(at + 1, "none begins before the one ahead of it");
    }
    match ptrs.last() {
        Some(&last) if last as usize == total => Ok(()),
        _ => wrong(ptrs.len() - 1, &format!("the last is the number of entries, {total}")),
    }
}

/// That `order` names each of `rows` once, with padding behind them.
fn permutation(format: &str, order: &[u32], rows: usize) -> Result<()> {
    let mut seen = vec![false; rows];
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
        index_u32("csr", "entries", values.len())?;
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        // Stable, so that what comes twice is added up in its order.
        order.sort_by_key(|&i| (row_idxs[i as usize], col_idxs[i as usize]));
        let row_ptrs = filled("csr", rows + 1, 0)?;
        let mut matrix = Self { rows, cols, row_ptrs, ..Self::default() };
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

    /// From coordinates that are valid. By rows, they keep their order; otherwise they are sorted by row and column, and those
    /// at one position keep theirs. None are added up.
    pub fn from_coo(coo: &Coo) -> Self {
        let Coo { rows, cols, row_idxs, col_idxs, values } = coo;
        let mut order: Vec<usize> = (0..values.len()).collect();
        if !row_idxs.is_sorted() {
            order.sort_by_key(|&i| (row_idxs[i], col_idxs[i]));
        }
        let mut row_ptrs = vec![0; rows + 1];
        for &row in row_idxs {
            row_ptrs[row as usize + 1] += 1;
        }
        accumulate(&mut row_ptrs);
        let (col_idxs, values) = order.iter().map(|&i| (col_idxs[i], values[i])).unzip();
        Self { rows: *rows, cols: *cols, row_ptrs, col_idxs, values }
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
        same_length("csr", &[("row_ptrs", self.row_ptrs.len())], self.rows + 1)?;
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

    /// As coordinates, by rows.
    pub fn to_coo(&self) -> Coo {
        let row_idxs =
            (0..self.rows).flat_map(|row| std::iter::repeat_n(row as u32, self.len(row))).collect();
        let (col_idxs, values) = (self.col_idxs.clone(), self.values.clone());
        Coo { rows: self.rows, cols: self.cols, row_idxs, col_idxs, values }
    }

    /// As compressed columns; rows rise within each.
    pub fn to_csc(&self) -> Csc {
        let Self { row_ptrs, col_idxs, values, .. } = self.transposed();
        Csc { rows: self.rows, cols: self.cols, col_ptrs: row_ptrs, row_idxs: col_idxs, values }
    }

    /// The transposed matrix; columns rise within each row.
    pub fn transposed(&self) -> Self {
        let mut row_ptrs = vec![0; self.cols + 1];
        for &col in &self.col_idxs {
            row_ptrs[col as usize + 1] += 1;
        }
        accumulate(&mut row_ptrs);
        let mut next = row_ptrs.clone();
        let mut col_idxs = vec![0; self.entries()];
        let mut values = vec![0.0; self.entries()];
        for row in 0..self.rows {
            for (col, value) in self.row(row) {
                let at = next[col as usize] as usize;
                next[col as usize] += 1;
                (col_idxs[at], values[at]) = (row as u32, value);
            }
        }
        Self { rows: self.cols, cols: self.rows, row_ptrs, col_idxs, values }
    }

    /// With as many places in every row as its longest has entries.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if there are 2^32 places or more: one long row makes all of them long.
    pub fn to_ell(&self) -> Result<Ell> {
        Ok(self.to_hybrid(self.longest())?.ell)
    }

    /// With `width` places in every row, and a list of what does not fit.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 places or more.
    pub fn to_hybrid(&self, width: usize) -> Result<Hybrid> {
        let (rows, cols) = (self.rows, self.cols);
        let places = places(&[rows, width], "ell", || format!("{rows} rows of {width}"))?;
        let (col_idxs, values) = (filled("ell", places, PADDING)?, filled("ell", places, 0.0)?);
        let mut ell = Ell { rows, cols, width, col_idxs, values };
        let mut coo = Coo { rows, cols, ..Coo::default() };
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

    /// Rows `first..end` by falling length; rows of the same length keep their order.
    fn by_length(&self, first: usize, end: usize) -> impl Iterator<Item = u32> + use<> {
        let mut order: Vec<u32> = (first as u32..end as u32).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(self.len(row as usize)));
        order.into_iter()
    }

    /// As jagged diagonals.
    pub fn to_jds(&self) -> Jds {
        let row_order: Vec<u32> = self.by_length(0, self.rows).collect();
        let mut jds = Jds { rows: self.rows, cols: self.cols, diagonal_ptrs: vec![0], ..Jds::default() };
        for k in 0..self.longest() {
            for &row in row_order.iter().take_while(|&&row| self.len(row as usize) > k) {
                let at = self.row_ptrs[row as usize] as usize + k;
                jds.col_idxs.push(self.col_idxs[at]);
                jds.values.push(self.values[at]);
            }
            jds.diagonal_ptrs.push(jds.values.len() as u32);
        }
        Jds { row_order, ..jds }
    }

    /// In slices of `slice` rows, sorted within windows of `window` rows.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a slice or window of 0 rows;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 places or more.
    pub fn to_sell(&self, slice: usize, window: usize) -> Result<Sell> {
        if slice == 0 || window == 0 {
            return Err(err!(
                InvalidArgument,
                "sell: slices of {slice} rows in windows of {window}; both have at least 1"
            ));
        }
        let mut row_order: Vec<u32> = (0..self.rows)
            .step_by(window)
            .flat_map(|first| self.by_length(first, self.rows.min(first.saturating_add(window))))
            .collect();
        let slices = self.rows.div_ceil(slice);
        row_order.resize(elements("sell", "row_order", &[slices, slice])?, PADDING);
        let len = |row: u32| if row == PADDING { 0 } else { self.len(row as usize) };
        let mut slice_ptrs = vec![0];
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

    /// From rows of entries.
    fn from_rows(rows: Vec<Vec<(u32, f32)>>, cols: usize) -> Self {
        let mut matrix = Self { rows: rows.len(), cols, row_ptrs: vec![0], ..Self::default() };
        for (col, value) in rows.into_iter().flat_map(|row| {
            matrix.row_ptrs.push(matrix.row_ptrs.last().unwrap_or(&0) + row.len() as u32);
            row
        }) {
            matrix.col_idxs.push(col);
            matrix.values.push(value);
        }
        matrix
    }
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

/// `len` times `value`, if there is memory for it: what a file says of itself is no reason to end the program.
fn filled<T: Clone>(format: &str, len: usize, value: T) -> Result<Vec<T>> {
    let mut list = Vec::new();
    if list.try_reserve_exact(len).is_err() {
        let bytes = len.saturating_mul(size_of::<T>());
        return Err(err!(
            OutOfMemory,
            "{format}: a list of {len} elements needs {bytes} bytes of the host's memory"
        ));
    }
    list.resize(len, value);
    Ok(list)
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
        same_length("csc", &[("col_ptrs", self.col_ptrs.len())], self.cols + 1)?;
        same_length("csc", &[("row_idxs", self.row_idxs.len())], self.values.len())?;
        rising("csc", "col_ptrs", &self.col_ptrs, self.values.len())?;
        in_range("csc", "row_idxs", &self.row_idxs, self.rows, false)
    }

    /// As compressed rows; columns rise within each.
    pub fn to_csr(&self) -> Csr {
        let Self { rows, cols, col_ptrs, row_idxs, values } = self.clone();
        Csr { rows: cols, cols: rows, row_ptrs: col_ptrs, col_idxs: row_idxs, values }.transposed()
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

    /// The entries of each row.
    fn entries(&self) -> Vec<Vec<(u32, f32)>> {
        let row = |row| {
            let places = (0..self.width).map(move |k| k * self.rows + row);
            places.map(|at| (self.col_idxs[at], self.values[at])).take_while(|(col, _)| *col != PADDING)
        };
        (0..self.rows).map(|r| row(r).collect()).collect()
    }

    /// As compressed rows.
    pub fn to_csr(&self) -> Csr {
        Csr::from_rows(self.entries(), self.cols)
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
    pub fn to_csr(&self) -> Csr {
        let mut rows = self.ell.entries();
        let Coo { row_idxs, col_idxs, values, .. } = &self.coo;
        for ((&row, &col), &value) in row_idxs.iter().zip(col_idxs).zip(values) {
            rows[row as usize].push((col, value));
        }
        Csr::from_rows(rows, self.ell.cols)
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
    pub fn to_csr(&self) -> Csr {
        let mut rows = vec![Vec::new(); self.rows];
        for pair in self.diagonal_ptrs.windows(2) {
            for (at, &row) in (pair[0] as usize..pair[1] as usize).zip(&self.row_order) {
                rows[row as usize].push((self.col_idxs[at], self.values[at]));
            }
        }
        Csr::from_rows(rows, self.cols)
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
    pub fn to_csr(&self) -> Csr {
        let mut rows = vec![Vec::new(); self.rows];
        for (order, pair) in self.row_order.chunks(self.slice).zip(self.slice_ptrs.windows(2)) {
            for at in pair[0] as usize..pair[1] as usize {
                let row = order[(at - pair[0] as usize) % self.slice];
                if self.col_idxs[at] != PADDING {
                    rows[row as usize].push((self.col_idxs[at], self.values[at]));
                }
            }
        }
        Csr::from_rows(rows, self.cols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

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
        let csc = csr.to_csc();
        assert_eq!(csc.col_ptrs, [0, 1, 3, 5, 7, 8]);
        assert_eq!(csc.row_idxs, [2, 0, 2, 2, 3, 0, 2, 2]);
        assert_eq!(csc.values, [3.0, 1.0, 4.0, 5.0, 8.0, 2.0, 6.0, 7.0]);
        let hybrid = csr.to_hybrid(2).unwrap();
        assert_eq!(hybrid.ell.col_idxs, [1, PADDING, 0, 2, 3, PADDING, 1, PADDING]);
        assert_eq!(hybrid.ell.values, [1.0, 0.0, 3.0, 8.0, 2.0, 0.0, 4.0, 0.0]);
        assert_eq!((hybrid.coo.row_idxs, hybrid.coo.col_idxs), (vec![2, 2, 2], vec![2, 3, 4]));
        let jds = csr.to_jds();
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
            assert_eq!(Csr::from_triplets(&csr.to_coo(), Duplicates::Refuse).unwrap(), csr);
            csr.to_coo().validate().unwrap();
            csr.to_csc().validate().unwrap();
            assert_eq!(csr.to_csc().to_csr(), csr);
            assert_eq!(csr.transposed().transposed(), csr);
            let ell = csr.to_ell().unwrap();
            ell.validate().unwrap();
            assert_eq!(ell.to_csr(), csr);
            for width in [0, 1, 4, 50] {
                let hybrid = csr.to_hybrid(width).unwrap();
                hybrid.validate().unwrap();
                assert_eq!(hybrid.to_csr(), csr);
            }
            csr.to_jds().validate().unwrap();
            assert_eq!(csr.to_jds().to_csr(), csr);
            for (slice, window) in [(1, 1), (4, 8), (32, 32), (8, usize::MAX)] {
                let sell = csr.to_sell(slice, window).unwrap();
                sell.validate().unwrap();
                assert_eq!(sell.to_csr(), csr);
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
        refused(Csr { row_ptrs: vec![0, 2, 1, 7, 8], ..csr.clone() }.validate(), "`row_ptrs`[2] is 1");
        refused(Csr { row_ptrs: vec![1, 2, 2, 7, 8], ..csr.clone() }.validate(), "begins at 0");
        refused(Csr { row_ptrs: vec![0, 2, 2, 7, 9], ..csr.clone() }.validate(), "number of entries, 8");
        refused(Csr { row_ptrs: vec![0, 8], ..csr.clone() }.validate(), "has 2 elements and must have 5");
        refused(Csr { cols: 4, ..csr.clone() }.validate(), "`col_idxs`[6] is 4, and the matrix has 4");
        refused(Csr { values: vec![], ..csr.clone() }.validate(), "`col_idxs` has 8 elements");
        refused(Coo { rows: 2, ..csr.to_coo() }.validate(), "`row_idxs`[2] is 2");
        refused(Csc { rows: 3, ..csr.to_csc() }.validate(), "`row_idxs`[4] is 3");
        let mut ell = csr.to_ell().unwrap();
        ell.col_idxs[5] = 0;
        refused(ell.validate(), "behind padding of row 1");
        let mut jds = csr.to_jds();
        jds.row_order[1] = 2;
        refused(jds.validate(), "`row_order`[1] is 2");
        let jds = Jds { diagonal_ptrs: vec![0, 1, 5, 6, 7, 8], ..csr.to_jds() };
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
}
