//! Histograms: how many elements fall into each of a row of bins.

use crate::array::HostArray;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject};
use crate::program::fit::LOOP_ROUNDS;
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Dispatch, Domain, Example, Form, Grid, Input,
    Kernel, Op, Operand, Operation, Program, Resource, Role, Setting, Variant, by_type, choose,
    element_fragment, kernel_params, operands,
};
use crate::shader::Spec;
use crate::shape::elements;
use half::f16;

/// `counts[i]` = number of elements `x` with `edge[i] <= x < edge[i + 1]`; the last bin has its upper edge too.
///
/// # Shapes
/// `input` has `n` elements, from 0 to the largest buffer: what is above the device's largest binding is taken in
/// pieces. `counts` has one u32 a bin, 1 to 2^20 bins, and is overwritten. The two must be different wgpu buffers.
///
/// # Types
/// u8, i8, u32, i32, f32 and f16.
///
/// # Bins
/// - [`new`](Histogram::new) alone, for integers: the bins 0, 1, ..., `bins - 1`, so bin = value. As everywhere, the upper
///   end, the value `bins`, counts into the last bin.
/// - [`range`](Histogram::range): edges `lo + i (hi - lo) / bins`. Between whole numbers the edges of integer input are
///   exact fractions; otherwise they are computed in f64, and for floating input rounded to f32.
/// - [`with_edges`](Histogram::with_edges): edges of your own; elements are compared with them exactly.
///
/// An element below the first edge, above the last, or NaN is not counted. `-0` is 0. That is NumPy's `histogram`. Where
/// rounding makes edges equal, an element on them belongs to the last of their bins.
///
/// # Precision and determinism
/// Exact on every device, and the same bits in every run: a quotient in f32 only proposes the bin, comparison of
/// integers decides. The counters are 32 bits wide, which no buffer can overflow.
///
/// # Cost
/// Each element is read once (`multipass`: once for every 8192 or, on larger devices, 24576 bins, from a cache but for
/// the first time; `partitioned`: twice, and two bytes are written and read again); one dispatch clears the counts and
/// one for each piece counts (`partitioned`: five). No scratch but for `partitioned`, which takes up to three bytes an
/// element. Unless bins are a power of two of whole numbers wide, the plan keeps a table of 4 bytes a bin. Equal bins take
/// constant time an element, edges of your own `log2(bins)` steps.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): no bins, `lo >= hi`, a range that is not finite or, for floating
/// input, missing, fewer than two edges, an edge that is NaN or not above the one before;
/// [`TooLarge`](crate::ErrorKind::TooLarge): more than 2^20 bins, or an input above the largest buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported): u64 input, or more bins than the workgroup memory of a `privatized`,
/// `coarsened` or `aggregated` histogram holds (4096 on every device; bytes always fit), or than a small device's
/// `partitioned` one has buckets for.
///
/// # Algorithm
/// Privatisation, coarsening and aggregation as in W. Hwu, D. Kirk, I. El Hajj, *Programming Massively Parallel
/// Processors*, chapter 9; copies by lane, so that equal elements do not meet in one bank;
/// `shaders/primitives/histogram_private.wgsl`. Bytes are counted by value, and sorted into bins at the end. More bins than
/// fit: two counters in a word, `shaders/primitives/histogram_packed.wgsl`, and many more: one step of a radix sort
/// without its order, `histogram_scatter.wgsl`, before `histogram_bucketed.wgsl` counts.
///
/// # Example
/// ```
/// use tilework::Histogram;
/// use tilework::program::{DeviceProfile, Op};
///
/// let profile = DeviceProfile::h100();
/// let of_bytes = Histogram::new(1_000_000, 256);
/// assert_eq!(Op::<u8>::lower(&of_bytes, &profile)?.variant(), "coarsened");
/// let of_floats = Histogram::new(1_000_000, 100).range(-1.0, 1.0);
/// assert_eq!(Op::<f32>::lower(&of_floats, &profile)?.operands[1].len, 100);
/// let decades = Histogram::with_edges(1_000_000, [1.0, 10.0, 100.0, 1000.0]);
/// assert_eq!(Op::<u32>::lower(&decades, &profile)?.operands[1].len, 3);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    n: usize,
    bins: usize,
    edges: Edges,
    variant: String,
    packing: Option<(u32, u64, u32, u32)>,
}

/// Where the bins of a histogram lie.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edges {
    /// From 0 to the number of bins.
    Default,
    /// Equal, from the first number to the second.
    Range(f64, f64),
    /// As listed: one more than bins.
    List(Vec<f64>),
}

impl Histogram {
    /// `n` elements into `bins` bins.
    pub fn new(n: usize, bins: usize) -> Self {
        Self { n, bins, edges: Edges::Default, variant: "auto".into(), packing: None }
    }

    /// `n` elements into bins between neighbours of `edges`. f32 and integers up to 2^53 are numbers of f64.
    pub fn with_edges(n: usize, edges: impl Into<Vec<f64>>) -> Self {
        let edges = edges.into();
        Self { bins: edges.len().saturating_sub(1), edges: Edges::List(edges), ..Self::new(n, 0) }
    }

