//! What kernels must know of a matrix beside its lists, and the lists themselves.

use super::{Coo, Csc, Csr, Ell, Hybrid, Jds, Sell};
use crate::element::DType;
use crate::error::{Result, copied, err, filled};
use crate::program::{Access, Cost, DeviceProfile, Operand, Variant};
use crate::shader::Spec;
use crate::shape::{elements, index_u32};

/// How entries lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// As [`Coo`]: `row_idxs`, `col_idxs`, `values`.
    Coo {
        /// Whether rows never fall.
        sorted: bool,
    },
    /// As [`Csr`]: `row_ptrs`, `col_idxs`, `values`.
    Csr,
    /// As [`Csc`]: `col_ptrs`, `row_idxs`, `values`.
    Csc,
    /// As [`Ell`]: `col_idxs`, `values`.
    Ell {
        /// Places in a row.
        width: usize,
    },
    /// As [`Hybrid`]: the lists of its first part, then those of its second.
    Hybrid {
        /// Places in a row of the first part.
        width: usize,
        /// Entries of the second part.
        list: usize,
        /// Whether rows of the second part never fall.
        sorted: bool,
    },
    /// As [`Jds`]: `row_order`, `diagonal_ptrs`, `col_idxs`, `values`.
    Jds,
    /// As [`Sell`]: `row_order`, `slice_ptrs`, `col_idxs`, `values`.
    Sell {
        /// Rows of a slice.
        slice: usize,
        /// Places of all slices.
        places: usize,
    },
}

impl Format {
    /// Its name, as in the module's table.
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

/// A matrix without its lists: extents, and how it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries, without padding.
    pub entries: usize,
    /// Entries of the longest row (of the longest column in [`Format::Csc`]). A plan for one matrix serves others
    /// whose lists are as long; with longer rows it may be slower.
    pub longest: usize,
    /// How it is stored.
    pub format: Format,
    /// Type of its values on the device, [`DType::F32`] or [`DType::F16`]; sums are of f32 with both.
    pub values: DType,
}

impl MatrixLayout {
    /// Places for entries, with padding.
    pub(crate) fn places(&self) -> usize {
        match self.format {
            Format::Ell { width } => self.rows.saturating_mul(width),
            Format::Hybrid { width, list, .. } => self.rows.saturating_mul(width).saturating_add(list),
            Format::Sell { places, .. } => places,
            _ => self.entries,
        }
    }

