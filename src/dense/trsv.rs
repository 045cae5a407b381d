use super::banded::{BandParams, BandProduct, HALF, HALF_SHAPE, HalfMatrix, SIDE, half_builders};
use super::triangle::{TRANS, UNIT};
use crate::program::prelude::*;

/// Solves a triangular system, in place: `op(A) x = b`, where `x` holds b.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?; // nothing above the diagonal is read
/// let x = gpu.upload(&[4.0f32, 10.0])?;
/// let plan = Trsv::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x)?;
/// rec.submit()?;
/// assert_eq!(x.read()?, [2.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` is n x n and row-major; only its lower triangle is read, or the [`upper`](Self::upper) one, and with
/// [`unit`](Self::unit) not its diagonal. [`trans`](Self::trans) takes its transpose. As a [`banded`](Self::banded)
/// matrix it is BLAS's `tbsv`, as a [`packed`](Self::packed) triangle `tpsv`. `x` has n elements; [`incx`](Self::incx)
/// is BLAS's increment. n may be 0.
///
/// # Precision and determinism
/// Substitution in f32, with the bound of [`Trsm`](crate::Trsm) for one column. A 0 on the diagonal gives infinities
/// and NaN; there is no test for it. The same device gives the same bits in every run.
///
/// # Cost
/// `n^2` flop; the triangle is read once. Two dispatches for each 64 unknowns, no scratch.
///
/// # Variants
/// `blocked`: blocks of 64 unknowns by substitution, their share of the others as a product.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; both a band and
///   a packed triangle; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding; more than 2^21 unknowns.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/trsv.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trsv {
    pub(crate) half: HalfMatrix,
    pub(crate) trans: bool,
    pub(crate) unit: bool,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("blocked", "blocks of the diagonal by substitution, all else by products")];

const UNKNOWNS: usize = 64;

impl Trsv {
    /// Takes the number of unknowns. The lower triangle is stored.
    pub fn new(n: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { half: HalfMatrix::new(n), trans: false, unit: false, increments, variant }
    }

    half_builders!(upper, trans, unit, banded, packed, lda);
    increments!(incx x);
    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(profile))
    }

    fn lower_unit(&self, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let product = BandProduct::of_half(INFO.name, "dense/trsv", &self.half)?;
        let product = BandProduct { trans: self.trans, unit: self.unit, alpha: -1.0, beta: 1.0, ..product };
        program.operands = product.operands(true, profile)?;
        let (n, stored) = (self.half.n, program.operands[0].len as f64);
        program.cost = Cost { flop: 2.0 * stored, bytes: 4.0 * (stored + 2.0 * n as f64) };
        program.check_dispatches(2 * n.div_ceil(UNKNOWNS) as u64)?;
        if n == 0 {
            return Ok(program);
        }
        let (spec, params) = product.parts_of_kernel();
        let solves = spec.clone().flag("SOLVES", true).flag("BY_COLUMNS", self.trans);
        let solve = program.kernel(Kernel::library("dense/trsv", "trsv_solve", solves));
        let spec = product.passes(spec).flag("IN_PLACE", true);
        let update = Kernel::library("dense/trsv", "trsv_update", spec);
        let bindings = [0, 1].map(|i| Binding::operand(i, &program.operands)).to_vec();
        // op(A) is lower, so the first unknowns come first.
        let forward = self.half.upper == self.trans;
        let reach = (params.reach as usize).min(n);
        for block in 0..n.div_ceil(UNKNOWNS) {
            let solved = block * UNKNOWNS;
            let count = UNKNOWNS.min(n - solved);
            let first = if forward { solved } else { n - solved - count };
            let end = first + count;
            let window = |[first_output, outputs]: [usize; 2], [first_term, terms]: [usize; 2]| BandParams {
                first_output: first_output as u32,
                outputs: outputs as u32,
                first_term: first_term as u32,
                terms: terms as u32,
                forward: forward.into(),
                ..params
            };
            program.dispatch(solve, &window([first, end], [0, 0]), bindings.clone(), Grid::fold(1));
            let rest = if forward { [end, n.min(end + reach)] } else { [first.saturating_sub(reach), first] };
            if rest[0] < rest[1] {
                let blocks = ((rest[1] - rest[0]) as u64).div_ceil(SIDE);
                let update = program.kernel(update.clone());
                program.dispatch(update, &window(rest, [first, end]), bindings.clone(), Grid::fold(blocks));
            }
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Trsv, T {
        fn record(a: T, x: T);
    }
}

lowered_as!(Trsv: f32);

pub(super) const INFO: Operation = Operation {
    name: "trsv",
    about: "solves op(A) x = b for a triangular matrix, in place",
    inputs: &[Input::new("a", HALF_SHAPE), Input::new("x", "(n)")],
    outputs: &[("x", "(n)")],
    types: &[DType::F32],
    options: &[HALF[0], HALF[1], HALF[2], HALF[3], TRANS, UNIT, INCX],
    domains: &[("a", Domain::Finite), ("x", Domain::Finite)],
    make: Some(make),
    variants: Trsv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (half, a) = HalfMatrix::asked(asked)?;
    let x = asked.like("x", &[half.n])?;
    let (trans, unit) = (asked.settings().has(TRANS.name), asked.settings().has(UNIT.name));
    let op = Trsv { half, trans, unit, ..Trsv::new(half.n).variant(asked.variant()) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Updated(x)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Trsv| op.variant(variant).lower_as(DType::F32, profile);
    let packed = Trsv::new(70).packed();
    Ok(vec![
        of(Trsv::new(70).unit())?,
        of(Trsv::new(70).banded(3).trans())?,
        of(packed.clone())?,
        of(packed.clone().upper())?,
        of(packed.clone().trans())?,
        of(packed.upper().trans())?,
    ])
}