    /// Bins of equal width from `lo` to `hi`. For integers the default is 0 and the number of bins.
    #[must_use]
    pub fn range(mut self, lo: f64, hi: f64) -> Self {
        self.edges = Edges::Range(lo, hi);
        self
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Invocations of a workgroup, workgroups, words of two counters and vec4 in flight, instead of what the device's policy
    /// has for `multipass` and `partitioned`: for tuning.
    #[doc(hidden)]
    #[must_use]
    pub fn packing(mut self, invocations: u32, workgroups: u64, words: u32, loads: u32) -> Self {
        self.packing = Some((invocations, workgroups, words, loads));
        self
    }

    /// Number of bins: the length of `counts`.
    pub fn bins(&self) -> usize {
        self.bins
    }

    pub(crate) fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Every way to count.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[
            Variant::portable(
                "global-contiguous",
                "atomics in device memory, each invocation a range of its own: the baseline",
            ),
            Variant::portable("global", "atomics in device memory, neighbours read neighbouring elements"),
            Variant::portable(
                "privatized",
                "each workgroup counts one element an invocation in its own memory",
            ),
            Variant::portable(
                "coarsened",
                "a bounded number of workgroups walks the input by vec4 and counts in copies by lane",
            ),
            Variant::portable(
                "aggregated",
                "coarsened, and an invocation adds up runs of equal elements first",
            ),
            Variant::portable(
                "multipass",
                "coarsened, for more bins than fit: counters of 16 bits, passes over the input beside each other",
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
        VARIANTS
    }

    /// Refuses bins that are none.
    ///
    /// # Errors
    /// See [`Histogram`].
    pub(crate) fn check(&self, dtype: DType) -> Result<()> {
        if let Edges::List(edges) = &self.edges {
            if edges.len() < 2 {
                return Err(err!(
                    InvalidArgument,
                    "histogram: {} edges are given; one bin has two",
                    edges.len()
                ));
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
            return Err(err!(InvalidArgument, "histogram: 0 bins; there must be 1 to {MOST_BINS}"));
        }
        if self.bins > MOST_BINS {
            return Err(err!(
                TooLarge,
                "histogram: {} bins; {MOST_BINS} are the most; sort the elements and count runs",
                self.bins
            ));
        }
        match self.edges {
            Edges::Default if dtype.is_float() => Err(err!(
                InvalidArgument,
                "histogram: elements of {dtype} need a range (lo, hi) or edges; only integers have a default"
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
                        "histogram: the range {lo:?} to {hi:?} is {near_lo:?} to {near_hi:?} in f32, in which elements of {dtype} \
                         are compared; both ends must be finite and different there"
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
    }
}

impl<T: Element> Op<T> for Histogram {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        Lowering::new(self, T::DTYPE, profile)?.run()
    }
}

const MOST_BINS: usize = 1 << 20;

/// Workgroups of the kernels that count in device memory, and of the one that clears.
const WORKGROUP_SIZE: u64 = 256;

/// Offsets of bindings are multiples of this.
const CUT: u64 = 256;

/// Elements of a piece, so that indices stay below 2^32 while they are stepped.
const MOST_IN_PIECE: u64 = 1 << 31;

/// Rounds of the loops of an invocation, as far as they are counted; every driver runs them all.
const MOST_ITERATIONS: u64 = 40_000;
const _: () = assert!(3 * MOST_ITERATIONS / 2 < LOOP_ROUNDS as u64);

kernel_params! {
    struct Params {
        n: u32,
        bins: u32,
        least: u32,
        span: u32,
        bias: u32,
        shift: u32,
        lo: f32,
        scale: f32,
        margin: f32,
        edges: u32,
        stride: u32,
        parts: u32,
        vectors: u32,
    }
}

kernel_params! {
    struct StartsParams { tiles: u32 }
}

kernel_params! {
    struct ChunkParams { chunk: u32, steps: u32 }
}

/// Constants that depend on the device.
struct Policy {
    /// Invocations of a workgroup that counts in its own memory.
    workgroup_size: u32,
    /// The most workgroups that walk a piece of the input.
    workgroups: u64,
    /// Counters that one workgroup keeps, a power of two.
    counters: u32,
    /// The most copies of a workgroup's counts, a power of two.
    copies: u32,
    /// Passes of `multipass` above which elements are partitioned, or, if they are fewer than the next, bins cached.
    passes: u64,
    partitioned: u64,
    /// Words of two counters that a workgroup of `multipass` has at the most.
    packed_words: u32,
    /// Invocations of such a workgroup, and how many of these there are.
    packed_size: u32,
    packed_workgroups: u64,
    /// vec4s that an invocation of it has in flight.
    packed_loads: u32,
    /// Elements that it has at the least for each of its counters.
    packed_elements_per_slot: u64,
    /// Words of two counters of a workgroup that counts one bucket of `partitioned`, at the most.
    bucket_words: u64,
    /// Elements that a workgroup has at the least for each of its counters.
    elements_per_slot: u64,
    /// Whether an invocation has four loads in flight.
    wide: bool,
}

fn policy(profile: &DeviceProfile) -> Policy {
    if profile.is_cpu() {
        // Invocations of a processor do not collide, and long kernels compile slowly.
        return Policy {
            workgroup_size: 256,
            workgroups: 64,
            counters: 4096,
            copies: 4,
            passes: 1,
            partitioned: u64::MAX,
            packed_words: 2048,
            packed_size: 256,
            packed_workgroups: 64,
            packed_loads: 1,
            packed_elements_per_slot: 4,
            bucket_words: 3840,
            elements_per_slot: 4,
            wide: false,
        };
    }
    // GB/s of 2^28 items on an H100 80GB HBM3, Vulkan, driver 580.159.04, random, equal, Zipf: u8 in 256 bins 2625,
    // 2622, 2619 (aggregated 813, 2496, 750); u32 in 1024 bins 2893, 2897, 2887 (2329, 2830, 2247), in 8192 bins
    // 2886, 2908, 2888 (2362, 2818, 2297), so runs are never added up first. In 65536 bins multipass 1154, 1023, 1139
    // (with 512 invocations 773, 1027, 828; one pass after the other, counters of 32 bits, 347, 365, 354), cached 272,
    // 2067, 423, partitioned 459, 560, 454; in 2^18 partitioned 481, 550, 477, multipass in 11 passes 229, 330, 234; in
    // 2^20 partitioned 491, 540, 480, cached 339, 2060, 301.
    // A third of the memory at the most, so that three workgroups hide each other's latency.
    let counters = (profile.limits.max_workgroup_bytes / 4).clamp(1, 8192);
    let packed_size = profile.limits.max_invocations.clamp(1, 1024);
    Policy {
        workgroup_size: profile.limits.max_invocations.clamp(1, 512),
        workgroups: 528,
        counters: 1 << counters.ilog2(),
        copies: 32,
        passes: 6,
        partitioned: 1 << 22,
        packed_words: (profile.limits.max_workgroup_bytes / 4).clamp(1, 12288),
        packed_size,
        packed_workgroups: u64::from(264 * 1024 / packed_size),
        packed_loads: 4,
        packed_elements_per_slot: 1,
        bucket_words: 12032,
        elements_per_slot: 4,
        wide: true,
    }
}

/// How a kernel finds the bin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Bins of a power of two of whole numbers.
    Shift,
    /// A quotient, corrected by the table.
    Uniform,
    /// Search in the table.
    Search,
}

/// The bins as a kernel sees them: in keys, u32 in the order of the elements.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    mode: Mode,
    /// Key of the lowest value that counts.
    least: u32,
    /// Keys from there to that of the highest.
    span: u32,
    /// Distance from the first edge to the lowest value that counts.
    bias: u32,
    shift: u32,
    lo: f32,
    scale: f32,
    margin: f32,
    /// Key of the lowest value of each bin that a value can fall into. Empty for `Mode::Shift`.
    table: Vec<u32>,
}

/// Least and greatest whole number of a type, and what added to a number gives its key; nothing for floats.
fn whole_numbers(dtype: DType) -> Option<(i64, i64, i64)> {
    match dtype {
        DType::U8 => Some((0, 255, 0)),
        DType::I8 => Some((-128, 127, 1 << 31)),
        DType::I32 => Some((i64::from(i32::MIN), i64::from(i32::MAX), 1 << 31)),
        DType::U32 | DType::U64 => Some((0, i64::from(u32::MAX), 0)),
        DType::F32 | DType::F16 | DType::Bf16 => None,
    }
}

/// Key of an f32: unsigned numbers in the order of the floats.
fn float_key(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 }
}

/// Key of the lowest value that is at least `e`; 2^32 or beyond the type's keys if there is none.
fn lowest_key(e: f64, dtype: DType) -> u64 {
    match whole_numbers(dtype) {
        Some((min, max, offset)) => (e.ceil().clamp(min as f64, (max + 1) as f64) as i64 + offset) as u64,
        None => {
            let near = e as f32;
            let above = if f64::from(near) < e { near.next_up() } else { near };
            // -0 is at least 0 too.
            u64::from(float_key(if above == 0.0 { -0.0 } else { above }))
        }
    }
}

/// Key of the highest value that is at most `e`, if there is one.
fn highest_key(e: f64, dtype: DType) -> Option<u32> {
    match whole_numbers(dtype) {
        Some((min, max, offset)) => {
            let below = e.floor().min(max as f64);
            (below >= min as f64).then(|| (below as i64 + offset) as u32)
        }
        None => {
            let near = e as f32;
            let below = if f64::from(near) > e { near.next_down() } else { near };
            Some(float_key(if below == 0.0 { 0.0 } else { below }))
        }
    }
}

impl Rule {
    /// Nothing if no value of the type lies in any bin.
    fn of(desc: &Histogram, dtype: DType) -> Option<Self> {
        let bins = desc.bins;
        match &desc.edges {
            Edges::Default => Self::range(0.0, bins as f64, bins, dtype),
            Edges::Range(lo, hi) => Self::range(*lo, *hi, bins, dtype),
            Edges::List(edges) => {
                let table = edges[..bins].iter().map(|&e| lowest_key(e, dtype));
                Self::search(table, highest_key(edges[bins], dtype)?)
            }
        }
    }

    /// Bins that begin at these keys; `highest` is the key of the highest value that counts.
    fn search(table: impl Iterator<Item = u64>, highest: u32) -> Option<Self> {
        let table: Vec<u32> =
            table.take_while(|&key| key <= u64::from(highest)).map(|key| key as u32).collect();
        let least = *table.first()?;
        Some(Self {
            mode: Mode::Search,
            least,
            span: highest - least,
            bias: 0,
            shift: 0,
            lo: 0.0,
            scale: 0.0,
            margin: 0.0,
            table,
        })
    }

    fn range(lo: f64, hi: f64, bins: usize, dtype: DType) -> Option<Self> {
        const EXACT: f64 = (1u64 << 53) as f64;
        // As NumPy's linspace.
        let step = (hi - lo) / bins as f64;
        let edge = move |i: usize| if i == 0 { lo } else { i as f64 * step + lo };
        let Some((min, max, offset)) = whole_numbers(dtype) else {
            return Self::floats(lo, hi, edge, bins);
        };
        let whole = lo.fract() == 0.0 && hi.fract() == 0.0 && lo.abs() <= EXACT && hi.abs() <= EXACT;
        if !whole {
            return Self::search((0..bins).map(|i| lowest_key(edge(i), dtype)), highest_key(hi, dtype)?);
        }
        let (lo, hi) = (lo as i64, hi as i64);
        let width = hi - lo;
        let (first, last) = (lo.max(min), hi.min(max));
        if first > last {
            return None;
        }
        // The lowest whole number of bin i is lo + ceil(i width / bins), exactly.
        let lowest = move |i: usize| {
            let distance = (i as i128 * i128::from(width) + bins as i128 - 1) / bins as i128;
            ((i128::from(lo) + distance).clamp(i128::from(min), i128::from(max) + 1) + i128::from(offset))
                as u64
        };
        let mut rule = Self::search((0..bins).map(lowest), (last + offset) as u32)?;
        let Ok(_) = u32::try_from(last - lo) else { return Some(rule) };
        rule.bias = (first - lo) as u32;
        if width % bins as i64 == 0 && (width / bins as i64).count_ones() == 1 {
            rule.mode = Mode::Shift;
            // One bin may be 2^32 wide; the kernel takes the lower of this and the last bin.
            rule.shift = (width / bins as i64).ilog2().min(31);
            rule.table = Vec::new();
        } else if dtype.size() > 1 {
            rule.quotient(0.0, bins as f64 / width as f64, bins, 0.0);
        }
        Some(rule)
    }

    fn floats(lo: f64, hi: f64, edge: impl Fn(usize) -> f64, bins: usize) -> Option<Self> {
        let rounded = |i| f64::from(edge(i) as f32);
        let (near_lo, near_hi) = (lo as f32, hi as f32);
        let table = (0..bins).map(|i| lowest_key(rounded(i), DType::F32));
        let mut rule = Self::search(table, highest_key(f64::from(near_hi), DType::F32)?)?;
        let scale = bins as f64 / (hi - lo);
        // Outside, the quotient might overflow or vanish.
        let sound = 1e-20..1e20;
        let largest = near_lo.abs().max(near_hi.abs());
        if sound.contains(&scale) && sound.contains(&(hi - lo)) {
            let ulp = f64::from(largest.next_up()) - f64::from(largest);
            // The first edge and the one that decides are rounded.
            rule.quotient(near_lo, scale, bins, 2.0 * ulp * scale);
        }
        Some(rule)
    }

    /// Lets a quotient propose the bin, if that is right to the neighbour. `rounding` is how far edges are from where
    /// they would be in numbers without end, in bins.
    fn quotient(&mut self, lo: f32, scale: f64, bins: usize, rounding: f64) {
        // Difference, factor and product are each rounded, in whatever direction.
        let margin = 3.0 * 2f64.powi(-23) * bins as f64 + rounding;
        if margin < 0.7 {
            self.mode = Mode::Uniform;
            self.lo = lo;
            self.scale = scale as f32;
            self.margin = (margin * 1.01 + 1e-6) as f32;
        }
    }
}

struct Lowering<'a> {
    dtype: DType,
    /// `partitioned`: buckets of bins, and scratch for it.
    buckets: u64,
    moved: Option<[Binding; 4]>,
    bytes: u64,
    bins: u64,
    rule: Option<Rule>,
    policy: Policy,
    profile: &'a DeviceProfile,
    program: Program,
}

impl<'a> Lowering<'a> {
    fn new(desc: &Histogram, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        if matches!(dtype, DType::U64 | DType::Bf16) {
            return Err(err!(
                Unsupported,
                "histogram: elements of {dtype}; it takes u8, i8, u32, i32, f32 and f16"
            ));
        }
        desc.check(dtype)?;
        let n = elements("histogram", "input", &[desc.n])?;
        let mut policy = policy(profile);
        if let Some((size, workgroups, words, loads)) = desc.packing {
            // 16 bits do not hold more additions than these between two barriers.
            let additions = u64::from(size) * u64::from(loads);
            if words < 1024 || workgroups == 0 || additions == 0 || additions > 4096 {
                return Err(err!(
                    InvalidArgument,
                    "histogram: packing of {size} invocations, {workgroups} workgroups, {words} words, {loads} vec4; words \
                     must be 1024 or more, and invocations times vec4 1 to 4096"
                ));
            }
            policy.packed_size = size;
            policy.packed_workgroups = workgroups;
            policy.packed_words = words;
            policy.bucket_words = policy.bucket_words.min(u64::from(words));
            policy.packed_loads = loads;
        }
        // Bytes are counted by value.
        let slots = if dtype.size() == 1 { 256 } else { desc.bins as u64 };
        let most = u64::from(policy.counters);
        let (variant, decision) = choose("histogram", &desc.variant, Histogram::variants(), profile, || {
            let copies = policy.copies.min((most / slots.next_power_of_two()) as u32);
            if slots > most && profile.is_cpu() {
                ("global", format!("{slots} bins; atomics of a processor hardly collide"))
            } else if slots > most {
                let passes = slots.div_ceil(2 * u64::from(policy.packed_words));
                if passes > policy.passes && n as u64 >= policy.partitioned {
                    ("partitioned", format!("{slots} bins would take {passes} passes of a long input"))
                } else if passes > policy.passes {
                    ("cached", format!("{slots} bins would take {passes} passes"))
                } else {
                    ("multipass", format!("{slots} bins, two to a word, take {passes} passes"))
                }
            } else {
                ("coarsened", format!("{copies} copies of {slots} bins a workgroup keep elements apart"))
            }
        })?;
        let variant = variant.name;
        if matches!(variant, "privatized" | "coarsened" | "aggregated") && slots > most {
            return Err(err!(
                Unsupported,
                "histogram: the variant `{variant}` keeps all bins in workgroup memory, {most} on {}, and {slots} are asked \
                 for; take `multipass`, `cached` or `global`",
                profile.name
            ));
        }
        let mut program = Program::new("histogram", decision);
        program.operands = vec![
            Operand { name: "input", dtype, len: n, access: Access::Read },
            Operand { name: "counts", dtype: DType::U32, len: desc.bins, access: Access::Write },
        ];
        let limits = &profile.limits;
        let bytes = program.operands[0].bytes();
        if bytes > limits.max_buffer_size {
            return Err(err!(
                TooLarge,
                "histogram: input of {n} elements of {dtype} has {bytes} bytes; the largest buffer of {} has {}; add up \
                 the histograms of pieces",
                profile.name,
                limits.max_buffer_size
            ));
        }
        program.cost = Cost { flop: n as f64, bytes: bytes as f64 + 4.0 * desc.bins as f64 };
        let rule = Rule::of(desc, dtype);
        Ok(Self {
            dtype,
            buckets: 0,
            moved: None,
            bytes,
            bins: desc.bins as u64,
            rule,
            policy,
            profile,
            program,
        })
    }

