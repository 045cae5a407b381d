//! The layout of a sparse matrix, and its lists.

use super::by_row::{order_of, order_on_host};
use super::{Coo, Csc, Csr, Ell, Hybrid, Jds, Sell};
use crate::program::prelude::*;

/// A storage format, and the order of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// [`Coo`]: `row_idxs`, `col_idxs`, `values`.
    Coo {
        /// Whether entries are sorted by row.
        sorted: bool,
    },
    /// [`Csr`]: `row_ptrs`, `col_idxs`, `values`.
    Csr,
    /// [`Csc`]: `col_ptrs`, `row_idxs`, `values`.
    Csc,
    /// [`Ell`]: `col_idxs`, `values`.
    Ell {
        /// Slots of each row.
        width: usize,
    },
    /// [`Hybrid`]: the lists of its ELL part, then those of its COO part.
    Hybrid {
        /// Slots of each row of the ELL part.
        width: usize,
        /// Entries of the COO part.
        list: usize,
        /// Whether the COO part is sorted by row.
        sorted: bool,
    },
    /// [`Jds`]: `row_order`, `diagonal_ptrs`, `col_idxs`, `values`.
    Jds,
    /// [`Sell`]: `row_order`, `slice_ptrs`, `col_idxs`, `values`.
    Sell {
        /// Rows in a slice.
        slice: usize,
        /// Slots of all slices, padding included.
        places: usize,
    },
}

impl Format {
    /// Returns the name, as in the table of [`sparse`](crate::sparse).
    pub fn name(self) -> &'static str {
        match self {
            Self::Coo { .. } => "coo",
            Self::Csr => "csr",
            Self::Csc => "csc",
            Self::Ell { .. } => "ell",
            Self::Hybrid { .. } => "hybrid",
            Self::Jds => "jds",
            Self::Sell { .. } => "sell",
        }
    }
}

/// The shape of a sparse matrix, its number of entries and its storage format, without the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries, without padding.
    pub entries: usize,
    /// Entries of the longest row (in [`Format::Csc`], of the longest column). A plan also serves another matrix with
    /// lists of the same lengths; if its rows are longer, the plan may be slower.
    pub longest: usize,
    /// The storage format.
    pub format: Format,
    /// Element type of the values on the device: [`DType::F32`] or [`DType::F16`]. Sums are f32 for both.
    pub values: DType,
}

impl MatrixLayout {
    /// Returns the number of slots, padding included.
    pub(crate) fn places(&self) -> usize {
        match self.format {
            Format::Ell { width } => self.rows.saturating_mul(width),
            Format::Hybrid { width, list, .. } => self.rows.saturating_mul(width).saturating_add(list),
            Format::Sell { places, .. } => places,
            _ => self.entries,
        }
    }

    /// Returns its lists as operands, in order.
    pub(crate) fn operands(&self, op: &str) -> Result<Vec<Operand>> {
        let Self { rows, cols, entries, longest, format, values } = *self;
        let index = index_list;
        let value = |name, len| Operand { name, dtype: values, len, access: Access::Read };
        Ok(match format {
            Format::Coo { .. } => {
                vec![index("row_idxs", entries), index("col_idxs", entries), value("values", entries)]
            }
            Format::Csr => {
                vec![index("row_ptrs", rows.saturating_add(1)), index("col_idxs", entries), value("values", entries)]
            }
            Format::Csc => {
                vec![index("col_ptrs", cols.saturating_add(1)), index("row_idxs", entries), value("values", entries)]
            }
            Format::Ell { width } => {
                let places = elements(op, "col_idxs", &[rows, width])?;
                vec![index("col_idxs", places), value("values", places)]
            }
            Format::Hybrid { width, list, .. } => {
                let places = elements(op, "ell.col_idxs", &[rows, width])?;
                vec![
                    index("ell.col_idxs", places),
                    value("ell.values", places),
                    index("coo.row_idxs", list),
                    index("coo.col_idxs", list),
                    value("coo.values", list),
                ]
            }
            Format::Jds => vec![
                index("row_order", rows),
                index("diagonal_ptrs", longest.saturating_add(1)),
                index("col_idxs", entries),
                value("values", entries),
            ],
            Format::Sell { slice, places } => {
                let slices = rows.div_ceil(slice.max(1));
                vec![
                    index("row_order", elements(op, "row_order", &[slices, slice])?),
                    index("slice_ptrs", slices + 1),
                    index("col_idxs", places),
                    value("values", places),
                ]
            }
        })
    }

    /// Returns the mean number of entries in a row, rounded up.
    pub(super) fn mean(&self) -> usize {
        self.entries.div_ceil(self.rows.max(1))
    }

    /// Returns whether some rows are so much longer than the mean that workgroups should share rows.
    pub(super) fn skewed(&self) -> bool {
        self.longest > LONG_ROW.max(OUTLIER * self.mean())
    }

