use crate::program::prelude::*;

/// Multiplies a complex matrix by a vector: `y = alpha op(A) x + beta y`, where `op` may transpose, and take
/// conjugates.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0])?; // 1 x 2: 1, i
/// let (x, y) = (gpu.upload(&[2.0f32, 0.0, 3.0, 0.0])?, gpu.alloc::<f32>(2)?);
/// let plan = Cgemv::new(1, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [2.0, 3.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` has m x k complex numbers, row-major without gaps, `x` k, `y` m; with [`trans`](Self::trans) `x` has m and `y`
/// k. Each number is two elements of f32, as [`Caxpy`](crate::Caxpy) has them. Any extent may be 0. `y` must be another
/// wgpu buffer than `a` and `x`. [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// # Precision and determinism
/// Sums in f32, in a tree over at most 256 lanes and as many slices as there are workgroups. With a beta of 0 the old
/// `y` is not read, with an alpha of 0 neither are `a` and `x`. The same device gives the same bits in every run.
///
/// # Cost
/// `8 m k` flop; `a` is read once. Two dispatches; scratch: 8 bytes for each slice of a result.
///
/// # Variants
/// `teams`: neighbouring threads read neighbouring numbers of A.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/cgemv.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cgemv {
    m: usize,
    k: usize,
    alpha: [f32; 2],
    beta: [f32; 2],
    trans: bool,
    conjugated: bool,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("teams", "neighbouring threads read neighbouring numbers of A")];

kernel_params! {
    struct CgemvParams {
        outputs: u32, terms: u32, pitch: u32, slices: u32, share: u32, workgroups: u32,
        alpha_re: f32, alpha_im: f32, beta_re: f32, beta_im: f32,
    }
}

const THREADS: u64 = 256;
/// Maximum of loop rounds of a thread.
const MAX_STEPS: u64 = 40_000;

impl Cgemv {
    /// Takes the extents of A as it is stored. `alpha` is 1 and `beta` 0.
    pub fn new(m: usize, k: usize) -> Self {
        let (alpha, beta) = ([1.0, 0.0], [0.0; 2]);
        Self {
            m,
            k,
            alpha,
            beta,
            trans: false,
            conjugated: false,
            increments: Increments::default(),
            variant: "auto".into(),
        }
    }

    /// Multiplies the product by `alpha`, a real and an imaginary part.
    #[must_use]
    pub fn alpha(mut self, alpha: [f32; 2]) -> Self {
        self.alpha = alpha;
        self
    }

    /// Multiplies the old contents of `y` by `beta`, a real and an imaginary part.
    #[must_use]
    pub fn beta(mut self, beta: [f32; 2]) -> Self {
        self.beta = beta;
        self
    }

