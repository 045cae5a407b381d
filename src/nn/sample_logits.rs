use super::by_name::FLOATS;
use super::dropout::{OFFSET, SEED, STREAM};
use crate::primitives::random::low_high;
use crate::program::prelude::*;

/// Draws a token from each row of logits: token `i` with probability `softmax(logits / temperature)[i]`, or of the
/// tokens that [`top_k`](Self::top_k) and [`top_p`](Self::top_p) keep.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::SampleLogits;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let logits = gpu.upload(&[0.0f32, 5.0, 4.0, 1.0, 2.0, -1.0])?;
/// let tokens = gpu.alloc::<u32>(2)?;
/// let plan = SampleLogits::new([2, 3]).temperature(0.8).top_k(2).seed(1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &logits, &tokens)?;
/// rec.submit()?;
/// let tokens = tokens.read()?;
/// assert!([1, 2].contains(&tokens[0]) && [0, 1].contains(&tokens[1]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `logits` has rows x classes elements, `tokens` (u32) one for each row. There may be no rows, but no row may be
/// empty.
///
/// # Rules
/// First `top_k` keeps the k largest logits, and every other that equals the smallest of them. Then `top_p` keeps the
/// fewest of the largest whose probabilities reach p, and every other that equals the smallest of them; at least the
/// largest. Of the rest, the token is the first at which the sum of probabilities, in the order of tokens, passes `w /
/// 2^32`, where `w` is word `row` of the random stream. Logits of NaN and minus infinity are never drawn; of a row
/// without others, the token is 0. Where the largest logit is infinite, one of the infinite ones is drawn.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// Probabilities are computed in f32 and rounded to 2^-24 of the largest, so that sums are exact and tokens of less
/// than 2^-25 of it are never drawn. The same device, seed, stream and offset give the same tokens in every run.
/// Devices differ where `w / 2^32` lies within about 1e-5 of the border between two tokens.
///
/// # Cost
/// Each row is read 4 times from a cache, 4 more for each of `top_k` and `top_p`. One dispatch, no scratch.
///
/// # Variants
/// `digits`: a workgroup for each row.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a temperature below 0 or not finite, a `top_p` outside of
///   (0, 1], a `top_k` of 0, an unknown variant.
/// - [`Shape`](ErrorKind::Shape): rows of no classes.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^19 classes, an operand above the largest binding.
///
/// # Algorithm
/// Inversion of the distribution; what is kept by radix select, A. Alabi et al. (2012), of counts and of weights:
/// `shaders/nn/sample_logits.wgsl`. Top-p: A. Holtzman et al. (2020).
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLogits {
    shape: [usize; 2],
    temperature: f32,
    top_k: Option<usize>,
    top_p: f64,
    place: [u64; 3],
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("digits", "a workgroup finds what a row keeps, digit by digit")];

/// Maximum of classes: sums of half a weight stay below 2^32.
const MAX_CLASSES: usize = 1 << 19;

kernel_params! {
    struct SampleLogitsParams {
        seed: [u32; 2], stream: [u32; 2], first: [u32; 2], shift: u32, rows: u32, classes: u32, top_k: u32, top_p: u32,
        sharpness: f32,
    }
}

impl SampleLogits {
    /// Draws from `[rows, classes]` logits, at temperature 1 from all classes, with seed, stream and offset 0.
    pub fn new(shape: [usize; 2]) -> Self {
        Self { shape, temperature: 1.0, top_k: None, top_p: 1.0, place: [0; 3], variant: "auto".into() }
    }