    fn run(mut self) -> Result<Program> {
        let counts = Binding::operand(1, &self.program.operands);
        let base = Params {
            n: 0,
            bins: self.bins as u32,
            least: 0,
            span: 0,
            bias: 0,
            shift: 0,
            lo: 0.0,
            scale: 0.0,
            margin: 0.0,
            edges: 0,
            stride: 0,
            parts: 0,
            vectors: 0,
        };
        let clear =
            Kernel::library("primitives/histogram_global", "clear_counts", Spec::new().flag("SHIFT", true));
        let clear = self.program.kernel(clear);
        let grid = Grid::fold(self.bins.div_ceil(WORKGROUP_SIZE));
        self.program.dispatch(clear, &base, vec![counts], grid);
        let Some(rule) = self.rule.take().filter(|_| self.bytes > 0) else { return Ok(self.program) };
        let edges = (rule.mode != Mode::Shift)
            .then(|| self.program.constant(bytemuck::cast_slice(&rule.table).to_vec()));
        let reached = rule.table.len() as u32;
        let base = Params {
            least: rule.least,
            span: rule.span,
            bias: rule.bias,
            shift: rule.shift,
            lo: rule.lo,
            scale: rule.scale,
            margin: rule.margin,
            edges: reached,
            stride: if reached > 1 { 1 << (reached - 1).ilog2() } else { 0 },
            ..base
        };
        let spec = Spec::new()
            .slot("element", element_fragment(self.dtype))
            .flag("FLOAT", self.dtype.is_float())
            .flag("SIGNED", matches!(self.dtype, DType::I32 | DType::I8))
            .flag("SHIFT", rule.mode == Mode::Shift)
            .flag("UNIFORM", rule.mode == Mode::Uniform);
        // Loops that one element takes.
        let loops = match rule.mode {
            Mode::Search => 2 + u64::from(reached.max(1).ilog2()),
            Mode::Shift | Mode::Uniform => 1,
        };
        for piece in self.pieces() {
            let bindings = [counts, piece].into_iter().chain(edges).collect();
            match self.program.variant() {
                "global" | "global-contiguous" => self.global(&base, &spec, loops, piece, bindings),
                "partitioned" => self.partitioned(&base, &spec, loops, piece, bindings)?,
                "multipass" if self.dtype.size() > 1 => self.packed(&base, &spec, loops, piece, bindings),
                _ => self.walk(&base, &spec, loops, piece, bindings),
            }
        }
        Ok(self.program)
    }

