//! Matrices of BLAS's level 2: of which a triangle, a band or both are stored.

use super::DenseLayout;
use super::gemv::{Gemv, GemvLowering};
use super::triangle::{LOWER, UPPER, asked_upper};
use crate::program::prelude::*;

/// How elements near the diagonal lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BandPacking {
    /// Where those of the whole matrix do.
    Rows,
    /// Row by row: a row has the elements of each diagonal.
    Band,
    /// Row by row without gaps; only of a triangle.
    Triangle,
}

/// A matrix of which elements near the diagonal are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BandMatrix {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Diagonals below and above the main one.
    pub(crate) below: usize,
    pub(crate) above: usize,
    pub(crate) packing: BandPacking,
    pub(crate) lda: Option<usize>,
}

impl BandMatrix {
    fn layout(&self) -> DenseLayout {
        let Self { rows, cols, below, above, .. } = *self;
        let cols = match self.packing {
            BandPacking::Band if cols > 0 => below.saturating_add(above).saturating_add(1),
            _ => cols,
        };
        DenseLayout { rows, cols, ld: self.lda.unwrap_or(cols) }
    }

    /// Counts the elements of the operand `a`.
    fn stored_len(&self, op: &str) -> Result<usize> {
        if self.packing == BandPacking::Triangle {
            if self.lda.is_some() {
                return Err(err!(InvalidArgument, "{op}: a packed triangle has no lda; leave it out"));
            }
            return Ok(elements(op, "a", &[self.rows, self.rows.saturating_add(1)])? / 2);
        }
        let layout = self.layout();
        elements(op, "a", &[layout.rows, layout.ld])?;
        layout.span(op, "a")
    }

    /// Where element (p, q) is stored, if it is.
    pub(crate) fn at(&self, p: usize, q: usize) -> Option<usize> {
        let stored = p <= q + self.below && q <= p + self.above;
        stored.then(|| match self.packing {
            BandPacking::Rows => p * self.layout().ld + q,
            BandPacking::Band => p * self.layout().ld + q + self.below - p,
            BandPacking::Triangle if self.above == 0 => p * (p + 1) / 2 + q,
            BandPacking::Triangle => p * (2 * self.rows - p).saturating_sub(1) / 2 + q,
        })
    }
}

/// A square matrix of which one triangle, or a band of it, is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HalfMatrix {
    pub(crate) n: usize,
    pub(crate) upper: bool,
    /// Diagonals beside the main one, stored as a band.
    pub(crate) band: Option<usize>,
    pub(crate) packed: bool,
    pub(crate) lda: Option<usize>,
}

impl HalfMatrix {
    pub(crate) fn new(n: usize) -> Self {
        Self { n, upper: false, band: None, packed: false, lda: None }
    }

    pub(crate) fn matrix(&self) -> BandMatrix {
        let Self { n, upper, band, packed, lda } = *self;
        let reach = band.unwrap_or(n.saturating_sub(1));
        let packing = match (packed, band) {
            (true, _) => BandPacking::Triangle,
            (_, Some(_)) => BandPacking::Band,
            _ => BandPacking::Rows,
        };
        let (below, above) = if upper { (0, reach) } else { (reach, 0) };
        BandMatrix { rows: n, cols: n, below, above, packing, lda }
    }

    fn check(&self, op: &str) -> Result<()> {
        if self.packed && self.band.is_some() {
            return Err(err!(InvalidArgument, "{op}: a packed triangle has no band; ask for one of them"));
        }
        Ok(())
    }

    /// Reads the operand `a` and how it lies.
    pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(Self, HostArray)> {
        let (op, settings) = (asked.name(), asked.settings());
        let (packed, banded) = (settings.has(PACKED.name), settings.has("banded"));
        let upper = asked_upper(op, settings)?;
        let (n, band, a) = if packed {
            let (a, [len]) = asked.array("a")?;
            let n = (len.saturating_mul(8) + 1).isqrt() / 2;
            if n * (n + 1) / 2 != len {
                return Err(err!(Shape, "{op}: a is {a}; a packed triangle of n rows has n (n + 1) / 2 elements"));
            }
            (n, None, a)
        } else {
            let (a, [n, columns]) = asked.array("a")?;
            if !banded && columns != n || banded && !(1..=n.max(1)).contains(&columns) {
                return Err(err!(
                    Shape,
                    "{op}: a is {a}; it must be square, or with --banded have a column for each diagonal, 1 to n"
                ));
            }
            (n, banded.then(|| columns - 1), a)
        };
        asked.check_type(&a)?;
        asked.set("n", &[n]);
        let half = Self { n, upper, band, packed, lda: None };
        half.check(op)?;
        Ok((half, a))
    }
}

