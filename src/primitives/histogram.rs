mod bins;
mod lowering;
mod policy;

pub(super) use self::bins::Rule;
pub(super) use self::lowering::BinsParams;
use crate::elementwise::{MAPPED, MapFn, asked_map};
use crate::program::facts::{Fact, Subject};
use crate::program::prelude::*;
use lowering::HistogramLowering;

/// Counts the elements in each bin: `counts[i]` is the number of elements `x` with `edge[i] <= x < edge[i + 1]`;
/// if you set a range or edges, the last bin includes its upper edge.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, counts) = (gpu.upload(&[0.1f32, 0.2, 0.9, 1.0, 7.0])?, gpu.alloc::<u32>(2)?);
/// let histogram = Histogram::new(5, 2).range(0.0, 1.0).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// histogram.record(&mut rec, &x, &counts)?;
/// rec.submit()?;
/// assert_eq!(counts.read()?, [2, 2]); // 7.0 lies in no bin
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements, from 0 to the largest buffer; an input above the device's largest binding is processed
/// in chunks. `counts` has one u32 a bin, for 1 to 2^20 bins, and is overwritten. The two must be different wgpu
/// buffers. With [`counted`](Histogram::counted) an operand `length` of one u32 holds the number of elements, at most
/// `n`, which is then below 2^32. [`accumulate`](Histogram::accumulate) adds to the counts that are there;
/// [`wide`](Histogram::wide) makes counts of 64 bits, two u32 a bin, the lower first.
///
/// # Types
/// u8, i8, u32, i32, f32 and f16; with [`mapped`](Histogram::mapped) those of the function.
///
/// # Bins
/// - [`new`](Histogram::new) alone, for integers: the bins are 0, 1, ..., `bins - 1`, so bin = value, and a value
///   of `bins` or more is not counted.
/// - [`range`](Histogram::range): edges `lo + i (hi - lo) / bins`. Between whole numbers the edges of integer input
///   are exact fractions; otherwise they are computed in f64, and for floating input rounded to f32.
/// - [`with_edges`](Histogram::with_edges): your own edges; elements are compared with them exactly.
///
/// An element below the first edge or above the last is not counted, and neither is NaN. `-0` is 0. With a range or
/// edges these are the rules of NumPy's `histogram`, without them those of `bincount`. If rounding makes edges equal,
/// an element on them belongs to the last of their bins.
///
/// # Precision and determinism
/// Exact, with the same bits in every run on every device: a quotient in f32 only proposes the bin, and a
/// comparison of integers decides. The counters are 32 bits wide, which no buffer can overflow; sums over many calls
/// can, and then [`wide`](Histogram::wide) counts do not.
///
/// # Cost
/// Each element is read once. `multipass` reads it once for every 8192 or, on larger devices, 24576 bins, from a
/// cache after the first time. `partitioned` reads it twice, and writes and reads two bytes more. One dispatch
/// clears the counts and one counts each chunk (`partitioned`: five). Only `partitioned` takes scratch, up to three
/// bytes an element. Unless every bin is a power of two of whole numbers wide, the plan keeps a table of 4 bytes a
/// bin. Bins of equal width take constant time an element, your own edges `log2(bins)` steps.
///
/// # Variants
/// See [`Histogram::variants`]. `auto` (the default) takes `coarsened` while the bins fit workgroup memory, then
/// `multipass`, and for many more `partitioned` or `cached`; on software drivers `global`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no bins, `lo >= hi`, a range that is not finite or,
///   for floating input, missing; fewer than two edges; an edge that is NaN or not above the one before; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^20 bins, or an input above the largest buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): u64 input; a type that the function of `mapped` does not take;
///   more bins than fit the workgroup memory of `privatized`, `coarsened` or `aggregated` (4096 fit every device; bytes
///   always fit); or, on small devices, more bins than `partitioned` has buckets for.
///
/// # Algorithm
/// Privatisation, coarsening and aggregation as in W. Hwu, D. Kirk, I. El Hajj, *Programming Massively Parallel
/// Processors*, chapter 9, with a copy of the counters for each lane, so that equal elements do not meet in one
/// bank: `shaders/primitives/histogram_private.wgsl`. Bytes are counted by value and sorted into bins at the end.
/// For more bins than fit, `histogram_packed.wgsl` keeps two counters in a word; for many more,
/// `histogram_scatter.wgsl` moves elements into buckets (a radix sort step without its order) and
/// `histogram_bucketed.wgsl` counts each.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    n: usize,
    bins: usize,
    edges: Edges,
    counted: bool,
    wide: bool,
    accumulate: bool,
    function: Option<MapFn>,
    variant: String,
    packing: Option<(u32, u64, u32, u32)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edges {
    /// One bin for each whole number from 0 on.
    Default,
    /// Equal, from the first number to the second.
    Range(f64, f64),
    /// The listed edges, one more than bins.
    List(Vec<f64>),
}

