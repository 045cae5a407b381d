use super::by_name::FLOATS;
use crate::primitives::random::low_high;
use crate::program::prelude::*;

/// Sets elements to 0 with probability `p` and scales the rest: `y[i] = x[i] / (1 - p)` if word `i` of a random stream
/// is at least `2^32 p`, else 0.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::Dropout;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32; 1000])?, gpu.alloc::<f32>(1000)?);
/// let plan = Dropout::new(0.25, 1000).seed(7).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// let kept = y.read()?.iter().filter(|y| **y != 0.0).count();
/// assert!((700..800).contains(&kept));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// The gradient is the same op with the same seed, stream and offset on the gradient of `y`: the mask is made again
/// from the counter, so nothing is kept between the two. In inference leave the op out.
///
/// # Shapes
/// `x` and `y` have `n` elements; `n` may be 0. They must be different wgpu buffers.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// The mask is that of the words of [`Random`](crate::Random), the same on every device. `p` is rounded to a multiple
/// of 2^-32, `1 / (1 - p)` to f32; the product is rounded once more. Dropped elements are 0 also where `x` is NaN or
/// infinite. Devices may flush subnormal numbers to 0.
///
/// # Cost
/// About 30 operations an element; each is read and written once. One dispatch, no scratch.
///
/// # Variants
/// `philox`: four elements a thread.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): `p` outside of [0, 1), an offset that is no multiple of 4,
///   an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// N. Srivastava et al., *Dropout* (2014); `shaders/nn/dropout.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dropout {
    p: f64,
    n: usize,
    seed: u64,
    stream: u64,
    offset: u64,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("philox", "a thread takes the four elements of a block of words")];

kernel_params! {
    struct DropoutParams {
        seed: [u32; 2], stream: [u32; 2], first: [u32; 2], n: u32, threshold: u32, scale: f32, pad: u32,
    }
}

impl Dropout {
    /// Drops each of `n` elements with probability `p`, with seed, stream and offset 0.
    pub fn new(p: f64, n: usize) -> Self {
        Self { p, n, seed: 0, stream: 0, offset: 0, variant: "auto".into() }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets which of the seed's streams the words come from, such as the number of the layer.
    #[must_use]
    pub fn stream(mut self, stream: u64) -> Self {
        self.stream = stream;
        self
    }

    /// Skips this many words of the stream, a multiple of 4: those of earlier steps.
    #[must_use]
    pub fn offset(mut self, words: u64) -> Self {
        self.offset = words;
        self
    }

    variants!(variant);

    /// Seed, stream and offset.
    pub(crate) fn place(&self) -> [u64; 3] {
        [self.seed, self.stream, self.offset]
    }

    /// The words below which elements are dropped, and the factor of the others.
    pub(crate) fn rule(&self) -> (u32, f32) {
        ((self.p * 4294967296.0).round().min(4294967295.0) as u32, (1.0 / (1.0 - self.p)) as f32)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { p, n, seed, stream, offset, .. } = *self;
        if !(0.0..1.0).contains(&p) {
            return Err(err!(
                InvalidArgument,
                "dropout: p {p}; it must be at least 0 and below 1; to drop everything, clear the output"
            ));
        }
        if !offset.is_multiple_of(4) {
            return Err(err!(InvalidArgument, "dropout: an offset of {offset} words; it must be a multiple of 4"));
        }
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, access| Operand { name, dtype, len: n, access };
        program.operands = vec![operand("x", Access::Read), operand("y", Access::Write)];
        profile.check_bindings(INFO.name, &program.operands, "take parts, each with an offset")?;
        program.cost = Cost::of(30.0 * n as f64, &program.operands);
        let count = index_u32(INFO.name, "n", n)?;
        if n == 0 {
            return Ok(program);
        }
        let (threshold, scale) = self.rule();
        let params = DropoutParams {
            seed: low_high(seed),
            stream: low_high(stream),
            first: low_high(offset / 4),
            n: count,
            threshold,
            scale,
            pad: 0,
        };
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag("HALVES", dtype == DType::F16);
        let spec = spec.flag("INT64", profile.features.int64);
        let kernel = program.kernel(Kernel::of_file("nn/dropout", spec));
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(u64::from(count).div_ceil(1024)));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Dropout, T {
        fn record(x: T, y: T);
    }
}

lowered_as!(Dropout: f32, f16);

/// Options of ops that take words of a stream.
pub(super) const SEED: Setting = Setting::number("seed", "0");
pub(super) const STREAM: Setting = Setting::number("stream", "0");
pub(super) const OFFSET: Setting = Setting::number("offset", "0");

pub(super) const INFO: Operation = Operation {
    name: "dropout",
    about: "y = x / (1 - p), or 0 with probability p; its own gradient",
    inputs: &[Input::new("x", "any shape")],
    outputs: &[("y", "as x")],
    types: &FLOATS,
    options: &[Setting::number("p", "0.5"), SEED, STREAM, OFFSET],
    domains: &[("x", Domain::Any)],
    make: Some(make),
    variants: Dropout::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    let settings = asked.settings();
    let op = Dropout::new(settings.number("p")?, x.len()).variant(asked.variant());
    let op = op.seed(settings.number(SEED.name)?).stream(settings.number(STREAM.name)?);
    let op = op.offset(settings.number(OFFSET.name)?);
    let (dtype, y) = (x.dtype(), Role::Result(x.shape().to_vec()));
    let operands = vec![Role::Given(x), y];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Dropout::new(0.3, 1001).variant(variant);
    FLOATS.into_iter().map(|dtype| op.lower_as(dtype, profile)).collect()
}
