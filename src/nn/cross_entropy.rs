//! Cross-entropy of logits with labels.

use super::columns::mean;
use super::rows::{RowsParams, check_rows, check_steps, policy, reduction};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Form, Grid, Input, Kernel, Op, Operand, Operation, Program,
    Resource, Role, Variant, choose, operands,
};
use crate::shape::elements;

/// The loss of a classifier: `losses[r] = log(sum over i of e^logits[r, i]) - logits[r, labels[r]]`, and their mean.
///
/// # Shapes
/// `logits` are rows of one number a class, row-major; `labels` (u32) and `losses` have an element a row, `mean` has one.
/// Operands are `logits`, `labels`, `losses`, `mean`, in this order; [`with_gradient`](Self::with_gradient) adds `dx`.
/// There must be a row and a class. Every output must be a wgpu buffer of its own.
///
/// # Types
/// f32 with labels of u32.
///
/// # Precision and determinism
/// The largest logit of a row is taken out before the exponential, so nothing overflows. Sums in f32, in a tree of fixed
/// order. Same device, same bits.
/// A label that is no class gives NaN: as the loss of its row, in its gradient, and as the mean. So does a row that holds NaN or
/// infinity, or nothing but -infinity.
/// [`reference::cross_entropy_bound`](crate::reference::cross_entropy_bound) is the bound of the error.
///
/// # Cost
/// About 5 operations a logit, which is read twice through the cache. One dispatch and those of a
/// [`Reduce`](crate::Reduce) over the rows, and one for the mean; its scratch.
///
/// # Variants
/// `passes`.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): no row or no class; [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the
/// largest buffer, a row above the largest binding; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/cross_entropy.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::CrossEntropy;
/// use tilework::program::{DeviceProfile, Op};
///
/// let loss = CrossEntropy::new(128, 10);
/// assert_eq!(loss.lower(&DeviceProfile::h100())?.operands.len(), 4);
/// assert_eq!(loss.with_gradient().lower(&DeviceProfile::h100())?.operands[4].name, "dx");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossEntropy {
    rows: usize,
    classes: usize,
    gradient: bool,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("passes", "invocations share a row, read for its largest, the sum and the gradient")];

impl CrossEntropy {
    /// Of `rows` rows of `classes` logits.
    pub fn new(rows: usize, classes: usize) -> Self {
        Self { rows, classes, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean by the logits: an operand `dx`, `dx[r, i] = (softmax(logits[r])[i] - (1 if i is labels[r] else 0)) / rows`,
    /// which plans take by `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    crate::program::variants!(variant);

    fn lower_with(&self, gradient: bool, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, classes, .. } = *self;
        let len = elements("cross-entropy", "logits", &[rows, classes])?;
        if len == 0 {
            return Err(err!(
                Shape,
                "cross-entropy: {rows} rows of {classes} classes; there must be at least one of each"
            ));
        }
        let (_, decision) = choose("cross-entropy", &self.variant, VARIANTS, profile, || {
            ("passes", "the one way there is".to_owned())
        })?;
        let mut program = Program::new("cross-entropy", decision);
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
        program.cost =
            Cost { flop: 5.0 * len as f64, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
        check_rows("cross-entropy", &program.operands[0], classes, profile)?;
        check_rows("cross-entropy", &program.operands[1], rows, profile)?;
        let policy = policy(profile);
        let lanes = (classes as u64).div_ceil(4).next_power_of_two().min(policy.workgroup);
        check_steps("cross-entropy", classes, classes as u64, lanes, profile)?;
        let spec = reduction(lanes, policy.workgroup, profile).flag("GRADIENT", gradient);
        let kernel = program.kernel(Kernel::library("nn/cross_entropy", "cross_entropy", spec));
        let row_bytes = 4 * classes as u64;
        for chunk in profile.chunks(rows as u64, row_bytes) {
            let params = RowsParams {
                rows: chunk.count as u32,
                n: classes as u32,
                parts: 1,
                part_len: classes as u32,
                origin: (chunk.span(row_bytes).before / 4) as u32,
                first: chunk.first as u32,
                eps: (1.0 / rows as f64) as f32,
                pad: f32::NEG_INFINITY,
            };
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

operands! {
    impl[] CrossEntropy, f32 {
        fn record(logits: f32, labels: u32, losses: f32, mean: f32);
        /// The gradient of the mean.
        optional with_dx(dx: f32);
    }
}

crate::program::lowers! {
    impl[] CrossEntropy as [f32], |op, _, profile| op.lower_with(op.gradient, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "cross-entropy",
    about: "the loss of logits with one right class a row, its mean, and the gradient of that",
    inputs: &[Input::new("logits", "(rows, classes)"), Input::new("labels", "u32 (rows)")],
    outputs: &[("losses", "(rows)"), ("loss", "()"), ("gradient", "(rows, classes)")],
    types: &[DType::F32],
    make: Some(make),
    variants: CrossEntropy::variants,
    samples,
    ..Operation::UNDECLARED
};

/// With the gradient.
fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (logits, [rows, classes]) = asked.array("logits")?;
    asked.check_type(&logits)?;
    let labels = asked.indices("labels", &[rows], classes)?;
    let op = CrossEntropy::new(rows, classes).variant(asked.variant()).with_gradient();
    let mut operands = vec![Role::Given(logits), Role::Given(labels)];
    operands.extend([vec![rows], vec![], vec![rows, classes]].map(Role::Result));
    Ok(Form::new::<f32>(op, operands))
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
