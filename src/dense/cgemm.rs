use super::{Gemm, PermuteAxes};
use crate::program::prelude::*;

/// Multiplies complex matrices: `C = alpha op(A) op(B) + beta C`, where each `op` may transpose, and take conjugates.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[1.0f32, 2.0, 0.0, 1.0])?; // 1 x 2: 1 + 2i, i
/// let (b, c) = (gpu.upload(&[3.0f32, 0.0, 1.0, -1.0])?, gpu.alloc::<f32>(2)?); // 2 x 1: 3, 1 - i
/// let plan = Cgemm::new(1, 1, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [4.0, 7.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` has m x k complex numbers, or k x m with [`trans_a`](Self::trans_a); `b` k x n, or n x k with
/// [`trans_b`](Self::trans_b); `c` m x n; row-major without gaps. Each number is two elements of f32, as
/// [`Caxpy`](crate::Caxpy) has them. Any extent may be 0. `c` must be another wgpu buffer than `a` and `b`.
///
/// # Precision and determinism
/// Each part is a sum of `2 k` products in f32, as [`Gemm`] adds them. An alpha that is not real multiplies B first.
/// With a beta of 0 the old `c` is not read, with an alpha of 0 the factors do not reach the result. The same device
/// gives the same bits in every run.
///
/// # Cost
/// `8 m n k` flop: one real product of m x 2 k by 2 k x 2 n, at the speed of [`Gemm`]. A pass before it writes B twice,
/// 16 k n bytes of scratch. A transposed A takes a copy, 8 m k bytes, and a beta that is not real a pass over C.
///
/// # Variants
/// `expanded`: one real product.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding, or the scratch.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// A complex number as a real matrix of 2 x 2: `shaders/dense/cgemm.wgsl`, then [`Gemm`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cgemm {
    m: usize,
    n: usize,
    k: usize,
    alpha: [f32; 2],
    beta: [f32; 2],
    trans: [bool; 2],
    conjugated: [bool; 2],
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("expanded", "one real product of twice the extents")];

kernel_params! { struct CgemmParams { rows: u32, columns: u32, factor_re: f32, factor_im: f32 } }

impl Cgemm {
    /// Takes the extents: C is m x n, and sums have k terms. `alpha` is 1 and `beta` 0.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        let (alpha, beta) = ([1.0, 0.0], [0.0; 2]);
        let (trans, conjugated) = ([false; 2], [false; 2]);
        Self { m, n, k, alpha, beta, trans, conjugated, variant: "auto".into() }
    }

    /// Multiplies the product by `alpha`, a real and an imaginary part.
    #[must_use]
    pub fn alpha(mut self, alpha: [f32; 2]) -> Self {
        self.alpha = alpha;
        self
    }

    /// Multiplies the old contents of `c` by `beta`, a real and an imaginary part.
    #[must_use]
    pub fn beta(mut self, beta: [f32; 2]) -> Self {
        self.beta = beta;
        self
    }

    /// Takes A transposed: it is stored as k x m.
    #[must_use]
    pub fn trans_a(mut self) -> Self {
        self.trans[0] = true;
        self
    }

    /// Takes B transposed: it is stored as n x k.
    #[must_use]
    pub fn trans_b(mut self) -> Self {
        self.trans[1] = true;
        self
    }

    /// Takes the conjugates of A; with [`trans_a`](Self::trans_a) that is BLAS's `C`.
    #[must_use]
    pub fn conjugated_a(mut self) -> Self {
        self.conjugated[0] = true;
        self
    }

    /// Takes the conjugates of B; with [`trans_b`](Self::trans_b) that is BLAS's `C`.
    #[must_use]
    pub fn conjugated_b(mut self) -> Self {
        self.conjugated[1] = true;
        self
    }

    variants!(variant);

    /// m, n and k.
    pub(crate) fn extents(&self) -> [usize; 3] {
        [self.m, self.n, self.k]
    }

    pub(crate) fn scalars(&self) -> [[f32; 2]; 2] {
        [self.alpha, self.beta]
    }

    /// Whether A and B are transposed, and whether they are conjugated.
    pub(crate) fn forms(&self) -> [[bool; 2]; 2] {
        [self.trans, self.conjugated]
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { m, n, k, alpha, beta, .. } = *self;
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let remedy = "multiply blocks in separate calls";
        let pairs = |name, of: [usize; 2], access| {
            let len = elements(INFO.name, name, &[of[0], of[1], 2])?;
            Ok(Operand { name, dtype, len, access })
        };
        let c = if beta == [0.0; 2] { Access::Write } else { Access::ReadWrite };
        program.operands = vec![
            pairs("a", if self.trans[0] { [k, m] } else { [m, k] }, Access::Read)?,
            pairs("b", if self.trans[1] { [n, k] } else { [k, n] }, Access::Read)?,
            pairs("c", [m, n], c)?,
        ];
        profile.check_bindings(name, &program.operands, remedy)?;
        program.cost = Cost::of(8.0 * m as f64 * n as f64 * k as f64, &program.operands);
        let index = |what, value| index_u32(name, what, value);
        let (numbers_b, numbers_c) = (index("elements of b", k * n)?, index("elements of c", m * n)?);
        if numbers_c == 0 {
            return Ok(program);
        }
        let [mut a, b, c] = [0, 1, 2].map(|i| Binding::operand(i, &program.operands));
        let grid = |numbers: u32| Grid::fold(u64::from(numbers).div_ceil(256));
        let params = |rows: usize, columns: usize, [factor_re, factor_im]: [f32; 2]| CgemmParams {
            rows: rows as u32,
            columns: columns as u32,
            factor_re,
            factor_im,
        };
        if self.trans[0] && m * k > 0 {
            profile.check_scratch(name, format_args!("a transposed"), 8 * (m * k) as u64, remedy)?;
            let copy = program.scratch(8 * (m * k) as u64);
            let permuted = Op::<f32>::lower(&PermuteAxes::new(&[k, m, 2], &[1, 0, 2]), profile)?;
            program.append(permuted, &[a.resource, copy.resource]);
            a = copy;
        }
        let scaled = alpha[1] != 0.0;
        let bytes = 16 * u64::from(numbers_b);
        profile.check_scratch(name, format_args!("b, two rows for each"), bytes, remedy)?;
        let expanded = program.scratch(bytes.max(4));
        if numbers_b > 0 {
            let spec = Spec::new().flag("TRANS_B", self.trans[1]).flag("SCALED", scaled);
            let [of_a, of_b] = self.conjugated;
            let spec = spec.flag("CONJUGATED_A", of_a).flag("CONJUGATED_B", of_b);
            let kernel = program.kernel(Kernel::library("dense/cgemm", "cgemm_expand", spec));
            program.dispatch(kernel, &params(k, n, alpha), vec![b, expanded], grid(numbers_b));
        }
        if beta[1] != 0.0 {
            let spec = Spec::new().flag("SCALE", true);
            let kernel = program.kernel(Kernel::library("dense/cgemm", "cgemm_scale", spec));
            program.dispatch(kernel, &params(m, n, beta), vec![c], grid(numbers_c));
        }
        let (alpha, beta) = (if scaled { 1.0 } else { alpha[0] }, if beta[1] == 0.0 { beta[0] } else { 1.0 });
        let product = Gemm::new(m, 2 * n, 2 * k).alpha(alpha).beta(beta);
        let product = Op::<f32>::lower(&product, profile).map_err(|e| e.context(name))?;
        program.append(product, &[a.resource, expanded.resource, c.resource]);
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Cgemm, T {
        fn record(a: T, b: T, c: T);
    }
}

