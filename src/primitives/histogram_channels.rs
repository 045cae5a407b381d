use super::histogram::{BinsParams, Histogram, Rule, binned};
use crate::program::prelude::*;

/// Counts the elements of each channel in bins: `counts[c, i]` is the number of elements `x[p, c]` in bin `i`, for the
/// first `active` of `channels` interleaved channels, as `cub::DeviceHistogram::MultiHistogramEven` counts pixels.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let pixels = gpu.upload(&[0u8, 255, 9, 1, 200, 9, 2, 255, 9])?; // red, green, blue
/// let counts = gpu.alloc::<u32>(2 * 256)?;
/// let plan = HistogramChannels::new(3, 3, 256).active(2).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &pixels, &counts)?;
/// rec.submit()?;
/// let counts = counts.read()?;
/// assert_eq!(counts[..3], [1, 1, 1]);
/// assert_eq!((counts[256 + 200], counts[256 + 255]), (1, 2));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has n x channels elements, `counts` active x bins of u32, and is overwritten. There may be 1 to 16 channels,
/// and up to 2^20 counts in all. `n` may be 0. The two must be different wgpu buffers. Rows with padding between them
/// are a call each. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of groups of
/// channels, such as pixels.
///
/// # Types and bins
/// Those of [`Histogram`]: [`new`](Self::new) alone, [`range`](Self::range) or [`with_edges`](Self::with_edges), the
/// same bins for each channel. For other bins of a channel, call again with all of them.
///
/// # Precision and determinism
/// Exact, and the same on every device.
///
/// # Cost
/// Each element is read once. Two dispatches, no scratch.
///
/// # Variants
/// `global` and `privatized`; `auto` (the default) takes `privatized` while the counts fit workgroup memory.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): those of [`Histogram`] for its bins; no channel, more than
///   16, or more active ones than there are; an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type; more than 4096 counts in `privatized`.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^20 counts, or an operand above the largest binding.
///
/// # Algorithm
/// As [`Histogram`]: `shaders/primitives/histogram_channels.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramChannels {
    bins: Histogram,
    n: usize,
    channels: usize,
    active: usize,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("global", "counts by atomics in device memory"),
    Variant::portable("privatized", "counts in workgroup memory, and adds up at the end"),
];

const MAX_CHANNELS: usize = 16;
const MAX_COUNTS: usize = 1 << 20;
/// Maximum of counts in workgroup memory: 16 KiB.
const MAX_IN_WORKGROUP: usize = 4096;

impl HistogramChannels {
    /// Counts `n` elements of each of `channels` channels in `bins` bins; without a range, bin = value.
    pub fn new(n: usize, channels: usize, bins: usize) -> Self {
        Self::of(Histogram::new(n, bins), n, channels)
    }

    /// Counts them in the bins between neighbouring `edges`.
    pub fn with_edges(n: usize, channels: usize, edges: impl Into<Vec<f64>>) -> Self {
        Self::of(Histogram::with_edges(n, edges), n, channels)
    }

    fn of(bins: Histogram, n: usize, channels: usize) -> Self {
        Self { bins, n, channels, active: channels, counted: false, variant: "auto".into() }
    }

    /// Sets bins of equal width from `lo` to `hi`, both included: as [`Histogram::range`].
    #[must_use]
    pub fn range(mut self, lo: f64, hi: f64) -> Self {
        self.bins = self.bins.range(lo, hi);
        self
    }

    /// Counts only the first `active` channels; all by default.
    #[must_use]
    pub fn active(mut self, active: usize) -> Self {
        self.active = active;
        self
    }

    counted!(counted, "groups of channels", "Groups behind it are ignored.");
    variants!(variant);

    pub(crate) fn bins(&self) -> &Histogram {
        &self.bins
    }