    /// Returns whether teams of `lanes` threads, one a row, are too few for a graphics card while each lane walks
    /// `walk` entries.
    pub(super) fn few_rows(&self, lanes: usize, walk: usize, profile: &DeviceProfile) -> bool {
        !profile.quirks.serial_workgroups && walk > LONG_WALK && self.rows.saturating_mul(lanes) < ENOUGH_THREADS
    }

    /// Returns whether products add to a result that is scaled first.
    pub(super) fn adds(&self) -> bool {
        matches!(self.format, Format::Coo { .. } | Format::Csc | Format::Hybrid { width: 0, .. })
    }

    /// Describes the op on this matrix, for error texts.
    pub(super) fn name(&self, op: &str) -> String {
        let Self { rows, cols, entries, format, .. } = *self;
        format!("{op} {} {rows} x {cols} with {entries} entries", format.name())
    }

    /// Checks that kernels can multiply the matrix. `operands` are its lists and the dense operands.
    pub(super) fn check(&self, op: &str, profile: &DeviceProfile, operands: &[Operand]) -> Result<()> {
        let name = self.name(op);
        let Self { rows, cols, entries, longest, format, values } = *self;
        for (what, value) in [("rows", rows), ("cols", cols), ("longest", longest)] {
            index_u32(&name, what, value)?;
        }
        index_u32(&name, "rows + entries", rows.saturating_add(entries))?;
        if let Format::Sell { slice: 0, .. } = format {
            return Err(err!(InvalidArgument, "{name}: slices of 0 rows; a slice needs at least 1"));
        }
        if !matches!(values, DType::F32 | DType::F16) {
            return Err(err!(InvalidArgument, "{name}: values of {values}; use f32 or f16"));
        }
        let remedy = "use a format with less padding, or multiply chunks of rows, one call each";
        profile.check_bindings(&name, operands, remedy)
    }

    pub(super) fn suits(&self, op: &str, variant: &Variant) -> Result<()> {
        if variant.name.split('-').next() == Some(self.format.name()) {
            return Ok(());
        }
        Err(err!(
            InvalidArgument,
            "{}: the variant `{}` takes another format; convert the matrix, or use `auto`",
            self.name(op),
            variant.name
        ))
    }

    /// Sets the constants of a kernel that reads values at this binding.
    pub(super) fn values_at(&self, binding: u32, spec: Spec) -> Spec {
        spec.constant("VALUES_BINDING", binding).flag("HALF", self.values == DType::F16)
    }

    /// Returns the cost of `columns` products for each entry. All operands but the last are read; the last is written,
    /// and read too if `updates`. Padding does not count, because rows end at their first padding.
    pub(super) fn cost(&self, operands: &[Operand], columns: usize, updates: bool) -> Cost {
        let padding = self.places().saturating_sub(self.entries);
        // Only the two lists of slots have padding.
        let padded = |operand: &&Operand| matches!(operand.name, "col_idxs" | "ell.col_idxs" | "values" | "ell.values");
        let skipped: usize = operands.iter().filter(padded).map(|list| padding * list.dtype.size()).sum();
        // The order by row replaces the indices of the entries.
        let ordered = order_of(operands).is_some();
        let replaced = if ordered { self.unordered_lists() } else { 0..0 };
        let read = operands.iter().enumerate().filter(|(i, _)| !replaced.contains(i));
        let bytes: u64 = read.map(|(_, operand)| operand.bytes()).sum();
        let result = operands.last().filter(|_| updates).map_or(0, Operand::bytes);
        Cost {
            flop: 2.0 * self.entries as f64 * columns as f64,
            bytes: (bytes + result).saturating_sub(skipped as u64) as f64,
        }
    }
}

pub(crate) fn index_list(name: &'static str, len: usize) -> Operand {
    Operand { name, dtype: DType::U32, len, access: Access::Read }
}

/// Splits rows into ranges of at most `step` slots, a dispatch each. The last range ends at `end`, whatever `longest`
/// is.
pub(super) fn windows(longest: u32, end: u32, step: u32) -> Vec<(u32, u32)> {
    let count = longest.min(end).div_ceil(step).max(1);
    (0..count).map(|i| (i * step, if i + 1 == count { end } else { (i + 1) * step })).collect()
}

/// Workgroups share rows longer than this and than [`OUTLIER`] times the mean.
const LONG_ROW: usize = 1024;

/// See [`MatrixLayout::few_rows`].
const ENOUGH_THREADS: usize = 1 << 15;
const LONG_WALK: usize = 64;

/// See [`LONG_ROW`].
pub(super) const OUTLIER: usize = 8;