    /// Its lists, in order.
    pub(crate) fn operands(&self, op: &str) -> Result<Vec<Operand>> {
        let Self { rows, cols, entries, longest, format, values } = *self;
        let index = index_list;
        let value = |name, len| Operand { name, dtype: values, len, access: Access::Read };
        Ok(match format {
            Format::Coo { .. } => {
                vec![index("row_idxs", entries), index("col_idxs", entries), value("values", entries)]
            }
            Format::Csr => {
                vec![
                    index("row_ptrs", rows.saturating_add(1)),
                    index("col_idxs", entries),
                    value("values", entries),
                ]
            }
            Format::Csc => {
                vec![
                    index("col_ptrs", cols.saturating_add(1)),
                    index("row_idxs", entries),
                    value("values", entries),
                ]
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

    /// Entries of a row in the mean.
    pub(super) fn mean(&self) -> usize {
        self.entries.div_ceil(self.rows.max(1))
    }

    /// Whether some rows are so much longer than the mean that work is better shared between workgroups.
    pub(super) fn skewed(&self) -> bool {
        self.longest > LONG_ROW.max(OUTLIER * self.mean())
    }

    /// The product of this matrix, for texts.
    pub(super) fn name(&self, op: &str) -> String {
        let Self { rows, cols, entries, format, .. } = *self;
        format!("{op} {} {rows} x {cols} with {entries} entries", format.name())
    }

    /// That kernels can multiply it: `operands` are its lists, and what it is multiplied with.
    pub(super) fn check(&self, op: &str, profile: &DeviceProfile, operands: &[Operand]) -> Result<()> {
        let name = self.name(op);
        let Self { rows, cols, entries, longest, format, values } = *self;
        for (what, value) in [("rows", rows), ("cols", cols), ("longest", longest)] {
            index_u32(&name, what, value)?;
        }
        index_u32(&name, "rows + entries", rows.saturating_add(entries))?;
        if let Format::Sell { slice: 0, .. } = format {
            return Err(err!(InvalidArgument, "{name}: slices of 0 rows; a slice has at least 1"));
        }
        if !matches!(values, DType::F32 | DType::F16) {
            return Err(err!(
                InvalidArgument,
                "{name}: values of {values}; a matrix has values of f32 or f16"
            ));
        }
        profile.check_bindings(
            &name,
            operands,
            "take a format with less padding, or multiply bands of rows, a call each",
        )
    }

    /// That a variant is for this format.
    pub(super) fn suits(&self, op: &str, variant: &Variant) -> Result<()> {
        if variant.name.split('-').next() == Some(self.format.name()) {
            return Ok(());
        }
        Err(err!(
            InvalidArgument,
            "{}: the variant `{}` is for another format; convert the matrix, or take `auto`",
            self.name(op),
            variant.name
        ))
    }

    /// What a kernel must know to read values at this binding.
    pub(super) fn values_at(&self, binding: u32, spec: Spec) -> Spec {
        spec.constant("VALUES_BINDING", binding).flag("HALF", self.values == DType::F16)
    }

    /// Bytes of an operation that reads all operands but the last, and writes that one, which it reads too if
    /// `updates` says so; `columns` products for each entry. Padding is not counted: rows end where it begins.
    pub(super) fn cost(&self, operands: &[Operand], columns: usize, updates: bool) -> Cost {
        let padding = self.places().saturating_sub(self.entries);
        // Only the lists of places, of which there are two, have padding.
        let padded = |operand: &&Operand| {
            matches!(operand.name, "col_idxs" | "ell.col_idxs" | "values" | "ell.values")
        };
        let skipped: usize = operands.iter().filter(padded).map(|list| padding * list.dtype.size()).sum();
        let bytes: u64 = operands.iter().map(Operand::bytes).sum();
        let result = operands.last().filter(|_| updates).map_or(0, Operand::bytes);
        Cost {
            flop: 2.0 * self.entries as f64 * columns as f64,
            bytes: (bytes + result).saturating_sub(skipped as u64) as f64,
        }
    }
}

/// A list of indices that is read.
pub(crate) fn index_list(name: &'static str, len: usize) -> Operand {
    Operand { name, dtype: DType::U32, len, access: Access::Read }
}

/// Parts of rows that one dispatch each takes, `step` places or less: first place, and the one behind the last. The last
/// part ends at `end`, however long rows are said to be.
pub(super) fn windows(longest: u32, end: u32, step: u32) -> Vec<(u32, u32)> {
    let count = longest.min(end).div_ceil(step).max(1);
    (0..count).map(|i| (i * step, if i + 1 == count { end } else { (i + 1) * step })).collect()
}

/// Rows longer than this, and than [`OUTLIER`] means, are shared between workgroups.
const LONG_ROW: usize = 1024;

/// See [`LONG_ROW`].
pub(super) const OUTLIER: usize = 8;

/// One of the lists of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum List<'a> {
    /// Rows, columns or pointers.
    Indices(&'a [u32]),
    /// Values.
    Values(&'a [f32]),
}

/// A matrix in the host's memory, in any format: what can be brought to a device.
pub trait SparseMatrix {
    /// Checks the matrix, and says how it is stored.
    ///
    /// # Errors
    /// Those of the format's `validate`.
    fn layout(&self) -> Result<MatrixLayout>;

    /// Its lists, in the order of [`Format`].
    fn lists(&self) -> Vec<List<'_>>;
}

/// The most between two neighbours.
fn longest(ptrs: &[u32]) -> usize {
    ptrs.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
}

/// How often the row comes that comes most often. Rows without entries take no memory.
fn most_of_one(row_idxs: &[u32], sorted: bool, rows: usize) -> Result<usize> {
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

impl SparseMatrix for Coo {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let sorted = self.row_idxs.is_sorted();
        Ok(MatrixLayout {
            rows: self.rows,
            cols: self.cols,
            entries: self.values.len(),
            longest: most_of_one(&self.row_idxs, sorted, self.rows)?,
            format: Format::Coo { sorted },
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![List::Indices(&self.row_idxs), List::Indices(&self.col_idxs), List::Values(&self.values)]
    }
}

impl SparseMatrix for Csr {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let Self { rows, cols, .. } = *self;
        let longest = longest(&self.row_ptrs);
        Ok(MatrixLayout {
            rows,
            cols,
            entries: self.entries(),
            longest,
            format: Format::Csr,
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![List::Indices(&self.row_ptrs), List::Indices(&self.col_idxs), List::Values(&self.values)]
    }
}

impl SparseMatrix for Csc {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let Self { rows, cols, .. } = *self;
        let longest = longest(&self.col_ptrs);
        Ok(MatrixLayout {
            rows,
            cols,
            entries: self.values.len(),
            longest,
            format: Format::Csc,
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![List::Indices(&self.col_ptrs), List::Indices(&self.row_idxs), List::Values(&self.values)]
    }
}

/// How many places hold an entry.
fn entries_of(col_idxs: &[u32]) -> usize {
    col_idxs.iter().filter(|col| **col != super::PADDING).count()
}

impl SparseMatrix for Ell {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let Self { rows, cols, width, .. } = *self;
        Ok(MatrixLayout {
            rows,
            cols,
            entries: entries_of(&self.col_idxs),
            longest: width,
            format: Format::Ell { width },
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![List::Indices(&self.col_idxs), List::Values(&self.values)]
    }
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

impl SparseMatrix for Jds {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let Self { rows, cols, .. } = *self;
        let longest = self.diagonal_ptrs.len() - 1;
        Ok(MatrixLayout {
            rows,
            cols,
            entries: self.values.len(),
            longest,
            format: Format::Jds,
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![
            List::Indices(&self.row_order),
            List::Indices(&self.diagonal_ptrs),
            List::Indices(&self.col_idxs),
            List::Values(&self.values),
        ]
    }
}

impl SparseMatrix for Sell {
    fn layout(&self) -> Result<MatrixLayout> {
        self.validate()?;
        let Self { rows, cols, slice, .. } = *self;
        let format = Format::Sell { slice, places: self.values.len() };
        let longest = longest(&self.slice_ptrs) / slice;
        Ok(MatrixLayout {
            rows,
            cols,
            entries: entries_of(&self.col_idxs),
            longest,
            format,
            values: DType::F32,
        })
    }

    fn lists(&self) -> Vec<List<'_>> {
        vec![
            List::Indices(&self.row_order),
            List::Indices(&self.slice_ptrs),
            List::Indices(&self.col_idxs),
            List::Values(&self.values),
        ]
    }
}