    /// Parts of the input that one binding each holds.
    fn pieces(&self) -> Vec<Binding> {
        let size = self.dtype.size() as u64;
        let mut most = self.profile.limits.max_storage_binding;
        if self.program.variant() == "partitioned" {
            // What is moved takes less than three bytes an element.
            most = most / 3 * size.min(3);
        }
        let most = most.min(MOST_IN_PIECE * size) / CUT * CUT;
        let count = self.bytes.div_ceil(most);
        let step = self.bytes.div_ceil(count).next_multiple_of(CUT);
        let piece =
            |offset| Binding { resource: Resource::Operand(0), offset, size: step.min(self.bytes - offset) };
        (0..count).map(|i| i * step).filter(|offset| *offset < self.bytes).map(piece).collect()
    }

    /// Atomics in device memory.
    fn global(&mut self, base: &Params, spec: &Spec, loops: u64, piece: Binding, bindings: Vec<Binding>) {
        let spec = spec.clone().flag("CONTIGUOUS", self.program.variant() == "global-contiguous");
        let kernel = Kernel::library("primitives/histogram_global", "count_elements", spec);
        let kernel = self.program.kernel(kernel);
        let n = piece.size / self.dtype.size() as u64;
        let least = (n * loops).div_ceil(WORKGROUP_SIZE * MOST_ITERATIONS);
        let parts = n.div_ceil(WORKGROUP_SIZE).min(self.policy.workgroups).max(least);
        let params = Params { n: n as u32, parts: parts as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts));
    }