lowered_as!(Cgemm: f32);

pub(super) const INFO: Operation = Operation {
    name: "cgemm",
    about: "C = alpha op(A) op(B) + beta C, of complex numbers",
    inputs: &[
        Input::new("a", "(m, k, 2); (k, m, 2) with trans-a"),
        Input::new("b", "(k, n, 2); (n, k, 2) with trans-b"),
        Input::optional("c", "(m, n, 2)"),
    ],
    outputs: &[("c", "(m, n, 2)")],
    types: &[DType::F32],
    options: &[
        Setting::flag("trans-a"),
        Setting::flag("trans-b"),
        Setting::flag("conj-a"),
        Setting::flag("conj-b"),
        Setting::number("alpha", "1"),
        Setting::number("alpha-im", "0"),
        Setting::number("beta", "0"),
        Setting::number("beta-im", "0"),
    ],
    domains: &[("a", Domain::Finite), ("b", Domain::Finite), ("c", Domain::Finite)],
    make: Some(make),
    variants: Cgemm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: crate::program::Example { shape: &[16, 16, 2], options: &[] },
    ..Operation::UNDECLARED
};

/// The next input, whose last axis has the parts of complex numbers.
pub(super) fn asked_pairs<const N: usize>(asked: &mut Asked<'_>, name: &str) -> Result<(HostArray, [usize; N])> {
    let (array, shape) = asked.array::<N>(name)?;
    asked.check_type(&array)?;
    match shape.last() {
        Some(2) => Ok((array, shape)),
        _ => Err(err!(
            Shape,
            "{}: {name} is {array}; its last axis must have 2 elements, a real and an imaginary part",
            asked.name()
        )),
    }
}

pub(super) fn asked_scalars(asked: &Asked<'_>) -> Result<([f32; 2], [f32; 2])> {
    let settings = asked.settings();
    let alpha = [settings.number("alpha")?, settings.number("alpha-im")?];
    Ok((alpha, [settings.number("beta")?, settings.number("beta-im")?]))
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, [rows, columns, _]) = asked_pairs::<3>(asked, "a")?;
    let settings = asked.settings();
    let has = |name| settings.has(name);
    let (m, k) = if has("trans-a") { (columns, rows) } else { (rows, columns) };
    let usual = if has("trans-b") { [16, k, 2] } else { [k, 16, 2] };
    let (b, [rows, columns, pair]) = asked.free_of("b", usual, DType::F32)?;
    let (terms, n) = if has("trans-b") { (columns, rows) } else { (rows, columns) };
    if terms != k || pair != 2 {
        return Err(err!(Shape, "cgemm: a is {a} and b is {b}; sums of a have {k} terms, and pairs 2 elements"));
    }
    let (alpha, beta) = asked_scalars(asked)?;
    let op = Cgemm::new(m, n, k).alpha(alpha).beta(beta).variant(asked.variant());
    let op = op.when(has("trans-a"), Cgemm::trans_a).when(has("trans-b"), Cgemm::trans_b);
    let op = op.when(has("conj-a"), Cgemm::conjugated_a).when(has("conj-b"), Cgemm::conjugated_b);
    let c = if asked.has_more() {
        Role::Updated(asked.like("c", &[m, n, 2])?)
    } else if beta != [0.0; 2] {
        return Err(err!(InvalidArgument, "cgemm: a beta other than 0 needs c, the third input"));
    } else {
        Role::Result(vec![m, n, 2])
    };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(b), c]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Cgemm::new(20, 30, 9).variant(variant);
    let all = op.clone().trans_a().trans_b().conjugated_a().conjugated_b();
    let all = all.alpha([1.0, 2.0]).beta([0.5, 1.0]);
    Ok(vec![Op::<f32>::lower(&op, profile)?, Op::<f32>::lower(&all, profile)?])
}
