//! Conversions between formats, on the device.

mod duplicates;
mod expand;
mod insert;
mod measures;
mod order;
mod sorted;
mod steps;

pub(crate) use duplicates::{find_runs, sum_runs};
pub(crate) use expand::point_at_rest;
pub(crate) use insert::insert_places;
pub(crate) use measures::{MEASURES, Measured, measure, measure_longest};
pub(crate) use order::order_slices;

use super::{Described, Format, MatrixLayout, THROUGH};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, DeviceProfile, Form, Op, Operand, Operation, Program, Role, Variant, choose,
};
use crate::shape::index_u32;
use steps::{Compressed, ConvertSteps};

/// Conversion of a sparse matrix from one format to another, on the device.
///
/// [`Gpu::convert_matrix`](crate::Gpu::convert_matrix) finds how long the lists of the other format are, makes them and
/// fills them. This is the last of these steps, for programs that convert again and again between matrices whose lists are
/// as long each time.
///
/// # Shapes
/// Operands are two matrices, as [`MatrixLayout`] describes them: one that is read and one that is written, which must not
/// share memory. Both have the same extents, entries, and type of values: f32, or f16, on any device. Without types (as [`Executable`](crate::gpu::Executable)) they
/// are the lists of the one format, in its order, then those of the other. Any extent may be 0, and there may be no entries.
///
/// Rows keep the order of their entries, also of entries at one position, in every format but two: what goes into or comes
/// out of [`Format::Csc`] comes by rising row or column, and coordinates in no order (`sorted: false`) are sorted by row,
/// then by column. Entries at one position keep their order then, too; none are added up
/// ([`Gpu::sum_duplicates`](crate::Gpu::sum_duplicates) does). The result is what
/// [`reference::spconvert`](crate::reference::spconvert) and the methods of [`Csr`](super::Csr) give, element for element.
///
/// Entries that do not fit into the matrix that is written (a row longer than its places) are left out, and what of it
/// nothing is for is padding.
///
/// # Precision and determinism
/// Values are moved, never computed with: every bit of them comes through. Same inputs, same results, on every device.
///
/// # Cost
/// No flop. To and from compressed columns, and from coordinates in no order, entries are sorted
/// ([`RadixSort`](crate::RadixSort)): a pass for each 8 bits of the indices that they are sorted by, with keys of one word or two.
/// All else reads and writes each list about once. Scratch: keys and values twice where they are sorted, and some words for
/// each row; a matrix of compressed rows where neither of the two is one; and a word for each value of f16.
///
/// # Variants
/// `radix`, on every device.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): matrices of other extents, numbers of entries or types.
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, slices or windows of 0 rows.
/// [`TooLarge`](crate::ErrorKind::TooLarge): a list, or keys to sort by, above the device's largest binding.
///
/// # Algorithm
/// Stable radix sort by packed indices; pointers by binary search in sorted indices or by scans of lengths; every
/// entry of the result looks for its row among pointers and fetches itself (`shaders/sparse/spconvert_gather.wgsl`).
///
/// # Example
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{Coo, Target};
///
/// let gpu = Gpu::new()?;
/// let (row_idxs, col_idxs, values) = (vec![1, 0, 1], vec![2, 1, 0], vec![4.0, 1.0, 0.5]);
/// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
/// let b = gpu.convert_matrix(&a, Target::Csr)?;
///
/// // Again, with what is there.
/// let plan = Spconvert::new(a.layout(), b.layout()).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b)?;
/// rec.submit()?;
/// let csr = b.read()?.to_csr()?;
/// assert_eq!((csr.row_ptrs, csr.col_idxs), (vec![0, 1, 3], vec![1, 0, 2]));
/// assert_eq!(csr.values, [1.0, 0.5, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spconvert {
    pub(crate) from: MatrixLayout,
    pub(crate) to: MatrixLayout,
    pub(crate) window: usize,
    /// Whether the order of rows and the beginnings of slices are there already.
    ordered: bool,
    variant: String,
}

/// A format to convert to, with what the format leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// [`Coo`](super::Coo), by rows.
    Coo,
    /// [`Csr`](super::Csr).
    Csr,
    /// [`Csc`](super::Csc).
    Csc,
    /// [`Ell`](super::Ell), as wide as the longest row.
    Ell,
    /// [`Hybrid`](super::Hybrid).
    Hybrid {
        /// Places in a row; `None` for as many as four of five rows need
        /// ([`Statistics::hybrid_width`](super::Statistics::hybrid_width)).
        width: Option<usize>,
    },
    /// [`Jds`](super::Jds).
    Jds,
    /// [`Sell`](super::Sell).
    Sell {
        /// Rows of a slice.
        slice: usize,
        /// Rows that are sorted among themselves.
        window: usize,
    },
}