pub(super) const PACKED: Setting = Setting::flag("packed");
pub(super) const BANDED: Setting = Setting::flag("banded");
pub(super) const HALF: [Setting; 4] = [LOWER, UPPER, BANDED, PACKED];
/// The shape of such a matrix.
pub(super) const HALF_SHAPE: &str = "(n, n); (n, w) with banded; (e) with packed";

/// Writes builder methods of a descriptor with a `half` matrix.
macro_rules! half_builders {
    ($($method:ident),*) => { $($crate::dense::banded::half_builders!(@ $method);)* };
    (@ upper) => {
        /// Reads the upper triangle of A; the lower one by default.
        #[must_use]
        pub fn upper(mut self) -> Self {
            self.half.upper = true;
            self
        }
    };
    (@ trans) => {
        /// Takes the transpose of A.
        #[must_use]
        pub fn trans(mut self) -> Self {
            self.trans = true;
            self
        }
    };
    (@ unit) => {
        /// Takes 1 for the diagonal of A, which is then not read.
        #[must_use]
        pub fn unit(mut self) -> Self {
            self.unit = true;
            self
        }
    };
    (@ banded) => {
        /// Takes `k` diagonals beside the main one, stored as a band: row i has k + 1 elements, from column i - k on
        /// or, if A is upper, from column i on. Places outside of A are not read. Rows are `lda` apart, k + 1 by
        /// default.
        #[must_use]
        pub fn banded(mut self, k: usize) -> Self {
            self.half.band = Some(k);
            self
        }
    };
    (@ packed) => {
        /// Takes a triangle that is stored row by row without gaps, n (n + 1) / 2 elements.
        #[must_use]
        pub fn packed(mut self) -> Self {
            self.half.packed = true;
            self
        }
    };
    (@ lda) => {
        /// Sets the elements from one row of `a` to the next; the row length by default.
        #[must_use]
        pub fn lda(mut self, lda: usize) -> Self {
            self.half.lda = Some(lda);
            self
        }
    };
}
pub(super) use half_builders;

pub(super) const VARIANTS: &[Variant] =
    &[Variant::portable("tiles", "tiles of 32 x 32 elements are read along their rows, long sums are split")];

kernel_params! {
    pub(super) struct BandParams {
        outputs: u32, terms: u32, first_output: u32, first_term: u32,
        row_begin: i32, row_end: i32, column_begin: i32, column_end: i32,
        origin: u32, pitch: u32, reach: u32, forward: u32, unit: u32, parts: u32,
        read_y: u32, alpha: f32, beta: f32,
    }
}

pub(super) const SIDE: u64 = 32;

/// Maximum steps of a thread along a row or a column; it walks both.
const MAX_STEPS: u64 = 30_000;

/// `alpha op(A) x + beta y`, and the kernels of systems of equations.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandProduct {
    pub(super) op: &'static str,
    pub(super) shader: &'static str,
    pub(super) matrix: BandMatrix,
    pub(super) symmetric: bool,
    pub(super) trans: bool,
    pub(super) unit: bool,
    pub(super) alpha: f32,
    pub(super) beta: f32,
}

impl BandProduct {
    /// The product of a half matrix as it is stored; none of its elements are mirrored.
    pub(super) fn of_half(op: &'static str, shader: &'static str, half: &HalfMatrix) -> Result<Self> {
        half.check(op)?;
        let (matrix, alpha, beta) = (half.matrix(), 1.0, 0.0);
        Ok(Self { op, shader, matrix, symmetric: false, trans: false, unit: false, alpha, beta })
    }

    /// Elements of `y` and of `x`.
    fn extents(&self) -> [usize; 2] {
        let BandMatrix { rows, cols, .. } = self.matrix;
        if self.trans { [cols, rows] } else { [rows, cols] }
    }

    /// Checks and declares the operands: `a`, `x`, and unless it is solved `y`.
    pub(super) fn operands(&self, solves: bool, profile: &DeviceProfile) -> Result<Vec<Operand>> {
        let [outputs, terms] = self.extents();
        let of = |name, len, access| Operand { name, dtype: DType::F32, len, access };
        let mut operands = vec![
            of("a", self.matrix.stored_len(self.op)?, Access::Read),
            of("x", terms, if solves { Access::ReadWrite } else { Access::Read }),
        ];
        let access = if self.beta == 0.0 { Access::Write } else { Access::ReadWrite };
        operands.extend((!solves).then(|| of("y", outputs, access)));
        profile.check_bindings(self.op, &operands, "take blocks in separate calls")?;
        for extent in [outputs, terms] {
            // Kernels subtract numbers of rows and columns.
            index_u32(self.op, "rows or columns", extent.saturating_mul(2))?;
        }
        Ok(operands)
    }