const VARIANTS: &[Variant] = &[
    Variant::portable("global-contiguous", "atomics in device memory, each thread on its own range: the baseline"),
    Variant::portable("global", "atomics in device memory, neighbouring threads read neighbouring elements"),
    Variant::portable("privatized", "each workgroup counts one element a thread in its own memory"),
    Variant::portable(
        "coarsened",
        "a bounded number of workgroups walks the input by vec4 and counts in copies by lane",
    ),
    Variant::portable("aggregated", "coarsened, and each thread first adds up runs of equal elements"),
    Variant::portable(
        "multipass",
        "coarsened, for more bins than fit: counters of 16 bits, passes over the input side by side",
    ),
    Variant::portable(
        "cached",
        "for more bins than fit: the full ones in workgroup memory, the others by global atomics",
    ),
    Variant::portable(
        "partitioned",
        "for many more bins than fit: elements are moved into buckets of bins, then each is counted",
    ),
];

impl Histogram {
    /// Counts `n` elements in `bins` bins.
    pub fn new(n: usize, bins: usize) -> Self {
        Self {
            n,
            bins,
            edges: Edges::Default,
            counted: false,
            wide: false,
            accumulate: false,
            function: None,
            variant: "auto".into(),
            packing: None,
        }
    }

    /// Counts `n` elements in the bins between neighbouring `edges`. f64 holds every f32 and every integer up to
    /// 2^53.
    pub fn with_edges(n: usize, edges: impl Into<Vec<f64>>) -> Self {
        let edges = edges.into();
        Self { bins: edges.len().saturating_sub(1), edges: Edges::List(edges), ..Self::new(n, 0) }
    }

    /// Sets bins of equal width from `lo` to `hi`, both included. The default for integers is one bin for each value.
    #[must_use]
    pub fn range(mut self, lo: f64, hi: f64) -> Self {
        self.edges = Edges::Range(lo, hi);
        self
    }

    counted!(counted, "elements", "Elements behind it are not counted.");