impl Target {
    /// The format of this name, as in the table of [`sparse`](crate::sparse), with what suits most matrices where it leaves
    /// something open.
    ///
    /// ```
    /// use tilework::sparse::Target;
    /// assert_eq!(Target::named("sell"), Some(Target::Sell { slice: 32, window: 1024 }));
    /// assert_eq!(Target::named("dia"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "coo" => Self::Coo,
            "csr" => Self::Csr,
            "csc" => Self::Csc,
            "ell" => Self::Ell,
            "hybrid" => Self::Hybrid { width: None },
            "jds" => Self::Jds,
            "sell" => Self::Sell { slice: 32, window: 1024 },
            _ => return None,
        })
    }
}

const VARIANTS: &[Variant] =
    &[Variant::portable("radix", "stable radix sorts, scans and binary searches; entries fetch themselves")];

impl Spconvert {
    /// From a matrix that is stored in one way to one that is stored in another. Of the latter, `longest` must be right:
    /// entries of the longest row (in [`Format::Csc`] it does not matter).
    pub fn new(from: MatrixLayout, to: MatrixLayout) -> Self {
        Self { from, to, window: 1024, ordered: false, variant: "auto".into() }
    }

    /// Rows that are sorted among themselves by falling length, if the result is [`Format::Sell`]. The default is 1024.
    #[must_use]
    pub fn window(mut self, rows: usize) -> Self {
        self.window = rows;
        self
    }

    /// Takes the order of rows and the beginnings of slices as they are in the result, in [`Format::Sell`].
    pub(crate) fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// How the result is stored.
    pub(crate) fn result(&self) -> MatrixLayout {
        self.to
    }

    crate::program::variants!(variant);

    fn check(&self) -> Result<()> {
        let Self { from, to, window, .. } = self;
        for (what, value) in [
            ("rows", from.rows),
            ("cols", from.cols),
            ("entries", from.entries),
            ("longest", from.longest),
            ("longest", to.longest),
        ] {
            index_u32("spconvert", what, value)?;
        }
        let extents = (from.rows, from.cols, from.entries) == (to.rows, to.cols, to.entries);
        if !extents || from.values != to.values {
            return Err(err!(
                Shape,
                "spconvert: from {} x {} with {} entries of {} to {} x {} with {} of {}; a conversion keeps all of these",
                from.rows,
                from.cols,
                from.entries,
                from.values,
                to.rows,
                to.cols,
                to.entries,
                to.values
            ));
        }
        if !matches!(from.values, DType::F32 | DType::F16) {
            return Err(err!(
                InvalidArgument,
                "spconvert: values of {}; a matrix has values of f32 or f16",
                from.values
            ));
        }
        let no_diagonals = |layout: &MatrixLayout| layout.format == Format::Jds && layout.longest == 0;
        if from.entries > 0 && (from.rows.min(from.cols) == 0 || no_diagonals(from) || no_diagonals(to)) {
            return Err(err!(
                Shape,
                "spconvert: {} entries in {} x {} with rows of {} at the most, which hold none",
                from.entries,
                from.rows,
                from.cols,
                to.longest
            ));
        }
        let no_slices = |layout: &MatrixLayout| matches!(layout.format, Format::Sell { slice: 0, .. });
        if no_slices(from) || no_slices(to) || *window == 0 {
            return Err(err!(
                InvalidArgument,
                "spconvert: slices or windows of 0 rows; a slice has at least 1, and a window, too"
            ));
        }
        Ok(())
    }
}

/// Lists that are written, under names of their own.
fn written(operand: &Operand) -> Operand {
    let name = match operand.name {
        "row_idxs" => "to.row_idxs",
        "col_idxs" => "to.col_idxs",
        "values" => "to.values",
        "row_ptrs" => "to.row_ptrs",
        "col_ptrs" => "to.col_ptrs",
        "ell.col_idxs" => "to.ell.col_idxs",
        "ell.values" => "to.ell.values",
        "coo.row_idxs" => "to.coo.row_idxs",
        "coo.col_idxs" => "to.coo.col_idxs",
        "coo.values" => "to.coo.values",
        "row_order" => "to.row_order",
        "diagonal_ptrs" => "to.diagonal_ptrs",
        "slice_ptrs" => "to.slice_ptrs",
        other => other,
    };
    Operand { name, access: Access::Write, ..*operand }
}

