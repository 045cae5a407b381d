use super::columns::Columns;
use super::rows::check_rows;
use crate::primitives::{Reduce, Sum};
use crate::program::prelude::*;

/// Computes the gradient of a bias that was added to each channel: `db[c] = sum over n and i of dy[n, c, i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::BiasBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (dy, db) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.alloc::<f32>(2)?);
/// let plan = BiasBackward::new([2, 2, 1]).plan::<f32>(&gpu)?; // 2 samples, 2 channels
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &dy, &db)?;
/// rec.submit()?;
/// assert_eq!(db.read()?, [4.0, 6.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `dy` is N x C x L, row-major, with L elements in a plane: 1 for a fully connected layer, H W for images. `db` has C
/// elements. Any extent may be 0; an empty sum is 0. The two must not share a wgpu buffer.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums are f32: over planes as in [`Reduce`], over images by blocks of rows and then over blocks.
/// [`reference::bias_backward_bound`](crate::reference::bias_backward_bound) bounds the error. NaN and infinities
/// propagate as in f32 arithmetic. The same device and inputs give the same bits.
///
/// # Cost
/// One flop for each element, which is read once. At most two dispatches; if L > 1 also a reduction over planes, with
/// 4 N C bytes of scratch.
///
/// # Variants
/// `blocks`, the only one.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): `dy` above the largest buffer, a row of C above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/bias_backward.wgsl`, twice: columns of blocks of rows, then columns of their sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BiasBackward {
    n: usize,
    channels: usize,
    plane: usize,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("blocks", "sums columns of blocks of rows, then those sums")];

impl BiasBackward {
    /// Takes the shape of `dy` (n, channels, plane); `plane` is 1 for a matrix.
    pub fn new([n, channels, plane]: [usize; 3]) -> Self {
        Self { n, channels, plane, variant: "auto".into() }
    }

    variants!(variant);
}

operands! {
    impl[] BiasBackward, f32 {
        fn record(dy: f32, db: f32);
    }
}

impl Op<f32> for BiasBackward {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, channels, plane, .. } = *self;
        let len = elements("bias-backward", "dy", &[n, channels, plane])?;
        let mut program = Program::of_only_variant("bias-backward", &self.variant, VARIANTS, profile)?;
        program.operands = vec![
            Operand { name: "dy", dtype: DType::F32, len, access: Access::Read },
            Operand { name: "db", dtype: DType::F32, len: channels, access: Access::Write },
        ];
        program.cost = Cost { flop: len as f64, bytes: 4.0 * (len + channels) as f64 };
        check_rows("bias-backward", &program.operands[0], channels, profile)?;
        let mut gradients = Resource::Operand(0);
        if plane != 1 {
            let sums = Op::<f32>::lower(&Reduce::rows(Sum, n * channels, plane), profile)?;
            let of_planes = program.scratch(4 * (n * channels).max(1) as u64).resource;
            program.append(sums, &[gradients, of_planes]);
            gradients = of_planes;
        }
        let (rows, n) = (n as u64, channels as u64);
        Columns { rows, n, gradients, normed: None, factor: 1.0, profile }.sum(
            &mut program,
            Some(Resource::Operand(1)),
            None,
        );
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "bias-backward",
    about: "the gradient of a bias: sums over all axes but the channels",
    inputs: &[Input::new("dy", "(N, C) or (N, C, H, W)")],
    outputs: &[("db", "(C)")],
    types: &[DType::F32],
    make: Some(make),
    variants: BiasBackward::variants,
    samples,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let dy = asked.any("dy")?;
    asked.check_type(&dy)?;
    let [n, channels, ref plane @ ..] = *dy.shape() else {
        return Err(err!(Shape, "bias-backward: dy is {dy}; it must be (N, C) or (N, C, H, W)"));
    };
    let plane = elements("bias-backward", "a plane of dy", plane)?;
    let op = BiasBackward::new([n, channels, plane]).variant(asked.variant());
    Ok(OpCall::new::<f32>(op, vec![Role::Given(dy), Role::Result(vec![channels])]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    [(3, 5, 1), (64, 300, 1), (7, 3, 25), (9000, 12, 1), (9000, 7, 1)]
        .into_iter()
        .map(|(n, c, plane)| Op::<f32>::lower(&BiasBackward::new([n, c, plane]).variant(variant), profile))
        .collect()
}
