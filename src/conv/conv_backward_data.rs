//! The gradient of a convolution layer by its input.

use super::conv::{Conv2d, sample_layers};
use super::correlate::{self, ConvJob, VARIANTS};
use super::layer::{DILATION, GROUPS, Layer, PAD, PAD_EACH, STRIDE, add_operands};
use crate::dense::Activation;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Example, Form, Input, Op, Operation, Program,
    Resource, Role, Setting, Variant, by_type, operands,
};

/// The gradient of a [`Conv2d`] by its input: `dx[n, c, y, x]` is the sum of `w[m, c, a, b] dy[n, m, i, j]` over all m, a, b, i, j
/// whose product entered the output there.
///
/// # Shapes
/// `dy` has the shape of the layer's output (N, M, P, Q), `w` that of its weights, `dx` that of its x. Operands are `dy`, `w`,
/// `dx`. `dy` is the gradient by what the activation is applied to: bias and activation of the layer do not enter. `dx` must be a wgpu
/// buffer of its own.
///
/// # Types, precision and determinism
/// As of [`Conv2d`], with sums of `M / groups R S` products.
/// A weight that is not finite may make NaN of every output of its filter: variants multiply zeros beyond the edge by it.
///
/// # Cost
/// As of [`Conv2d`]. `implicit` and `im2col` first turn the weights, into as much scratch as those take.
///
/// # Variants
/// Those of [`Conv2d`]: the gradient is a convolution of `dy`, its elements spread `stride` apart, with turned windows. `winograd` and `depthwise`
/// need a stride of 1.
///
/// # Errors
/// As of [`Conv2d`].
///
/// # Algorithm
/// `shaders/conv/conv_backward_data_weight.wgsl` and `conv_transpose_turn.wgsl`, with the kernels of [`Conv2d`].
///
/// # Example
/// ```
/// use tilework::conv::{Conv2d, Conv2dBackwardData};
/// use tilework::program::{DeviceProfile, Op};
///
/// let layer = Conv2d::new([8, 16, 28, 28], 32, [3, 3]).stride([2, 2]).pad([1, 1]);
/// let program = Op::<f32>::lower(&Conv2dBackwardData::new(&layer), &DeviceProfile::h100())?;
/// let lens: Vec<_> = program.operands.iter().map(|o| (o.name, o.len)).collect();
/// assert_eq!(lens, [("dy", 8 * 32 * 14 * 14), ("w", 32 * 16 * 9), ("dx", 8 * 16 * 28 * 28)]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dBackwardData {
    layer: Layer,
    variant: String,
}

impl Conv2dBackwardData {
    /// Of this layer.
    pub fn new(layer: &Conv2d) -> Self {
        Self { layer: Layer { op: "conv-backward-data", ..layer.layer.clone() }, variant: "auto".into() }
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// The layer, and whether sums may be Winograd's.
    pub(crate) fn parts(&self) -> (&Layer, bool) {
        (&self.layer, self.variant == "auto" || self.variant == "winograd")
    }
}

operands! {
    impl[T: Element,] Conv2dBackwardData, T {
        fn record(dy: T, w: T, dx: T);
    }
}

impl Op<f32> for Conv2dBackwardData {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let [dx, w, dy] = self.layer.lengths()?;
        let c = self.layer.backward()?;
        let (variant, decision) = correlate::variant(&self.variant, &c, profile)?;
        let mut program = Program::new(c.op, decision);
        let operands = [("dy", dy, Access::Read), ("w", w, Access::Read), ("dx", dx, Access::Write)];
        add_operands(&mut program, &operands, profile)?;
        program.cost =
            Cost { flop: self.layer.flop()?, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
        let job = ConvJob {
            c,
            activation: Activation::None,
            x: Resource::Operand(0),
            weights: Binding::operand(1, &program.operands),
            bias: None,
            output: Resource::Operand(2),
            profile,
        };
        job.lower(&mut program, variant)?;
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "conv-backward-data",
    about: "the gradient of a convolution layer by its input",
    inputs: &[Input::new("dy", "(N, M, P, Q)"), Input::new("w", "(M, C/groups, R, S)")],
    types: &[DType::F32],
    options: &[Setting::text("shape", SHAPE, ""), STRIDE, PAD, PAD_EACH, DILATION, GROUPS],
    make: Some(make),
    variants: Conv2dBackwardData::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    example: Example { shape: &[1, 4, 6, 6], options: &[("shape", "1,4,8,8")] },
    ..Operation::UNDECLARED
};

/// What the option `shape` is: that of the gradient.
const SHAPE: &str = "N,C,H,W";

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let settings = asked.settings();
    let (dy, [_, m, ..]) = asked.array::<4>("dy")?;
    let shape @ [_, c, ..]: [usize; 4] = settings.numbers("shape", SHAPE)?;
    let groups: usize = settings.number("groups")?;
    let (w, [filters, _, r, s]) = asked.free_of("w", [m, c / groups.max(1), 3, 3], DType::F32)?;
    let layer = Layer::asked(asked, shape, filters, [r, s])?;
    asked.check("dy", &dy, &layer.output_shape()?, DType::F32)?;
    asked.check("w", &w, &layer.weights_shape(), DType::F32)?;
    let op = Conv2dBackwardData { layer, variant: asked.variant().to_owned() };
    let dx = Role::Result(shape.to_vec());
    by_type!(asked, dy.dtype(), [f32], T => Ok(Form::new::<T>(op, vec![Role::Given(dy), Role::Given(w), dx])))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let fits = |layer: &Layer| layer.stride == [1, 1] || variant != "depthwise";
    let layers = sample_layers("conv-backward-data", variant).into_iter().filter(fits);
    layers
        .map(|layer| Op::<f32>::lower(&Conv2dBackwardData { layer, variant: variant.into() }, profile))
        .collect()
}
