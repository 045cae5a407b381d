mod lowering;

use super::DenseLayout;
use super::product::options::{ALPHA, BETA, SCALARS};
use crate::program::prelude::*;
pub(super) use lowering::GemvLowering;

/// Multiplies a matrix and a vector: `y = alpha op(A) x + beta y`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
/// let (x, y) = (gpu.upload(&[1.0f32, 0.0, -1.0])?, gpu.alloc::<f32>(2)?);
/// let product = Gemv::new(2, 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// product.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [-2.0, -2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::gemv`](crate::Gpu::gemv).
///
/// # Shapes
/// `a` is stored m x k, row-major. op(A) is A: `x` has k elements and `y` m. With [`trans`](Self::trans) op(A) is
/// the transpose of A: `x` has m elements and `y` k. Elements are `f32` or [`f16`](half::f16). Operands are `a`,
/// `x`, `y`, in this order. The leading dimension (`lda`) is the number of elements from one stored row of `a` to
/// the next; `a` then has `(m - 1) * lda + k` elements. `y` must not overlap the other operands.
/// [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// [`with_scalars`](Self::with_scalars) takes alpha and beta from the device, to change them without a new plan.
///
/// Any extent may be 0. With `beta` = 0 (the default) `y` is not read, so its old contents do not matter, even NaN.
/// With `alpha` = 0 or an empty `x` the result is `beta y`, and `a` and `x` are not read. A matrix above the
/// device's largest binding is taken in chunks of rows.
///
/// # Precision and determinism
/// Products are summed in f32 for both element types, in an order that shape and device decide. The result is
/// rounded once to the element type. The error is at most `gamma(n + 4) (|alpha| |op(A)| |x| + |beta y|)` with n
/// the length of `x`, `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::gemv_bound`](crate::reference::gemv_bound)). NaN and infinities propagate as in IEEE arithmetic.
/// The same device, inputs and variant give the same bits.
///
/// # Cost
/// 2 m k flop. a and x are read once, y is written once, and read once if `beta` is not 0. One dispatch, or two
/// where sums are split between workgroups: few long rows, or A transposed. The second adds the parts from scratch,
/// 4 bytes for each element of y and part.
///
/// # Variants
/// `naive`, `tiled`. `auto` (the default) takes `tiled`, on software drivers mostly `naive`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below k; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer of the device; `x`, `y`, a row
///   of `a` or the scratch above its largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): `f16` on a device without SHADER_F16.
///
/// # Algorithm
/// `shaders/dense/gemv_naive.wgsl`: the definition. `gemv_rows.wgsl`: lanes own columns, several rows share each
/// load of x, a tree joins the lanes. `gemv_columns.wgsl`: lanes own columns, the rows are split between
/// workgroups, and `gemv_finish.wgsl` joins the parts. After MAGMA (Nath, Tomov and Dongarra, 2010).
#[derive(Debug, Clone, PartialEq)]
pub struct Gemv {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) trans: bool,
    pub(crate) scalars: bool,
    lda: Option<usize>,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one thread sums a row (or a column) alone"),
    Variant::portable(
        "tiled",
        "lanes own columns and load vec4s, rows share the loads of x, trees join the sums; long sums are split",
    ),
];

/// Columns as long as this are summed faster by `tiled` on software drivers: 1.0 to 2.4 times as fast at 256 x 256,
/// 2048 x 2048 and 262144 x 16 on Mesa 22.3 and SwiftShader; 16 x 262144 takes three to five times as long.
const LONG_COLUMN: usize = 256;

/// With fewer columns times lanes of a subgroup most lanes of `tiled` are idle. us of `naive` and `tiled`: SwiftShader,
/// four lanes, 8832 x 2 208, 859, 20000 x 8 845, 1146; Mesa 22.3, eight lanes, 8832 x 2 132, 122, 20000 x 8 410, 249.
const FEW_COLUMNS: usize = 32;

