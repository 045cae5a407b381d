mod duplicates;
mod expand;
mod insert;
mod measures;
mod order;
mod sorted;
mod steps;

pub(crate) use duplicates::{find_runs, sum_runs};
pub(crate) use expand::point_at_rest;
pub(super) use insert::insert_slots;
pub(crate) use measures::{MEASURES, Measured, measure, measure_longest};
pub(crate) use order::order_slices;
pub(super) use steps::step;

use super::{Described, Format, MatrixLayout, THROUGH, order_by_row};
use crate::program::prelude::*;
use steps::{Compressed, ConvertSteps};

/// Converts a sparse matrix to another format: `B = A`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{Coo, Target};
///
/// let gpu = Gpu::new()?;
/// let (row_idxs, col_idxs, values) = (vec![1, 0, 1], vec![2, 1, 0], vec![4.0, 1.0, 0.5]);
/// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
/// let b = gpu.convert_matrix(&a, Target::Csr)?; // allocates and converts
/// let plan = Spconvert::new(a.layout(), b.layout()).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b)?; // converts again
/// rec.submit()?;
/// let csr = b.read()?.to_csr()?;
/// assert_eq!((csr.row_ptrs, csr.col_idxs), (vec![0, 1, 3], vec![1, 0, 2]));
/// assert_eq!(csr.values, [1.0, 0.5, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Gpu::convert_matrix`](crate::Gpu::convert_matrix) measures the matrix, allocates the result and fills it. This op
/// is the last of these steps, for programs that convert often between lists of the same lengths.
///
/// # Shapes
/// Operands are two matrices of the given [`MatrixLayout`]s: the first is read, the second written. They must not share
/// memory, and must agree in extents, number of entries and value type, f32 or f16 (on any device). An untyped
/// [`Executable`](crate::gpu::Executable) takes the lists of the first, in the order of its format, then those of the
/// second. Any extent may be 0, and there may be no entries.
///
/// Rows keep the order of their entries, with two exceptions: to and from [`Format::Csc`], entries are sorted by row or
/// column; unsorted coordinates (`sorted: false`) are sorted by row, then column. Both sorts are stable, and duplicates
/// are kept; [`Gpu::sum_duplicates`](crate::Gpu::sum_duplicates) adds them up. The result equals that of
/// [`reference::spconvert`](crate::reference::spconvert) and of the methods of [`Csr`](super::Csr), element for
/// element.
///
/// Entries that do not fit the slots of their row are dropped. Unfilled slots become padding.
///
/// # Precision and determinism
/// Values move as bits. The same inputs give the same result on every device.
///
/// # Cost
/// No flop. To and from CSC, and from unsorted coordinates, entries are sorted ([`RadixSort`](crate::RadixSort)): a
/// pass for each 8 bits of the indices, with keys of one or two words. Otherwise each list is read and written about
/// once. Scratch: keys and values twice if they are sorted; a few words for each row; a CSR matrix if neither side is
/// CSR; a word for each f16 value.
///
/// # Variants
/// `radix`, on every device.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): different extents, numbers of entries or value types; entries in a matrix that
///   has no room for any.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, values other than f32 and f16, or
///   slices or windows of 0 rows.
/// - [`TooLarge`](ErrorKind::TooLarge): a list, or the sort keys, above the device's largest binding.
///
/// # Algorithm
/// A stable radix sort on packed indices. Pointers come from binary searches of sorted indices, or from scans of
/// lengths. Each entry of the result finds its row among the pointers and fetches itself:
/// `shaders/sparse/spconvert_gather.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spconvert {
    pub(crate) from: MatrixLayout,
    pub(crate) to: MatrixLayout,
    pub(crate) window: usize,
    /// Whether the result already holds its row order and slice pointers.
    ordered: bool,
    variant: String,
}