    /// Multiplies by the transpose of A.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.trans = true;
        self
    }

    /// Takes the conjugates of A; with [`trans`](Self::trans) that is BLAS's `C`.
    #[must_use]
    pub fn conjugated(mut self) -> Self {
        self.conjugated = true;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    /// The same product with one column.
    pub(crate) fn as_cgemm(&self) -> super::Cgemm {
        let (outputs, terms) = self.lengths();
        let product = super::Cgemm::new(outputs, 1, terms).alpha(self.alpha).beta(self.beta);
        product.when(self.trans, |op| op.trans_a()).when(self.conjugated, |op| op.conjugated_a())
    }

    /// Numbers of `y` and of `x`.
    fn lengths(&self) -> (usize, usize) {
        if self.trans { (self.k, self.m) } else { (self.m, self.k) }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 2, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let (outputs, terms) = self.lengths();
        let pairs = |name, of: &[usize], access| {
            let len = elements(INFO.name, name, &[of, &[2]].concat())?;
            Ok(Operand { name, dtype, len, access })
        };
        let reads_y = self.beta != [0.0; 2];
        program.operands = vec![
            pairs("a", &[self.m, self.k], Access::Read)?,
            pairs("x", &[terms], Access::Read)?,
            pairs("y", &[outputs], if reads_y { Access::ReadWrite } else { Access::Write })?,
        ];
        profile.check_bindings(name, &program.operands, "multiply blocks of rows")?;
        let numbers = self.m as f64 * self.k as f64;
        program.cost = Cost::of(8.0 * numbers, &program.operands);
        index_u32(name, "elements of a", program.operands[0].len)?;
        if outputs == 0 {
            return Ok(program);
        }
        let [a, x, y] = [0, 1, 2].map(|i| Binding::operand(i, &program.operands));
        let (outputs, terms) = (outputs as u64, terms as u64);
        // Lanes are along the rows of A.
        let lanes = (self.k as u64).next_power_of_two().min(if self.trans { 64 } else { THREADS });
        let teams = THREADS / lanes;
        let (blocks, step) =
            if self.trans { (outputs.div_ceil(lanes), teams) } else { (outputs.div_ceil(teams), lanes) };
        // Enough workgroups to fill a card, of eight steps each.
        let wanted = if profile.quirks.few_cores { 64 } else { 1056 } / blocks;
        let steps = terms.div_ceil(step);
        let slices = wanted.min(steps / 8).max(steps.div_ceil(MAX_STEPS)).max(1);
        let share = steps.div_ceil(slices).max(1) * step;
        let product = self.alpha != [0.0; 2] && terms > 0;
        let slices = if product { terms.div_ceil(share) } else { 0 };
        let [[alpha_re, alpha_im], [beta_re, beta_im]] = [self.alpha, self.beta];
        let params = CgemvParams {
            outputs: outputs as u32,
            terms: terms as u32,
            pitch: self.k as u32,
            slices: slices as u32,
            share: share as u32,
            workgroups: (blocks * slices) as u32,
            alpha_re,
            alpha_im,
            beta_re,
            beta_im,
        };
        let bytes = 8 * outputs * slices.max(1);
        profile.check_scratch(name, format_args!("{slices} slices"), bytes, "multiply blocks of rows")?;
        let sums = program.scratch(bytes);
        if product {
            let spec = Spec::new().flag("TRANS", self.trans).flag("CONJUGATED", self.conjugated);
            let spec = spec.constant("LANES", lanes as u32);
            let kernel = program.kernel(Kernel::library("dense/cgemv", "cgemv_sums", spec));
            program.dispatch(kernel, &params, vec![a, x, sums], Grid::fold(blocks * slices));
        }
        let kernel = program.kernel(Kernel::library("dense/cgemv", "cgemv_finish", Spec::new().flag("FINISH", true)));
        program.dispatch(kernel, &params, vec![sums, y], Grid::fold(outputs.div_ceil(THREADS)));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Cgemv, T {
        fn record(a: T, x: T, y: T);
    }
}

lowered_as!(Cgemv: f32);

pub(super) const INFO: Operation = Operation {
    name: "cgemv",
    about: "y = alpha op(A) x + beta y, of complex numbers",
    inputs: &[
        Input::new("a", "(m, k, 2)"),
        Input::new("x", "(k, 2); (m, 2) with trans"),
        Input::optional("y", "(m, 2); (k, 2) with trans"),
    ],
    outputs: &[("y", "(m, 2); (k, 2) with trans")],
    types: &[DType::F32],
    options: &[
        Setting::flag("trans"),
        Setting::flag("conj"),
        Setting::number("alpha", "1"),
        Setting::number("alpha-im", "0"),
        Setting::number("beta", "0"),
        Setting::number("beta-im", "0"),
        INCX,
        INCY,
    ],
    domains: &[("a", Domain::Finite), ("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Cgemv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: crate::program::Example { shape: &[16, 16, 2], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, [m, k, _]) = super::cgemm::asked_pairs::<3>(asked, "a")?;
    let (alpha, beta) = super::cgemm::asked_scalars(asked)?;
    let settings = asked.settings();
    let op = Cgemv::new(m, k).alpha(alpha).beta(beta).variant(asked.variant());
    let op = op.when(settings.has("trans"), Cgemv::trans).when(settings.has("conj"), Cgemv::conjugated);
    let (outputs, terms) = op.lengths();
    let x = asked.like("x", &[terms, 2])?;
    let y = if asked.has_more() {
        Role::Updated(asked.like("y", &[outputs, 2])?)
    } else if beta != [0.0; 2] {
        return Err(err!(InvalidArgument, "cgemv: a beta other than 0 needs y, the third input"));
    } else {
        Role::Result(vec![outputs, 2])
    };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(x), y]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Cgemv::new(70, 300).alpha([0.5, 2.0]).variant(variant);
    let trans = op.clone().trans().conjugated().beta([1.0, 1.0]);
    Ok(vec![Op::<f32>::lower(&op, profile)?, Op::<f32>::lower(&trans, profile)?])
}