impl Gemv {
    /// Creates the product of a matrix that is stored m x k and a vector.
    pub fn new(m: usize, k: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { m, k, alpha: 1.0, beta: 0.0, trans: false, scalars: false, lda: None, increments, variant }
    }

    /// Multiplies the product by `alpha`; 1 by default. With 0, `a` and `x` are not read.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Multiplies the old contents of `y` by `beta`; 0 by default, and `y` is then not read.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// Reads alpha and beta from an operand `scalars` of two f32, `plan.with_scalars(&scalars)`, instead of those
    /// given: they change without a new plan. With an alpha of 0 the factors do not reach the result, with a beta of
    /// 0 the old `y` does not.
    #[must_use]
    pub fn with_scalars(mut self) -> Self {
        self.scalars = true;
        self
    }

    /// Multiplies by the transpose of A: `x` has m elements and `y` k.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.trans = true;
        self
    }

    /// Sets the elements from one stored row of `a` to the next; k by default.
    #[must_use]
    pub fn lda(mut self, lda: usize) -> Self {
        self.lda = Some(lda);
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    pub(crate) fn layout(&self) -> DenseLayout {
        DenseLayout { rows: self.m, cols: self.k, ld: self.lda.unwrap_or(self.k) }
    }

    /// Elements of `x` and of `y`.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        if self.trans { (self.m, self.k) } else { (self.k, self.m) }
    }

    fn name(&self) -> String {
        format!("gemv {} x {}{}", self.m, self.k, if self.trans { " transposed" } else { "" })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        if self.scalars && [self.alpha, self.beta] != [1.0; 2] {
            // Any may come, so everything is read.
            return Self { alpha: 1.0, beta: 1.0, ..self.clone() }.lower_unit(dtype, profile);
        }
        let name = self.name();
        let f16 = dtype == DType::F16;
        if let Some(missing) = (Requires { f16, ..Requires::NOTHING }).missing(profile) {
            return Err(err!(
                Unsupported,
                "{name}: elements of f16 need {missing}, {}; convert them to f32",
                profile.lacks()
            ));
        }
        let (x_len, y_len) = self.lengths();
        let scalars = Operand { name: "scalars", dtype: DType::F32, len: 2, access: Access::Read };
        let mut operands = vec![
            Operand { name: "a", dtype, len: self.stored_len()?, access: Access::Read },
            Operand { name: "x", dtype, len: x_len, access: Access::Read },
        ];
        operands.extend(self.scalars.then_some(scalars));
        operands.push(Operand { name: "y", dtype, len: y_len, access: Access::ReadWrite });
        let remedy = "multiply blocks of A in separate calls, with beta = 1 for blocks that add up";
        profile.check_buffers(&name, &operands[..1], remedy)?;
        profile.check_count(&name, &operands[0], u32::MAX as usize, remedy)?;
        profile.check_bindings(&name, &operands[1..], remedy)?;
        let (_, mut decision) = choose("gemv", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let product = x_len > 0 && self.alpha != 0.0;
        if !product {
            let zero = if x_len == 0 { "the length of x" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and x are not read"));
        }
        let mut program = Program::new("gemv", decision);
        program.cost = self.cost(dtype, product);
        program.operands = operands;
        if y_len > 0 {
            let lowering = GemvLowering { gemv: self, name, profile, program };
            return if product { lowering.product() } else { lowering.scale() };
        }
        Ok(program)
    }

    /// Counts the elements of `a`: every row but the last has its full leading dimension.
    fn stored_len(&self) -> Result<usize> {
        let DenseLayout { rows, cols, ld } = self.layout();
        let name = self.name();
        if ld < cols {
            return Err(err!(
                InvalidArgument,
                "{name}: lda = {ld} is below {cols}, the length of a row of a ({rows} x {cols} as stored); a leading \
                 dimension counts the elements from one row to the next"
            ));
        }
        if rows == 0 || cols == 0 { Ok(0) } else { Ok(elements(&name, "a", &[rows, ld])? - (ld - cols)) }
    }

    /// Chooses a variant and says why.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        if !profile.quirks.serial_workgroups {
            ("tiled", "reads A once, by vec4 where its rows allow, at the speed of memory".to_owned())
        } else if self.trans
            && self.m >= LONG_COLUMN
            && self.k.saturating_mul(profile.subgroup_sizes.1 as usize) >= FEW_COLUMNS
        {
            ("tiled", "eight rows at a time use a processor's caches better".to_owned())
        } else {
            ("naive", "a processor's caches hold x, and its barriers are slow".to_owned())
        }
    }

    fn cost(&self, dtype: DType, product: bool) -> Cost {
        let (x_len, y_len) = self.lengths();
        let factors = if product && y_len > 0 { self.m as f64 * self.k as f64 } else { 0.0 };
        let x = if factors > 0.0 { x_len as f64 } else { 0.0 };
        let y = y_len as f64 * if self.beta == 0.0 { 1.0 } else { 2.0 };
        Cost { flop: 2.0 * factors, bytes: (factors + x + y) * dtype.size() as f64 }
    }
}