    pub(crate) fn channels(&self) -> [usize; 2] {
        [self.channels, self.active]
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, channels, active, .. } = *self;
        let (name, bins) = (INFO.name, self.bins.bins());
        if !INFO.types.contains(&dtype) {
            return Err(err!(Unsupported, "{name}: elements of {dtype}; convert them to f32 or u32"));
        }
        if channels == 0 || channels > MAX_CHANNELS || active == 0 || active > channels {
            return Err(err!(
                InvalidArgument,
                "{name}: {active} of {channels} channels; there must be 1 to {MAX_CHANNELS}, and 1 to all of them active"
            ));
        }
        self.bins.check(dtype).map_err(|e| e.context(name))?;
        let counts = bins.saturating_mul(active);
        if counts > MAX_COUNTS {
            return Err(err!(
                TooLarge,
                "{name}: {active} channels of {bins} bins are {counts} counts; the maximum is {MAX_COUNTS}; count fewer \
                 channels at once"
            ));
        }
        let (variant, decision) = choose(name, &self.variant, VARIANTS, profile, || match counts {
            ..=MAX_IN_WORKGROUP => ("privatized", "the counts fit workgroup memory".into()),
            _ => ("global", "the counts do not fit workgroup memory".into()),
        })?;
        let private = variant.name == "privatized";
        if private && counts > MAX_IN_WORKGROUP {
            return Err(err!(
                Unsupported,
                "{name}: `privatized` takes up to {MAX_IN_WORKGROUP} counts in all, not {counts}; use `global`"
            ));
        }
        let mut program = Program::new(name, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", dtype, elements(name, "input", &[n, channels])?, Access::Read)];
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let last = program.operands.len();
        program.operands.push(operand("counts", DType::U32, counts, Access::Write));
        profile.check_bindings(name, &program.operands, "count parts and add the counts")?;
        index_u32(name, "input", program.operands[0].len)?;
        program.cost = Cost::of((n * active) as f64, &program.operands);
        let [input, output] = [0, last].map(|i| Binding::operand(i, &program.operands));
        program.append(fill(counts, [0; 2], profile)?, &[output.resource]);
        let Some(rule) = Rule::of(&self.bins, dtype).filter(|_| n > 0) else { return Ok(program) };
        // Enough to fill a card, and few counts to add up beside the elements.
        let workgroups = (n as u64).div_ceil(2048).min(if profile.quirks.few_cores { 64 } else { 1056 });
        let rounds = (n as u64).div_ceil(256 * workgroups) * (1 + active as u64 * rule.rounds());
        let rounds = rounds + 2 * (MAX_IN_WORKGROUP as u64 / 256);
        if !profile.runs_rounds(rounds) {
            return Err(err!(
                TooLarge,
                "{name}: {n} elements may take {rounds} rounds of loops; {} ends them after {}; count parts and add the \
                 counts",
                profile.name,
                profile.max_rounds()
            ));
        }
        let edges = rule.edges(&mut program);
        let spec = rule.spec(dtype).flag("PRIVATE", private);
        let spec = spec.constant("CHANNELS", channels as u32).constant("ACTIVE", active as u32);
        let length = self.counted.then(|| Binding::operand(1, &program.operands));
        let spec = limited(spec, self.counted, if edges.is_some() { 4 } else { 3 });
        let kernel = program.kernel(Kernel::of_file("primitives/histogram_channels", spec));
        let params = BinsParams::new(&rule, bins as u32, n as u32, workgroups as u32);
        let bindings = [output, input].into_iter().chain(edges).chain(length).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] HistogramChannels, T {
        fn record(input: T, counts: u32);
        /// Takes the number of groups of channels from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(HistogramChannels: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "histogram-channels",
    about: "how many elements of each interleaved channel fall into each bin",
    inputs: &[Input::new("input", "(n, C)")],
    outputs: &[("counts", "u32 (A, bins)")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8],
    options: &[
        Setting::number("bins", "256"),
        Setting::number("lo", ""),
        Setting::number("hi", ""),
        Setting::array("edges", "(bins + 1)"),
        ACTIVE,
        LENGTH,
    ],
    domains: &[("input", Domain::Any), ("edges", Domain::Increasing)],
    make: Some(make),
    variants: HistogramChannels::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100, 3], options: &[("lo", "0"), ("hi", "1")] },
    ..Operation::UNDECLARED
};

const ACTIVE: Setting = Setting::number("active", "");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n, channels]) = asked.array("input")?;
    let bins = binned(asked, &input)?;
    let active = asked.settings().maybe(ACTIVE.name)?.unwrap_or(channels);
    let length = asked.length(1, vec![n])?.0;
    let op = HistogramChannels::of(bins, n, channels).active(active);
    let mut op = op.when(length.is_some(), HistogramChannels::counted);
    op.variant = asked.variant().to_owned();
    let (dtype, bins) = (input.dtype(), op.bins.bins());
    asked.set("bins", &[bins]);
    asked.set("A", &[active]);
    // A wrong number of channels is an error of the op, which needs no memory for the counts.
    let counts = elements(INFO.name, "counts", &[active, bins]).map(|_| Role::Result(vec![active, bins]))?;
    let operands = [Role::Given(input)].into_iter().chain(length).chain([counts]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |bins| HistogramChannels::new(10_001, 4, bins).active(3).variant(variant);
    Ok(vec![
        Op::<u8>::lower(&op(256), profile)?,
        Op::<f32>::lower(&op(100).range(-1.0, 1.0), profile)?,
        Op::<u8>::lower(&op(256).counted(), profile)?,
        Op::<f32>::lower(&op(100).range(-1.0, 1.0).counted(), profile)?,
        Op::<f16>::lower(&op(9).range(0.0, 1.0), profile)?,
        Op::<i32>::lower(&HistogramChannels::with_edges(99, 2, [0.5, 1.0, 10.0]).variant(variant), profile)?,
    ])
}