    /// Flags and parameters that all kernels have: how elements lie.
    pub(super) fn parts_of_kernel(&self) -> (Spec, BandParams) {
        let BandMatrix { below, above, packing, rows, .. } = self.matrix;
        let [outputs, terms] = self.extents().map(|extent| extent as u32);
        let packed = packing == BandPacking::Triangle;
        let spec = Spec::new().flag("PACKED", packed).flag("UPPER", packed && below == 0 && above > 0);
        // Diagonals that the matrix has.
        let [low, high] = [below.min(self.matrix.rows), above.min(self.matrix.cols)].map(|d| d as i32);
        let (mut column_begin, mut column_end) = (-high, low);
        if self.symmetric {
            // The diagonal is stored in its own row.
            (column_begin, column_end) = if below > 0 { (1, low) } else { (-high, -1) };
        }
        let (origin, pitch) = match packing {
            BandPacking::Rows => (0, self.matrix.layout().ld),
            BandPacking::Band => (below, self.matrix.layout().ld - 1),
            BandPacking::Triangle => (0, rows),
        };
        let params = BandParams {
            outputs,
            terms,
            first_output: 0,
            first_term: 0,
            row_begin: -low,
            row_end: high,
            column_begin,
            column_end,
            origin: origin as u32,
            pitch: pitch as u32,
            reach: below.max(above) as u32,
            forward: 0,
            unit: self.unit.into(),
            parts: 1,
            read_y: u32::from(self.beta != 0.0),
            alpha: self.alpha,
            beta: self.beta,
        };
        (spec, params)
    }

    pub(super) fn passes(&self, spec: Spec) -> Spec {
        let spec = spec.flag("BY_ROWS", self.symmetric || !self.trans);
        spec.flag("BY_COLUMNS", self.symmetric || self.trans)
    }

    pub(super) fn lower(self, variant: &str, profile: &DeviceProfile) -> Result<Program> {
        let op = self.op;
        let mut program = Program::of_only_variant(op, variant, VARIANTS, profile)?;
        program.operands = self.operands(false, profile)?;
        let [outputs, terms] = self.extents();
        let stored = program.operands[0].len as f64;
        let passes = if self.beta == 0.0 { 1.0 } else { 2.0 };
        let flop = stored * if self.symmetric { 4.0 } else { 2.0 };
        program.cost = Cost { flop, bytes: 4.0 * (stored + terms as f64 + passes * outputs as f64) };
        if outputs == 0 {
            return Ok(program);
        }
        let like = Gemv::new(outputs, terms).alpha(self.alpha).beta(self.beta);
        if self.alpha == 0.0 || terms == 0 {
            return GemvLowering { gemv: &like, name: op.to_owned(), profile, program }.scale();
        }
        let (spec, params) = self.parts_of_kernel();
        let blocks = (outputs as u64).div_ceil(SIDE);
        let width = (self.matrix.below as u64).saturating_add(self.matrix.above as u64).saturating_add(SIDE);
        let tiles = width.min(terms as u64).div_ceil(SIDE).max(1);
        // Workgroups that fill the device, of four tiles at least.
        let wanted = if profile.quirks.few_cores { 64 } else { 1056 } / blocks;
        let parts = wanted.clamp(1, tiles.div_ceil(4)).max(tiles.div_ceil(MAX_STEPS));
        let target = if parts > 1 {
            let bytes = 4 * outputs as u64 * parts;
            let advice = "take blocks in separate calls";
            profile.check_scratch(op, format_args!("{parts} parts of {outputs} sums"), bytes, advice)?;
            program.scratch(bytes)
        } else {
            Binding::operand(2, &program.operands)
        };
        let kernel = program.kernel(Kernel::of_file(self.shader, self.passes(spec).flag("SPLIT", parts > 1)));
        let [a, x] = [0, 1].map(|i| Binding::operand(i, &program.operands));
        let params = BandParams { parts: parts as u32, ..params };
        program.dispatch(kernel, &params, vec![a, x, target], Grid::fold(blocks * parts));
        if parts > 1 {
            let mut rest = GemvLowering { gemv: &like, name: op.to_owned(), profile, program };
            rest.finish(parts, target);
            program = rest.program;
        }
        Ok(program)
    }
}