impl Op<f32> for Spconvert {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let Self { from, to, .. } = self;
        let name = format!("spconvert {} to {}", from.format.name(), to.format.name());
        let (_, decision) = choose("spconvert", &self.variant, VARIANTS, profile, || {
            ("radix", "the way that runs on every device".into())
        })?;
        let mut operands = from.operands("spconvert")?;
        let first = operands.len();
        operands.extend(to.operands("spconvert")?.iter().map(written));
        if self.ordered {
            operands[first..first + 2].iter_mut().for_each(|o| o.access = Access::ReadWrite);
        }
        let program = Program::new("spconvert", decision);
        let mut steps = ConvertSteps::new(profile, &name, program, operands)?;
        let lists = steps.lists()?;
        let (source, target) = lists.split_at(first);
        match (from.format, to.format, source, target) {
            (_, Format::Csr, _, &[ptrs, idxs, values]) => {
                steps.collect_rows(from, source, Compressed { ptrs, idxs, values })?;
            }
            (Format::Csr, _, &[ptrs, idxs, values], _) => {
                steps.spread_rows(self, Compressed { ptrs, idxs, values }, from.entries, to, target)?;
            }
            (Format::Coo { sorted }, Format::Csc, &[rows, cols, values], &[ptrs, idxs, values_out]) => {
                let sorted = steps.sort_entries(&sorted::Entries {
                    n: from.entries,
                    other: rows,
                    segments: None,
                    other_above: false,
                    idxs: cols,
                    values,
                    extents: [from.cols, from.rows],
                    by_minor: !sorted,
                    values_out,
                })?;
                steps.compress(&sorted, from.cols, Compressed { ptrs, idxs, values: values_out });
            }
            _ => {
                let ptrs = steps.words("pointers of rows", from.rows + 1)?;
                let idxs = steps.words("columns", from.entries)?;
                let values = steps.words("values", from.entries)?;
                let rows = Compressed { ptrs, idxs, values };
                steps.collect_rows(from, source, rows)?;
                steps.spread_rows(self, rows, from.entries, to, target)?;
            }
        }
        Ok(steps.finish())
    }
}

pub(super) const INFO: Operation = Operation {
    name: "spconvert",
    about: "a sparse matrix in another format",
    matrix: true,
    types: &[DType::F32],
    options: &[THROUGH],
    make: Some(make),
    variants: Spconvert::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (lists, Described { layout, to, .. }) = asked.sparse::<Described>()?;
    let to = to.unwrap_or(*layout);
    let results = to.operands(asked.name())?.into_iter().map(|list| Role::Result(vec![list.len]));
    let operands = lists.into_iter().map(Role::Given).chain(results).collect();
    Ok(Form::new::<f32>(Spconvert::new(*layout, to).variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let layout = |cols, format| MatrixLayout {
        rows: 1000,
        cols,
        entries: 3000,
        longest: 9,
        format,
        values: DType::F32,
    };
    let formats = [
        Format::Coo { sorted: true },
        Format::Coo { sorted: false },
        Format::Csr,
        Format::Csc,
        Format::Ell { width: 9 },
        Format::Hybrid { width: 3, list: 500, sorted: true },
        Format::Hybrid { width: 3, list: 500, sorted: false },
        Format::Jds,
        Format::Sell { slice: 32, places: 6400 },
    ];
    let mut programs = Vec::new();
    // Keys of one word, and of two.
    for cols in [900, 1 << 24] {
        for from in formats {
            for to in formats {
                let op = Spconvert::new(layout(cols, from), layout(cols, to)).window(32).variant(variant);
                programs.push(op.lower(profile)?);
            }
        }
        for format in [Format::Csr, Format::Coo { sorted: false }] {
            programs.push(find_runs(&layout(cols, format), profile)?);
        }
        programs.push(insert_places(&layout(cols, Format::Ell { width: 9 }), 100, profile)?);
        programs.push(sum_runs(&layout(cols, Format::Csr), 2000, 3, profile)?);
    }
    let halves = |format| MatrixLayout { values: DType::F16, ..layout(900, format) };
    programs.push(Spconvert::new(halves(Format::Csr), halves(Format::Csc)).variant(variant).lower(profile)?);
    programs.push(measure(&layout(900, Format::Csr), profile)?);
    programs.push(measure_longest(1000, profile)?);
    let tall = MatrixLayout { rows: 1 << 20, longest: 1 << 20, ..layout(900, Format::Csr) };
    programs.push(point_at_rest(1000, 3, profile)?);
    programs.push(order_slices(&tall, 32, 2, profile)?);
    Ok(programs)
}