/// A format to convert to, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// [`Coo`](super::Coo), sorted by row.
    Coo,
    /// [`Csr`](super::Csr).
    Csr,
    /// [`Csc`](super::Csc).
    Csc,
    /// [`Ell`](super::Ell), as wide as the longest row.
    Ell,
    /// [`Hybrid`](super::Hybrid).
    Hybrid {
        /// Slots of each row of the ELL part; `None` for [`Statistics::hybrid_width`](super::Statistics::hybrid_width),
        /// which holds four of five rows.
        width: Option<usize>,
    },
    /// [`Jds`](super::Jds).
    Jds,
    /// [`Sell`](super::Sell).
    Sell {
        /// Rows in a slice.
        slice: usize,
        /// Rows in a sort window.
        window: usize,
    },
}

impl Target {
    /// Returns the format with this name, as in the table of [`sparse`](crate::sparse), with parameters that suit most
    /// matrices.
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
    &[Variant::portable("radix", "stable radix sorts, scans and binary searches; each entry fetches itself")];

impl Spconvert {
    /// Converts from one layout to another. `to.longest` must be the number of entries of the longest row, except in
    /// [`Format::Csc`], which ignores it.
    pub fn new(from: MatrixLayout, to: MatrixLayout) -> Self {
        Self { from, to, window: 1024, ordered: false, variant: "auto".into() }
    }

    /// Sets the rows in a sort window of a [`Format::Sell`] result; the default is 1024.
    #[must_use]
    pub fn window(mut self, rows: usize) -> Self {
        self.window = rows;
        self
    }

    /// Keeps the row order and slice pointers that a [`Format::Sell`] result already holds.
    pub(crate) fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    pub(crate) fn result(&self) -> MatrixLayout {
        self.to
    }

    variants!(variant);

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
                "spconvert: the matrix is {} x {} with {} entries of {}, the result {} x {} with {} of {}; they must agree",
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
            return Err(err!(InvalidArgument, "spconvert: values of {}; use f32 or f16", from.values));
        }
        let no_diagonals = |layout: &MatrixLayout| layout.format == Format::Jds && layout.longest == 0;
        if from.entries > 0 && (from.rows.min(from.cols) == 0 || no_diagonals(from) || no_diagonals(to)) {
            return Err(err!(
                Shape,
                "spconvert: {} entries do not fit {} x {} elements with rows of at most {}",
                from.entries,
                from.rows,
                from.cols,
                to.longest
            ));
        }
        let no_slices = |layout: &MatrixLayout| matches!(layout.format, Format::Sell { slice: 0, .. });
        if no_slices(from) || no_slices(to) || *window == 0 {
            return Err(err!(InvalidArgument, "spconvert: slices or windows of 0 rows; both need at least 1"));
        }
        Ok(())
    }
}

/// Returns an operand for a list that is written, under a name of its own.
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
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let Self { from, to, .. } = self;
        let name = format!("spconvert {} to {}", from.format.name(), to.format.name());
        let (_, decision) =
            choose("spconvert", &self.variant, VARIANTS, profile, || ("radix", "it runs on every device".into()))?;
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
                let (n, extents) = (from.entries, [from.cols, from.rows]);
                let entries = sorted::Entries::coordinates(n, [rows, cols, values], extents, values_out);
                let by_column = sorted::Entries { other_above: false, by_minor: !sorted, ..entries };
                let sorted = steps.sort_entries(&by_column)?;
                steps.compress(&sorted, from.cols, Compressed { ptrs, idxs, values: values_out });
            }
            _ => {
                let ptrs = steps.words("row pointers", from.rows + 1)?;
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

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (lists, Described { layout, to, .. }) = asked.sparse::<Described>()?;
    let to = to.unwrap_or(*layout);
    let results = to.operands(asked.name())?.into_iter().map(|list| Role::Result(vec![list.len]));
    let operands = lists.into_iter().map(Role::Given).chain(results).collect();
    Ok(OpCall::new::<f32>(Spconvert::new(*layout, to).variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let layout =
        |cols, format| MatrixLayout { rows: 1000, cols, entries: 3000, longest: 9, format, values: DType::F32 };
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
        programs.push(sum_runs(&layout(cols, Format::Csr), 2000, 3, profile)?);
    }
    for format in [Format::Csc, Format::Coo { sorted: false }] {
        programs.push(order_by_row(&layout(900, format), profile)?);
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
