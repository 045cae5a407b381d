//! The gradient of a convolution layer by its input.

use super::conv::{Conv, sample_layers};
use super::correlate::{self, Job, VARIANTS};
use super::layer::{Layer, add_operands};
use crate::dense::Activation;
use crate::element::Element;
use crate::error::Result;
use crate::program::{
    Access, Binding, Comparison, Cost, DeviceProfile, Op, Operation, Program, Resource, Variant, operands,
};

/// The gradient of a [`Conv`] by its input: `dx[n, c, y, x]` is the sum of `w[m, c, a, b] dy[n, m, i, j]` over all m, a, b, i, j
/// whose product entered the output there.
///
/// # Shapes
/// `dy` has the shape of the layer's output (N, M, P, Q), `w` that of its weights, `dx` that of its x. Operands are `dy`, `w`,
/// `dx`. `dy` is the gradient by what the activation is applied to: bias and activation of the layer do not enter. `dx` must be a wgpu
/// buffer of its own.
///
/// # Types, precision and determinism
/// As of [`Conv`], with sums of `M / groups R S` products.
/// A weight that is not finite may make NaN of every output of its filter: variants multiply zeros beyond the edge by it.
///
/// # Cost
/// As of [`Conv`]. `implicit` and `im2col` first turn the weights, into as much scratch as those take.
///
/// # Variants
/// Those of [`Conv`]: the gradient is a convolution of `dy`, its elements spread `stride` apart, with turned windows. `winograd` and `depthwise`
/// need a stride of 1.
///
/// # Errors
/// As of [`Conv`].
///
/// # Algorithm
/// `shaders/conv/conv_backward_data_weight.wgsl` and `conv_transpose_turn.wgsl`, with the kernels of [`Conv`].
///
/// # Example
/// ```
/// use tilework::conv::{Conv, ConvBackwardData};
/// use tilework::program::{DeviceProfile, Op};
///
/// let layer = Conv::new([8, 16, 28, 28], 32, [3, 3]).stride([2, 2]).pad([1, 1]);
/// let program = Op::<f32>::lower(&ConvBackwardData::new(&layer), &DeviceProfile::h100())?;
/// let lens: Vec<_> = program.operands.iter().map(|o| (o.name, o.len)).collect();
/// assert_eq!(lens, [("dy", 8 * 32 * 14 * 14), ("w", 32 * 16 * 9), ("dx", 8 * 16 * 28 * 28)]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ConvBackwardData {
    layer: Layer,
    variant: String,
}

impl ConvBackwardData {
    /// Of this layer.
    pub fn new(layer: &Conv) -> Self {
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
    impl[T: Element,] ConvBackwardData, T {
        fn record(dy: T, w: T, dx: T);
    }
}

impl Op<f32> for ConvBackwardData {
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
        let job = Job {
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
    old_inputs: "dy (N,M,P,Q), w (M,C/groups,R,S), f32",
    keys: "shape N,C,H,W, stride 1, pad 0, dilation 1, groups 1; numbers or \"h,w\"",
    variants: ConvBackwardData::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let fits = |layer: &Layer| layer.stride == [1, 1] || variant != "depthwise";
    let layers = sample_layers("conv-backward-data", variant).into_iter().filter(fits);
    layers
        .map(|layer| Op::<f32>::lower(&ConvBackwardData { layer, variant: variant.into() }, profile))
        .collect()
}