operands! {
    impl[T: Element,] Gemv, T {
        fn record(a: T, x: T, y: T);
        /// Alpha and beta, two elements.
        optional with_scalars(scalars: f32);
    }
}

lowered_as!(Gemv: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "gemv",
    about: "y = alpha op(A) x + beta y",
    inputs: &[
        Input::new("a", "(m, k)"),
        Input::new("x", "(k); (m) with trans"),
        Input::optional("y", "(m); (k) with trans"),
    ],
    outputs: &[("y", "(m); (k) with trans")],
    types: &[DType::F32, DType::F16],
    options: &[Setting::flag("trans"), ALPHA, BETA, SCALARS, INCX, INCY],
    make: Some(make),
    variants: Gemv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let trans = settings.has("trans");
    let (a, [m, k]) = asked.array("a")?;
    let (terms, outputs) = if trans { (m, k) } else { (k, m) };
    let x = asked.like("x", &[terms])?;
    let beta = settings.number(BETA.name)?;
    let scalars = asked.named_of(SCALARS.name, &[2], DType::F32)?;
    let y = if asked.has_more() || scalars.is_some() {
        Role::Updated(asked.like("y", &[outputs])?)
    } else if beta != 0.0 {
        return Err(err!(InvalidArgument, "gemv: --beta {beta} needs y, the third input"));
    } else {
        Role::Result(vec![outputs])
    };
    let op = Gemv::new(m, k)
        .when(trans, |op| op.trans())
        .when(scalars.is_some(), |op| op.with_scalars())
        .alpha(settings.number(ALPHA.name)?)
        .beta(beta)
        .variant(asked.variant());
    let dtype = a.dtype();
    let factors = [a, x].into_iter().chain(scalars).map(Role::Given);
    let operands = factors.chain([y]).collect();
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut samples = Vec::new();
    // Rows of whole vec4s or not; teams of one, some and all lanes; few rows and many; split sums.
    let shapes = [
        (3, 1 << 16),
        (3, (1 << 16) + 1),
        (1 << 11, 1 << 11),
        (1 << 11, 2047),
        (1 << 12, 64),
        (1 << 13, 2),
        (1 << 16, 5),
    ];
    for (m, k) in shapes {
        for trans in [false, true] {
            samples.push(Gemv::new(m, k).when(trans, |op| op.trans()));
        }
    }
    samples.push(Gemv::new(4, 0).beta(1.0));
    // One sum, split sums, no sum.
    samples.extend([(64, 64), (3, 1 << 16), (4, 0)].map(|(m, k)| Gemv::new(m, k).with_scalars()));
    let types: &[DType] = if profile.features.f16 { &[DType::F32, DType::F16] } else { &[DType::F32] };
    types
        .iter()
        .flat_map(|&t| samples.iter().map(move |gemv| gemv.clone().variant(variant).lower_as(t, profile)))
        .collect()
}

#[cfg(test)]
mod tests;