    /// Loops of a processor's invocation bound what a workgroup can take of `vectors`: the least number of workgroups.
    fn least_parts(&self, vectors: u64, loops: u64, size: u64) -> u64 {
        // 16 bytes hold as many elements as loops run over, and the loop over vec4s is one more.
        let per_vector = 16 / self.dtype.size() as u64;
        (vectors * (per_vector * loops + 5)).div_ceil(size * MOST_ITERATIONS)
    }

    /// Two counters in each word of workgroup memory.
    fn packed(&mut self, base: &Params, spec: &Spec, loops: u64, piece: Binding, mut bindings: Vec<Binding>) {
        let policy = &self.policy;
        let size = u64::from(policy.packed_size);
        let most = u64::from(policy.packed_words);
        let passes = self.bins.div_ceil(2 * most);
        // As many in each pass; rounded, so that few numbers of bins need kernels of their own.
        let words = self.bins.div_ceil(2 * passes).next_multiple_of(1024).min(most);
        let passes = self.bins.div_ceil(2 * words);
        let n = piece.size / self.dtype.size() as u64;
        let vectors = piece.size / 16;
        let workgroups = (policy.packed_workgroups / passes).max(1);
        let many = vectors >= u64::from(policy.packed_loads) * size * workgroups;
        let loads = if many { policy.packed_loads } else { 1 };
        let useful = vectors.div_ceil(size).min(n / (policy.packed_elements_per_slot * 2 * words));
        let parts = useful.clamp(1, workgroups).max(self.least_parts(vectors, loops, size));
        let spec = spec
            .clone()
            .constant("WORKGROUP_SIZE", policy.packed_size)
            .constant("WORDS", words as u32)
            .constant("LOADS", loads)
            .flag("VECTORS", vectors > 0);
        let kernel =
            self.program.kernel(Kernel::library("primitives/histogram_packed", "count_packed", spec));
        if vectors > 0 {
            bindings.push(Binding { size: vectors * 16, ..piece });
        }
        let params = Params { n: n as u32, parts: parts as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts * passes));
    }

    /// Elements into buckets of bins, whose counters workgroup memory holds.
    fn partitioned(
        &mut self,
        base: &Params,
        spec: &Spec,
        loops: u64,
        piece: Binding,
        mut bindings: Vec<Binding>,
    ) -> Result<()> {
        let policy = &self.policy;
        let memory = self.profile.limits.max_workgroup_bytes;
        // Beside the counters there is something for each bucket.
        let counters = u64::from(memory / 4).saturating_sub(256).max(256).min(policy.bucket_words) / 4 * 4;
        let slots = 2 * counters;
        let buckets = self.bins.div_ceil(slots);
        if buckets > u64::from(policy.packed_size) {
            return Err(err!(
                Unsupported,
                "histogram: {} bins are {buckets} buckets of {slots}, and a workgroup of `partitioned` has {} invocations on {}; \
                 take `cached`",
                self.bins,
                policy.packed_size,
                self.profile.name
            ));
        }
        let n = piece.size / self.dtype.size() as u64;
        let vectors = piece.size / 16;
        // 16 elements an invocation of a tile, in words of workgroup memory.
        let size = if memory >= 40 << 10 { 512 } else { 128 };
        let size = policy.packed_size.min(size);
        let size = size.max((buckets as u32).next_multiple_of(32));
        let tile = u64::from(size) * 16;
        let tiles = (vectors * 16 / self.dtype.size() as u64).div_ceil(tile).max(1);
        let room = (n + buckets * (tiles + 8)).div_ceil(8) * 4;

        // The first piece is the largest.
        let room_words = 4 * room;
        let [totals, starts, ends, words] = *self.moved.get_or_insert_with(|| {
            [4 * buckets, 4 * buckets, 4 * buckets, room_words].map(|bytes| self.program.scratch(bytes))
        });
        self.buckets = buckets;
        let clear =
            Kernel::library("primitives/histogram_global", "clear_counts", Spec::new().flag("SHIFT", true));
        let clear = self.program.kernel(clear);
        let params = Params { bins: buckets as u32, ..*base };
        self.program.dispatch(clear, &params, vec![totals], Grid::fold(buckets.div_ceil(WORKGROUP_SIZE)));

        let mut of_buckets = bindings.clone();
        of_buckets[0] = totals;
        self.walk(base, spec, loops, piece, of_buckets);

        let own = Spec::new().constant("BUCKETS", buckets as u32);
        let place = Kernel::library("primitives/histogram_starts", "place_buckets", own.clone());
        let place = self.program.kernel(place);
        let params = StartsParams { tiles: tiles as u32 };
        self.program.dispatch(place, &params, vec![totals, starts, ends], Grid::fold(1));

        let mut next = 1 + bindings.len() as u32;
        if vectors > 0 {
            bindings.extend([Binding { size: vectors * 16, ..piece }, ends, words]);
            next += 1;
        }
        let scatter = spec
            .clone()
            .constant("BUCKETS", buckets as u32)
            .constant("WORKGROUP_SIZE", size)
            .constant("ENDS_BINDING", next)
            .flag("VECTORS", vectors > 0);
        let scatter =
            self.program.kernel(Kernel::library("primitives/histogram_scatter", "scatter_slots", scatter));
        let params = Params { n: n as u32, parts: tiles as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(scatter, &params, bindings, Grid::fold(tiles));

        let policy = &self.policy;
        // Words of a step of the workgroup; a chunk pays for the counters.
        let step = u64::from(4 * policy.packed_loads * policy.packed_size);
        let chunk = n.div_ceil(2 * policy.packed_workgroups).max(slots).next_multiple_of(step);
        let count = own
            .constant("WORKGROUP_SIZE", policy.packed_size)
            .constant("WORDS", counters as u32)
            .constant("LOADS", policy.packed_loads);
        let count = Kernel::library("primitives/histogram_bucketed", "count_buckets", count);
        let count = self.program.kernel(count);
        let params = ChunkParams { chunk: chunk as u32, steps: (chunk / step) as u32 };
        let bindings = vec![Binding::operand(1, &self.program.operands), starts, ends, words];
        self.program.dispatch(count, &params, bindings, Grid::fold(room / chunk + buckets));
        Ok(())
    }

    /// Counts in workgroup memory.
    fn walk(&mut self, base: &Params, spec: &Spec, loops: u64, piece: Binding, mut bindings: Vec<Binding>) {
        let policy = &self.policy;
        let variant = self.program.variant();
        let (coarsened, cached) = (variant != "privatized", variant == "cached");
        let by_value = self.dtype.size() == 1 && !cached && self.buckets == 0;
        let size = u64::from(policy.workgroup_size);
        let n = piece.size / self.dtype.size() as u64;
        let vectors = if coarsened { piece.size / 16 } else { 0 };
        let slots = if by_value { 256 } else { self.bins.next_power_of_two().max(64) };
        let slots = if self.buckets > 0 { self.buckets } else { slots };
        let slots = slots.min(u64::from(policy.counters));
        let (parts, wide) = if coarsened {
            let wide = policy.wide && vectors >= 4 * size * policy.workgroups;
            let useful = vectors.div_ceil(size).min(n / (policy.elements_per_slot * slots));
            (useful.clamp(1, policy.workgroups).max(self.least_parts(vectors, loops, size)), wide)
        } else {
            (n.div_ceil(size), false)
        };
        let spec = spec
            .clone()
            .constant("WORKGROUP_SIZE", policy.workgroup_size)
            .flag("COARSENED", coarsened)
            .flag("AGGREGATED", variant == "aggregated")
            .flag("VECTORS", vectors > 0)
            .flag("WIDE", wide)
            .flag("ROLLED", self.profile.is_cpu())
            .flag("BYTES", by_value);
        let kernel = if cached {
            let spec = spec.constant("SLOTS", policy.counters / 2);
            Kernel::library("primitives/histogram_cached", "count_with_cache", spec)
        } else {
            let room = (u64::from(policy.counters) / slots) as u32;
            let copies = if coarsened { 1 << room.clamp(1, policy.copies).ilog2() } else { 1 };
            let mut spec = spec.constant("SLOTS", slots as u32).constant("COPIES", copies);
            if self.buckets > 0 {
                spec = spec.flag("BUCKETED", true).constant("BUCKETS", slots as u32);
            }
            Kernel::library("primitives/histogram_private", "count_parts", spec)
        };
        let kernel = self.program.kernel(kernel);
        if vectors > 0 {
            bindings.push(Binding { size: vectors * 16, ..piece });
        }
        let params = Params { n: n as u32, parts: parts as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts));
    }
}

