use super::columns::mean;
use super::rows::{check_rows, check_steps, chunk_params, policy, reduction};
use crate::program::prelude::*;

/// Computes the loss of a classifier, `losses[r] = log(sum over i of exp(logits[r, i])) - logits[r, labels[r]]`, its
/// mean over rows, and the gradient of the mean on request.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::CrossEntropy;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (logits, labels) = (gpu.upload(&[0.0f32, 0.0, 9.0, 9.0])?, gpu.upload(&[0u32, 1])?);
/// let (losses, mean) = (gpu.alloc::<f32>(2)?, gpu.alloc::<f32>(1)?);
/// let plan = CrossEntropy::new(2, 2).plan::<f32>(&gpu)?; // 2 rows, 2 classes
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &logits, &labels, &losses, &mean)?;
/// rec.submit()?;
/// assert!((mean.read()?[0] - 2f32.ln()).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `logits` is rows x classes, row-major; `labels` (u32) and `losses` have one element for each row, `mean` has one.
/// [`with_gradient`](Self::with_gradient) adds `dx`, of the shape of `logits`. Both extents must be at least 1. Outputs
/// must not share wgpu buffers with other operands.
///
/// # Types
/// f32, with labels of u32.
///
/// # Precision and determinism
/// Sums are f32, in a tree of fixed order; subtracting the maximum of a row avoids overflow.
/// [`reference::cross_entropy_bound`](crate::reference::cross_entropy_bound) bounds the error. A label that is not a
/// class makes its loss, its gradient and the mean NaN. So does a row that holds NaN or +infinity, or only -infinity.
/// The same device and inputs give the same bits.
///
/// # Cost
/// About 5 flop for each logit, which is read twice, once from cache. One dispatch, those of a
/// [`Reduce`](crate::Reduce) over the rows with its scratch, and one for the mean.
///
/// # Variants
/// `passes`, the only one.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): no rows or no classes.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// Log-sum-exp with the maximum subtracted: `shaders/nn/cross_entropy.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossEntropy {
    rows: usize,
    classes: usize,
    gradient: bool,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("passes", "threads share a row and read it for the maximum, the sum and the gradient")];

impl CrossEntropy {
    /// Takes `rows` rows of `classes` logits.
    pub fn new(rows: usize, classes: usize) -> Self {
        Self { rows, classes, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean: an operand `dx`, `dx[r, i] = (softmax(logits[r])[i] - (1 if i is labels[r] else
    /// 0)) / rows`, which plans take by `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    variants!(variant);
}

operands! {
    impl[] CrossEntropy, f32 {
        fn record(logits: f32, labels: u32, losses: f32, mean: f32);
        /// Takes the buffer for the gradient of the mean.
        optional with_dx(dx: f32);
    }
}

impl Op<f32> for CrossEntropy {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, classes, gradient, .. } = *self;
        let len = elements("cross-entropy", "logits", &[rows, classes])?;
        if len == 0 {
            return Err(err!(
                Shape,
                "cross-entropy: there are {rows} rows of {classes} classes; there must be at least one of each"
            ));
        }
        let mut program = Program::of_only_variant("cross-entropy", &self.variant, VARIANTS, profile)?;
        let f32s = |name, len, access| Operand { name, dtype: DType::F32, len, access };
        program.operands = vec![
            f32s("logits", len, Access::Read),
            Operand { name: "labels", dtype: DType::U32, len: rows, access: Access::Read },
            f32s("losses", rows, Access::Write),
            f32s("mean", 1, Access::Write),
        ];
        if gradient {
            program.operands.push(f32s("dx", len, Access::Write));
        }
        program.cost = Cost::of(5.0 * len as f64, &program.operands);
        check_rows("cross-entropy", &program.operands[0], classes, profile)?;
        check_rows("cross-entropy", &program.operands[1], rows, profile)?;
        let policy = policy(profile);
        let lanes = (classes as u64).div_ceil(4).next_power_of_two().min(policy.workgroup);
        check_steps("cross-entropy", classes, classes as u64, lanes, profile)?;
        let spec = reduction(lanes, policy.workgroup, profile).flag("GRADIENT", gradient);
        let kernel = program.kernel(Kernel::library("nn/cross_entropy", "cross_entropy", spec));
        let row_bytes = 4 * classes as u64;
        for chunk in profile.chunks(rows as u64, row_bytes) {
            let share = (1.0 / rows as f64) as f32;
            let params = chunk_params(&chunk, classes as u64, share, f32::NEG_INFINITY);
            let mut bindings = vec![chunk.of(Resource::Operand(0), row_bytes)];
            bindings.extend((1..3).map(|i| Binding::operand(i, &program.operands)));
            if gradient {
                bindings.push(chunk.of(Resource::Operand(4), row_bytes));
            }
            let grid = Grid::fold(chunk.count.div_ceil(policy.workgroup / lanes));
            program.dispatch(kernel, &params, bindings, grid);
        }
        mean(&mut program, Resource::Operand(2), rows, Resource::Operand(3), profile)?;
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "cross-entropy",
    about: "the loss of each row of logits with one label, the mean, and its gradient",
    inputs: &[Input::new("logits", "(rows, classes)"), Input::new("labels", "u32 (rows)")],
    outputs: &[("losses", "(rows)"), ("loss", "()"), ("gradient", "(rows, classes)")],
    types: &[DType::F32],
    make: Some(make),
    variants: CrossEntropy::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (logits, [rows, classes]) = asked.array("logits")?;
    asked.check_type(&logits)?;
    let labels = asked.indices("labels", &[rows], classes)?;
    let op = CrossEntropy::new(rows, classes).variant(asked.variant()).with_gradient();
    let mut operands = vec![Role::Given(logits), Role::Given(labels)];
    operands.extend([vec![rows], vec![], vec![rows, classes]].map(Role::Result));
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (rows, classes) in [(1, 1), (3, 10), (5, 1000), (2, 5000)] {
        let op = CrossEntropy::new(rows, classes).variant(variant);
        programs.push(op.lower(profile)?);
        programs.push(op.with_gradient().lower(profile)?);
    }
    Ok(programs)
}