    /// Divides the logits by `temperature`. At 0 the token is the first of the largest logit.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Keeps the `k` largest logits.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = Some(k);
        self
    }

    /// Keeps the fewest of the largest logits whose probabilities reach `p`.
    #[must_use]
    pub fn top_p(mut self, p: f64) -> Self {
        self.top_p = p;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.place[0] = seed;
        self
    }

    /// Sets which of the seed's streams the words come from.
    #[must_use]
    pub fn stream(mut self, stream: u64) -> Self {
        self.place[1] = stream;
        self
    }

    /// Skips this many words of the stream: as many as rows were drawn before.
    #[must_use]
    pub fn offset(mut self, words: u64) -> Self {
        self.place[2] = words;
        self
    }

    variants!(variant);

    /// Extents, 1 / temperature (0 for the largest), `k` and `p` in 2^-32, which are 0 for all, and the place in the
    /// random words.
    pub(crate) fn rule(&self) -> ([usize; 2], f32, u32, u32, [u64; 3]) {
        let top_k = self.top_k.filter(|k| *k < self.shape[1]).unwrap_or(0) as u32;
        let top_p = if self.top_p < 1.0 { ((self.top_p * 4294967296.0) as u32).max(1) } else { 0 };
        let sharpness = if self.temperature == 0.0 { 0.0 } else { 1.0 / self.temperature };
        (self.shape, sharpness, top_k, top_p, self.place)
    }

    fn check(&self) -> Result<()> {
        let [rows, classes] = self.shape;
        if classes == 0 {
            return Err(err!(Shape, "sample-logits: {rows} rows of 0 classes; there must be one to draw"));
        }
        if classes > MAX_CLASSES {
            return Err(err!(
                TooLarge,
                "sample-logits: {classes} classes; the maximum is {MAX_CLASSES}; take the largest by top-k-rows first"
            ));
        }
        let t = self.temperature;
        if !(t == 0.0 || t > 0.0 && t.is_finite() && (1.0 / t).is_finite()) {
            return Err(err!(
                InvalidArgument,
                "sample-logits: a temperature of {t}; it must be 0, or finite and at least 1e-38"
            ));
        }
        if self.top_k == Some(0) {
            return Err(err!(InvalidArgument, "sample-logits: a top-k of 0; leave it out to keep all classes"));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(err!(
                InvalidArgument,
                "sample-logits: a top-p of {}; it must be above 0 and at most 1",
                self.top_p
            ));
        }
        Ok(())
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let ([rows, classes], sharpness, top_k, top_p, [seed, stream, offset]) = self.rule();
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let len = elements(INFO.name, "logits", &[rows, classes])?;
        program.operands = vec![
            Operand { name: "logits", dtype, len, access: Access::Read },
            Operand { name: "tokens", dtype: DType::U32, len: rows, access: Access::Write },
        ];
        profile.check_bindings(INFO.name, &program.operands, "take fewer rows at a time, with an offset")?;
        index_u32(INFO.name, "elements", len)?;
        program.cost = Cost::of(4.0 * len as f64, &program.operands);
        if rows == 0 {
            return Ok(program);
        }
        let params = SampleLogitsParams {
            seed: low_high(seed),
            stream: low_high(stream),
            first: low_high(offset / 4),
            shift: (offset % 4) as u32,
            rows: rows as u32,
            classes: classes as u32,
            top_k,
            top_p,
            sharpness,
        };
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag("INT64", profile.features.int64);
        let kernel = program.kernel(Kernel::of_file("nn/sample_logits", spec));
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(rows as u64));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] SampleLogits, T {
        fn record(logits: T, tokens: u32);
    }
}

lowered_as!(SampleLogits: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "sample-logits",
    about: "a token drawn from each row of logits, by temperature, top-k and top-p",
    inputs: &[Input::new("logits", "(rows, classes)")],
    outputs: &[("tokens", "u32 (rows)")],
    types: &FLOATS,
    options: &[
        Setting::number("temperature", "1"),
        Setting::number("k", ""),
        Setting::number("p", "1"),
        SEED,
        STREAM,
        OFFSET,
    ],
    domains: &[("logits", Domain::Finite)],
    make: Some(make),
    variants: SampleLogits::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (logits, shape) = asked.array::<2>("logits")?;
    asked.check_type(&logits)?;
    let settings = asked.settings();
    let mut op = SampleLogits::new(shape).variant(asked.variant()).temperature(settings.number("temperature")?);
    op = op.top_p(settings.number("p")?).seed(settings.number(SEED.name)?);
    op = op.stream(settings.number(STREAM.name)?).offset(settings.number(OFFSET.name)?);
    if let Some(k) = settings.maybe("k")? {
        op = op.top_k(k);
    }
    let (dtype, tokens) = (logits.dtype(), Role::Result(vec![shape[0]]));
    let operands = vec![Role::Given(logits), tokens];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SampleLogits::new([3, 1001]).top_k(50).top_p(0.9).variant(variant);
    FLOATS.into_iter().map(|dtype| op.lower_as(dtype, profile)).collect()
}