pub(super) const INFO: Operation = Operation {
    name: "histogram",
    about: "how many elements fall into each bin; the last bin has its upper edge too",
    inputs: &[Input::new("input", "any shape")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8],
    options: &[
        Setting::number("bins", "256"),
        Setting::number("lo", ""),
        Setting::number("hi", ""),
        Setting::array("edges", "(bins + 1)"),
        PACKING,
    ],
    make: Some(make),
    variants: Histogram::variants,
    samples,
    domains: &[("input", Domain::BelowLengthOf("counts"))],
    comparison: Some(Comparison::Sums),
    facts,
    example: Example { shape: &[100], options: &[("lo", "0"), ("hi", "1")] },
    ..Operation::UNDECLARED
};

const PACKING: Setting = Setting::text("packing", "INVOCATIONS,WORKGROUPS,WORDS,LOADS", "");

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let input = asked.any("input")?;
    let mut op = binned(asked, &input)?.variant(asked.variant());
    if let Some([invocations, workgroups, words, loads]) =
        asked.settings().given_numbers::<u32, 4>(&PACKING)?
    {
        op = op.packing(invocations, workgroups.into(), words, loads);
    }
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(vec![op.bins()])]);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(Form::new::<T>(op, operands)))
}

/// The bins that the options say.
fn binned(asked: &Asked<'_>, input: &HostArray) -> Result<Histogram> {
    let (settings, n) = (asked.settings(), input.len());
    if let Some(edges) = settings.array("edges") {
        if let Some(key) = ["bins", "lo", "hi"].into_iter().find(|key| settings.has(key)) {
            return Err(err!(
                InvalidArgument,
                "histogram: --{key} and --edges are given; the edges say where the bins lie"
            ));
        }
        let [_] = asked.dims("edges", edges)?;
        return Ok(Histogram::with_edges(n, edges.data().to_f64()));
    }
    let bins = settings.number("bins")?;
    let op = Histogram::new(n, bins);
    match (settings.maybe("lo")?, settings.maybe("hi")?) {
        (None, None) => Ok(op),
        (Some(lo), Some(hi)) => Ok(op.range(lo, hi)),
        _ if input.dtype().is_float() => {
            Err(err!(InvalidArgument, "histogram: of --lo and --hi one is given; floats need both"))
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
        }
    }
    Ok(programs)
}