    /// Counts `function` of the elements, computed in the same pass; a function of your own is
    /// [`MapFn::custom`](crate::MapFn::custom).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, counts) = (gpu.upload(&[-0.9f32, 0.2, 0.8])?, gpu.alloc::<u32>(2)?);
    /// let plan = Histogram::new(3, 2).range(0.0, 1.0).mapped(MapFn::Abs).plan::<f32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.record(&mut rec, &x, &counts)?;
    /// rec.submit()?;
    /// assert_eq!(counts.read()?, [1, 2]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn mapped(mut self, function: MapFn) -> Self {
        self.function = Some(function);
        self
    }

    /// Adds to the counts that are there, which the default overwrites.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, counts) = (gpu.upload(&[1u8, 0, 1])?, gpu.upload(&[u32::MAX, 4, 0, 0])?);
    /// let plan = Histogram::new(3, 2).accumulate().wide().plan::<u8>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.record(&mut rec, &x, &counts)?;
    /// rec.submit()?;
    /// assert_eq!(counts.read()?, [0, 5, 2, 0]); // 5 * 2^32, and 2
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn accumulate(mut self) -> Self {
        self.accumulate = true;
        self
    }

    /// Makes counts of 64 bits: `counts` has two u32 a bin, the lower first, as a `u64` has them.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    variants!(variant);

    /// Sets the threads of a workgroup, workgroups, words of two counters and vec4 in flight of `multipass` and
    /// `partitioned`, for tuning. The default is that of the device's policy.
    #[doc(hidden)]
    #[must_use]
    pub fn packing(mut self, threads: u32, workgroups: u64, words: u32, loads: u32) -> Self {
        self.packing = Some((threads, workgroups, words, loads));
        self
    }

    /// Returns the number of bins, the length of `counts`.
    pub fn bins(&self) -> usize {
        self.bins
    }

    pub(crate) fn edges(&self) -> &Edges {
        &self.edges
    }

    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    /// Rejects invalid bin edges.
    ///
    /// # Errors
    /// See [`Histogram`].
    pub(crate) fn check(&self, dtype: DType) -> Result<()> {
        if let Edges::List(edges) = &self.edges {
            if edges.len() < 2 {
                return Err(err!(InvalidArgument, "histogram: {} edges; a histogram needs at least 2", edges.len()));
            }
            if let Some(i) = edges.iter().position(|e| e.is_nan()) {
                return Err(err!(InvalidArgument, "histogram: edge {i} is NaN; edges must be numbers"));
            }
            if let Some(i) = edges.windows(2).position(|pair| pair[0] >= pair[1]) {
                return Err(err!(
                    InvalidArgument,
                    "histogram: edge {} is {:?} and edge {i} is {:?}; edges must increase",
                    i + 1,
                    edges[i + 1],
                    edges[i]
                ));
            }
        }
        if self.bins == 0 {
            return Err(err!(InvalidArgument, "histogram: 0 bins; there must be 1 to {MAX_BINS}"));
        }
        if self.bins > MAX_BINS {
            return Err(err!(
                TooLarge,
                "histogram: {} bins; the maximum is {MAX_BINS}; sort the elements and count runs",
                self.bins
            ));
        }
        match self.edges {
            Edges::Default if dtype.is_float() => Err(err!(
                InvalidArgument,
                "histogram: elements of {dtype} need a range (lo, hi) or edges; only integers have a default range"
            )),
            Edges::Range(lo, hi) => {
                if !(lo.is_finite() && hi.is_finite() && lo < hi) {
                    return Err(err!(
                        InvalidArgument,
                        "histogram: the range is {lo:?} to {hi:?}; both ends must be finite and lo below hi"
                    ));
                }
                let (near_lo, near_hi) = (lo as f32, hi as f32);
                if dtype.is_float() && !(near_lo < near_hi && near_lo.is_finite() && near_hi.is_finite()) {
                    return Err(err!(
                        InvalidArgument,
                        "histogram: the range {lo:?} to {hi:?} is {near_lo:?} to {near_hi:?} in f32, in which elements \
                         of {dtype} are compared; both ends must be finite and different in f32"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

operands! {
    impl[T: Element,] Histogram, T {
        fn record(input: T, counts: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowers! {
    impl[T: Element] Histogram as [T], |op, dtype, profile| HistogramLowering::new(op, dtype, profile)?.run()
}

const MAX_BINS: usize = 1 << 20;

pub(super) const INFO: Operation = Operation {
    name: "histogram",
    about: "how many elements fall into each bin; without a range, bin = value for integers",
    inputs: &[Input::new("input", "any shape"), Input::optional("counts", "u32 (bins); (bins, 2) with wide")],
    outputs: &[("counts", "u32 (bins); (bins, 2) with wide")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8],
    options: &[
        Setting::number("bins", "256"),
        Setting::number("lo", ""),
        Setting::number("hi", ""),
        Setting::array("edges", "(bins + 1)"),
        Setting::flag("wide"),
        MAPPED,
        LENGTH,
        PACKING,
    ],
    make: Some(make),
    variants: Histogram::variants,
    samples,
    domains: &[("input", Domain::BelowLengthOf("counts")), ("edges", Domain::Increasing)],
    comparison: Some(Comparison::Sums),
    facts,
    example: Example { shape: &[100], options: &[("lo", "0"), ("hi", "1")] },
    ..Operation::UNDECLARED
};

const PACKING: Setting = Setting::text("packing", "THREADS,WORKGROUPS,WORDS,LOADS", "");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let input = asked.any("input")?;
    let length = asked.length(1, vec![input.len()])?.0;
    let mut op = binned(asked, &input)?.when(length.is_some(), Histogram::counted).variant(asked.variant());
    if let Some(function) = asked_map(asked) {
        op = op.mapped(function);
    }
    if let Some([threads, workgroups, words, loads]) = asked.settings().given_numbers::<u32, 4>(&PACKING)? {
        op = op.packing(threads, workgroups.into(), words, loads);
    }
    asked.set("bins", &[op.bins()]);
    let wide = asked.settings().has("wide");
    let shape = if wide { vec![op.bins(), 2] } else { vec![op.bins()] };
    let dtype = input.dtype();
    let counts =
        if asked.has_more() { Role::Updated(asked.of("counts", &shape, DType::U32)?) } else { Role::Result(shape) };
    op = op.when(wide, Histogram::wide).when(matches!(counts, Role::Updated(_)), Histogram::accumulate);
    let operands = [Role::Given(input)].into_iter().chain(length).chain([counts]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

/// Reads the bins from the options.
pub(super) fn binned(asked: &Asked<'_>, input: &HostArray) -> Result<Histogram> {
    let (settings, n) = (asked.settings(), input.len());
    if let Some(edges) = settings.array("edges") {
        if let Some(key) = ["lo", "hi"].into_iter().find(|key| settings.has(key)) {
            return Err(err!(InvalidArgument, "histogram: both --{key} and --edges are given; give one of them"));
        }
        let [given] = asked.dims("edges", edges)?;
        let bins: Option<usize> = if settings.has("bins") { Some(settings.number("bins")?) } else { None };
        if let Some(bins) = bins.filter(|bins| bins.checked_add(1) != Some(given)) {
            return Err(err!(
                InvalidArgument,
                "histogram: --bins {bins} and {given} edges are given; leave --bins out, or give an edge more than bins"
            ));
        }
        return Ok(Histogram::with_edges(n, edges.data().to_f64()));
    }
    let bins = settings.number("bins")?;
    let op = Histogram::new(n, bins);
    match (settings.maybe("lo")?, settings.maybe("hi")?) {
        (None, None) => Ok(op),
        (Some(lo), Some(hi)) => Ok(op.range(lo, hi)),
        _ if input.dtype().is_float() => {
            Err(err!(InvalidArgument, "histogram: only one of --lo and --hi is given; floats need both"))
        }
        (lo, hi) => Ok(op.range(lo.unwrap_or(0.0), hi.unwrap_or(bins as f64))),
    }
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    // With four loads in flight, with one, and too short for a vec4.
    for n in [1 << 25, 5000, 3] {
        macro_rules! lower {
            ($($t:ty: $desc:expr;)*) => {$(
                programs.push(Op::<$t>::lower(&$desc.variant(variant), profile)?);
            )*};
        }
        lower! {
            u8: Histogram::new(n, 256);
            u8: Histogram::new(n, 10).range(0.0, 255.0);
            i8: Histogram::new(n, 16).range(-128.0, 128.0);
            u32: Histogram::new(n, 1024);
            u32: Histogram::new(n, 100).range(0.0, 1001.0);
            i32: Histogram::new(n, 4096).range(-1e6, 1e6);
            f32: Histogram::new(n, 1024).range(-1.0, 1.0);
            f32: Histogram::with_edges(n, [0.0, 1.0, 10.0]);
            f16: Histogram::new(n, 100).range(0.0, 1.0);
            u32: Histogram::new(n, 1024).counted();
            u8: Histogram::new(n, 256).wide();
            u32: Histogram::new(n, 1024).wide().accumulate();
            f32: Histogram::new(n, 1000).range(-1.0, 1.0).counted();
            f32: Histogram::new(n, 1024).range(0.0, 1.0).mapped(MapFn::Abs);
            u32: Histogram::new(n, 256).mapped(MapFn::custom("fn map(x: T) -> T { return x & T(255); }"));
        }
    }
    Ok(programs)
}

/// Counts the memory segments that one load of a subgroup touches.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (_, interface) = subject.kernel("histogram_global_count")?;
    // The dispatch before it clears the counts.
    let of_counting = |d: &&Dispatch| subject.program.kernels[d.kernel].entry == "histogram_global_count";
    let counting = subject.program.dispatches.iter().find(of_counting)?;
    let (n, parts) = (u64::from(counting.param("n")?), u64::from(counting.param("parts")?));
    let share = n.div_ceil((parts * u64::from(interface.workgroup_size[0])).max(1));
    let spec = &subject.program.kernels[counting.kernel].spec;
    let apart = if spec.is_set("CONTIGUOUS") { share } else { 1 };
    Some(vec![subject.transactions("loads", |lane| lane * apart)?])
}

#[cfg(test)]
mod tests;