/// One list of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum List<'a> {
    /// Row indices, column indices or pointers.
    Indices(&'a [u32]),
    /// Values.
    Values(&'a [f32]),
}

/// A host matrix in any format that can be uploaded.
pub trait SparseMatrix {
    /// Checks the matrix and returns its layout.
    ///
    /// # Errors
    /// As `validate` of the format.
    fn layout(&self) -> Result<MatrixLayout>;

    /// Returns its lists, in the order of [`Format`].
    fn lists(&self) -> Vec<List<'_>>;

    /// Returns the order by row that products take after the lists of a matrix in compressed columns or of unsorted
    /// coordinates: the rows, the columns and the indices of its entries, sorted by row. Other formats have none.
    ///
    /// ```
    /// use tilework::sparse::{Coo, SparseMatrix};
    /// let (row_idxs, col_idxs, values) = (vec![1, 0], vec![2, 3], vec![5.0, 7.0]);
    /// let a = Coo { rows: 2, cols: 4, row_idxs, col_idxs, values };
    /// assert_eq!(a.by_row()?, [[0, 1], [3, 2], [1, 0]]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    fn by_row(&self) -> Result<Vec<Vec<u32>>> {
        let layout = self.layout()?;
        let lists = self.lists();
        let indices: Vec<_> = lists
            .get(layout.unordered_lists())
            .unwrap_or_default()
            .iter()
            .filter_map(|list| if let List::Indices(list) = list { Some(*list) } else { None })
            .collect();
        order_on_host(&layout, &indices)
    }
}

/// Returns the largest difference between neighbours.
fn longest(ptrs: &[u32]) -> usize {
    ptrs.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
}

/// Returns the number of entries of the longest row, in memory proportional to the entries.
fn longest_row(row_idxs: &[u32], sorted: bool, rows: usize) -> Result<usize> {
    let longest_run = |rows: &[u32]| rows.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
    if sorted {
        return Ok(longest_run(row_idxs));
    }
    if rows / 2 <= row_idxs.len() {
        let mut counts = filled("coo", rows, 0usize)?;
        row_idxs.iter().for_each(|&row| counts[row as usize] += 1);
        return Ok(counts.into_iter().max().unwrap_or(0));
    }
    let mut ordered = copied("coo", row_idxs)?;
    ordered.sort_unstable();
    Ok(longest_run(&ordered))
}

/// Returns the number of slots that hold an entry.
fn entries_of(col_idxs: &[u32]) -> usize {
    col_idxs.iter().filter(|col| **col != super::PADDING).count()
}

/// Implements [`SparseMatrix`]: lists of indices, then lists of values; entries, longest row and format.
macro_rules! sparse_matrix {
    ($(
        $of:ident $matrix:ident: [$($idxs:ident),*] [$($values:ident),*];
        $entries:expr, $longest:expr, $format:expr;
    )*) => {$(
        impl SparseMatrix for $of {
            fn layout(&self) -> Result<MatrixLayout> {
                self.validate()?;
                let $matrix = self;
                let (rows, cols, values) = (self.rows, self.cols, DType::F32);
                Ok(MatrixLayout { rows, cols, entries: $entries, longest: $longest, format: $format, values })
            }

            fn lists(&self) -> Vec<List<'_>> {
                vec![$(List::Indices(&self.$idxs),)* $(List::Values(&self.$values)),*]
            }
        }
    )*};
}

sparse_matrix! {
    Coo m: [row_idxs, col_idxs] [values];
    m.values.len(),
    longest_row(&m.row_idxs, m.row_idxs.is_sorted(), m.rows)?,
    Format::Coo { sorted: m.row_idxs.is_sorted() };

    Csr m: [row_ptrs, col_idxs] [values];
    m.values.len(), longest(&m.row_ptrs), Format::Csr;

    Csc m: [col_ptrs, row_idxs] [values];
    m.values.len(), longest(&m.col_ptrs), Format::Csc;

    Ell m: [col_idxs] [values];
    entries_of(&m.col_idxs), m.width, Format::Ell { width: m.width };

    Jds m: [row_order, diagonal_ptrs, col_idxs] [values];
    m.values.len(), m.diagonal_ptrs.len() - 1, Format::Jds;

    Sell m: [row_order, slice_ptrs, col_idxs] [values];
    entries_of(&m.col_idxs),
    longest(&m.slice_ptrs) / m.slice,
    Format::Sell { slice: m.slice, places: m.values.len() };
}

impl SparseMatrix for Hybrid {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let (ell, coo) = (self.ell.layout()?, self.coo.layout()?);
        let sorted = coo.format == Format::Coo { sorted: true };
        let format = Format::Hybrid { width: self.ell.width, list: coo.entries, sorted };
        let longest = ell.longest + coo.longest;
        Ok(MatrixLayout { entries: ell.entries + coo.entries, longest, format, ..ell })
    }

    fn lists(&self) -> Vec<List<'_>> {
        [self.ell.lists(), self.coo.lists()].concat()
    }
}