/// Segments that a subgroup loads.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (_, interface) = subject.kernel("count_elements")?;
    // Before it the counts are cleared.
    let of_counting = |d: &&Dispatch| subject.program.kernels[d.kernel].entry == "count_elements";
    let counting = subject.program.dispatches.iter().find(of_counting)?;
    let (n, parts) = (u64::from(counting.param("n")?), u64::from(counting.param("parts")?));
    let share = n.div_ceil((parts * u64::from(interface.workgroup_size[0])).max(1));
    let apart = if subject.program.variant() == "global-contiguous" { share } else { 1 };
    Some(vec![subject.transactions("loads", |lane| lane * apart)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn kind<T: Element>(desc: &Histogram) -> ErrorKind {
        Op::<T>::lower(desc, &DeviceProfile::webgpu_defaults()).unwrap_err().kind()
    }

    #[test]
    fn bins_that_are_none_are_refused() {
        let bad = ErrorKind::InvalidArgument;
        assert_eq!(kind::<u32>(&Histogram::new(9, 0)), bad);
        assert_eq!(kind::<f32>(&Histogram::new(9, 4)), bad);
        assert_eq!(kind::<u32>(&Histogram::new(9, (1 << 20) + 1)), ErrorKind::TooLarge);
        for (lo, hi) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::NAN),
            (0.0, f64::INFINITY),
            (f64::NEG_INFINITY, 0.0),
        ] {
            assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(lo, hi)), bad, "{lo} {hi}");
            assert_eq!(kind::<u8>(&Histogram::new(9, 4).range(lo, hi)), bad, "{lo} {hi}");
        }
        assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(1.0, 1.0 + 1e-12)), bad);
        assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(0.0, 1e39)), bad);
        for edges in [
            vec![],
            vec![1.0],
            vec![0.0, f64::NAN],
            vec![f64::NAN, 0.0],
            vec![0.0, 2.0, 1.0],
            vec![0.0, 1.0, 1.0],
        ] {
            assert_eq!(kind::<f32>(&Histogram::with_edges(9, edges.clone())), bad, "{edges:?}");
            assert_eq!(kind::<u32>(&Histogram::with_edges(9, edges.clone())), bad, "{edges:?}");
        }
        assert_eq!(kind::<u64>(&Histogram::new(9, 4)), ErrorKind::Unsupported);
        assert_eq!(kind::<u8>(&Histogram::new(9, 4).variant("magic")), bad);
        let many = Histogram::new(9, 4097);
        for v in ["privatized", "coarsened", "aggregated"] {
            assert_eq!(kind::<u32>(&many.clone().variant(v)), ErrorKind::Unsupported);
            assert!(Op::<u8>::lower(&many.clone().variant(v), &DeviceProfile::webgpu_defaults()).is_ok());
        }
        assert_eq!(kind::<u32>(&Histogram::new(100_000_000, 9)), ErrorKind::TooLarge);
    }

    #[test]
    fn the_choice_follows_the_bins() {
        let chosen = |bins, profile: &DeviceProfile| {
            Op::<u32>::lower(&Histogram::new(1 << 20, bins), profile).unwrap().variant()
        };
        let (h100, portable) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults());
        for (bins, there, here) in [
            (1, "coarsened", "coarsened"),
            (1024, "coarsened", "coarsened"),
            (2048, "coarsened", "coarsened"),
            (8192, "coarsened", "multipass"),
            (10_000, "multipass", "multipass"),
            (100_000, "multipass", "cached"),
            (1 << 20, "cached", "cached"),
        ] {
            assert_eq!((chosen(bins, &h100), chosen(bins, &portable)), (there, here), "{bins} bins");
        }
        assert_eq!(chosen(1 << 20, &DeviceProfile::mesa()), "global");
    }

    #[test]
    fn rules_are_as_cheap_as_the_bins_allow() {
        let mode = |desc: Histogram, dtype| Rule::of(&desc, dtype).map(|r| r.mode);
        let range = |bins, lo, hi| Histogram::new(1, bins).range(lo, hi);
        assert_eq!(mode(Histogram::new(1, 1000), DType::U32), Some(Mode::Shift));
        assert_eq!(mode(range(1024, 0.0, 4294967296.0), DType::U32), Some(Mode::Shift));
        assert_eq!(mode(range(1024, 0.0, 4294967295.0), DType::U32), Some(Mode::Uniform));
        assert_eq!(mode(range(1024, -1.0, 1.0), DType::F32), Some(Mode::Uniform));
        assert_eq!(mode(range(100, 1e6, 1e6 + 1.0), DType::F32), Some(Mode::Search));
        assert_eq!(mode(range(10, 0.5, 9.5), DType::I32), Some(Mode::Search));
        assert_eq!(mode(range(10, -20.0, -1.0), DType::U32), None);
        assert_eq!(mode(range(10, 300.0, 400.0), DType::U8), None);
    }

    #[test]
    fn keys_bracket_every_number() {
        for e in [-1e39, -1.5, -0.0, 0.0, 0.1, 0.7, 1.0, 1e-50, 3.4e38, 1e39] {
            let (low, high) = (lowest_key(e, DType::F32), u64::from(highest_key(e, DType::F32).unwrap()));
            let exact = f64::from(e as f32) == e;
            assert_eq!(low <= high, exact, "{e}");
        }
        assert_eq!(lowest_key(0.2, DType::U32), 1);
        assert_eq!(lowest_key(-7.0, DType::U32), 0);
        assert_eq!(lowest_key(1e20, DType::U32), 1 << 32);
        assert_eq!(highest_key(-0.5, DType::U32), None);
        assert_eq!(highest_key(-0.5, DType::I32), Some(0x7fff_ffff));
    }

    #[test]
    fn pieces_cover_the_input() {
        let profile = DeviceProfile::webgpu_defaults();
        let program = Op::<u8>::lower(&Histogram::new(200_000_001, 256), &profile).unwrap();
        let parts: Vec<_> = program.dispatches[1..].iter().map(|d| d.bindings[1]).collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts.iter().map(|b| b.size).sum::<u64>(), 200_000_001);
        assert_eq!(parts[1].offset, parts[0].size);
    }
}
