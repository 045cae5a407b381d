//! The k largest or smallest elements, with their positions.

use super::WORDS;
use super::sort::{RadixSort, key_spec};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::When;
use crate::program::fit::BoundChunk;
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Domain, Example, Grid, Input, Kernel, Op,
    OpCall, Operand, Operation, Program, Resource, Role, Setting, Variant, by_type, choose, kernel_params,
    operands,
};
use crate::shader::Spec;
use crate::shape::{index_u32, round_up};

/// Finds the `k` largest (or smallest) of `n` elements, in order: `values[i]` is the `i`-th largest element, and
/// `indices[i]` its position in the input.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, 9.0, -1.0, 7.0])?;
/// let (values, indices) = (gpu.alloc::<f32>(2)?, gpu.alloc::<u32>(2)?);
/// let top = TopK::new(4, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// top.record(&mut rec, &x, &values, &indices)?;
/// rec.submit()?;
/// assert_eq!((values.read()?, indices.read()?), (vec![9.0, 7.0], vec![1, 3]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements; `values` and `indices` (u32) have `k`, from 1 to `n`. The outputs must be other wgpu
/// buffers than the input and each other.
///
/// # Types and order
/// f32, i32 and u32; largest first, or [`smallest`](TopK::smallest) first. The order is that of
/// [`RadixSort`](crate::RadixSort): -inf ... -0, +0 ... +inf. NaN is the worst either way, so NaN appears only if
/// there are fewer than `k` numbers. Of equal elements, and of NaNs, the one with the lower index comes first.
///
/// # Precision and determinism
/// Elements are moved, never computed with: NaN keeps its bits. The same input gives the same bits on every device.
///
/// # Cost
/// `filter` and `subgroup` read the input once. For `k` up to 1024 they take 2 dispatches and scratch of n / c
/// words, where c, from 64 to 4096, is about sqrt(3 n / k); above, about 30 dispatches and k c words more. `radix`
/// reads the input 4 to 5 times and sorts `k` pairs. `sort` sorts all pairs. `single` is one dispatch of one
/// workgroup.
///
/// # Variants
/// See [`TopK::variants`]. `auto` (the default) takes `single` for few elements, `subgroup` or `filter` while `k`
/// is small beside `n`, then `radix`, and `sort` if `k` is at least half of `n`.
///
/// # Errors
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `k` is 0 or above `n`, or an unknown variant.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): elements of another type, or a variant that the device cannot
///   run or that does not take this `k` or `n`.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, or scratch above the largest
///   binding.
///
/// # Algorithm
/// The k best elements lie in the k chunks with the best maxima (of equal ones, the first). `filter` and `subgroup`
/// find the best of each chunk, the k best chunks, and the k best of their elements. For k up to 1024 one workgroup
/// does all but the first step (`shaders/primitives/top_k_finish.wgsl`). For more, a radix select finds the k-th
/// best, everything at least as good is collected in order of position, and a stable sort puts it in order. `radix`
/// does that with all elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopK {
    n: usize,
    k: usize,
    smallest: bool,
    variant: String,
    chunk: Option<u32>,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("single", "one workgroup, for few elements and k up to 1024"),
    Variant::portable("filter", "reads once for the best of each chunk, then the best chunks only"),
    Variant::subgroups("subgroup", "as filter, with the best of a chunk by subgroup shuffles"),
    Variant::portable("radix", "radix select of the k-th best, then a sort of the k"),
    Variant::portable("sort", "sorts all elements with their positions"),
];

impl TopK {
    /// Finds the `k` largest of `n` elements.
    pub fn new(n: usize, k: usize) -> Self {
        Self { n, k, smallest: false, variant: "auto".into(), chunk: None }
    }

    /// Finds the smallest elements. The default is the largest.
    #[must_use]
    pub fn smallest(mut self) -> Self {
        self.smallest = true;
        self
    }

    crate::program::variants!(variant);

    /// Sets the elements of a chunk of `filter` and `subgroup`, for tuning and tests: a power of two from 64 to
    /// 4096. The default is that of the policy.
    #[doc(hidden)]
    #[must_use]
    pub fn chunk(mut self, elements: u32) -> Self {
        self.chunk = Some(elements);
        self
    }
}

operands! {
    impl[T: Element,] TopK, T {
        fn record(input: T, values: T, indices: u32);
    }
}

crate::program::lowers! {
    impl[T: Element] TopK as [T], |op, dtype, profile| TopKLowering::new(op, dtype, profile)?.run::<T>(op)
}

kernel_params! { struct TopKChunkParams { n: u32, chunks: u32, first_chunk: u32, workgroups: u32 } }
kernel_params! { struct FinishParams { n: u32, k: u32, chunks: u32 } }
kernel_params! { struct DigitParams { n: u32, workgroups: u32, shift: u32, found: u32 } }
kernel_params! { struct PickParams { k: u32, shift: u32 } }
kernel_params! { struct TopKTileParams { n: u32, tiles: u32, first_tile: u32, all_tiles: u32 } }
kernel_params! { struct TopKScanParams { first: u32, len: u32, rows: u32 } }
kernel_params! { struct GatherParams { n: u32, first: u32, len: u32, count: u32 } }
kernel_params! { pub(super) struct PlaceParams { first: u32, len: u32 } }
kernel_params! { struct FrontParams { len: u32 } }

/// Maximum of elements that one workgroup puts in order.
const CAPACITY: usize = 1024;
/// The smallest and the largest chunk.
const CHUNKS: (u32, u32) = (64, 4096);
/// Threads of a workgroup of the kernels without a policy.
const THREADS: u64 = 256;
/// Keys of a tile of the kernel that collects the k best.
const TILE: u64 = 4096;
/// Digits of the radix select, from the highest: the lowest bit of each, and the bits above it.
const DIGITS: [(u32, u32); 3] = [(21, 0), (10, 11), (0, 22)];
const BINS: u64 = 2048;

/// Constants that depend on the device.
struct TopKPolicy {
    /// Workgroups that read the input, for the best of chunks or for digits.
    readers: u64,
    /// Threads of the only workgroup of `top_k_finish`.
    finishers: u32,
    /// Maximum of candidates of this workgroup, chunks and elements together.
    most: u64,
    /// Maximum of elements for which `auto` takes `single`.
    single: usize,
    /// Maximum of threads that share a chunk.
    team: u32,
}

fn policy(profile: &DeviceProfile, subgroups: bool) -> TopKPolicy {
    let (smallest, _) = profile.subgroup_sizes;
    let team = if subgroups { smallest.clamp(1, 32) } else { 32 };
    if profile.quirks.serial_workgroups {
        // Barriers are costly on processors: without subgroups, each thread has its own chunk.
        // A share of `most` takes a thread far fewer rounds than every driver runs.
        let team = if subgroups { team } else { 1 };
        return TopKPolicy { readers: 64, finishers: 64, most: 1 << 17, single: 1 << 14, team };
    }
    let finishers = if profile.limits.max_invocations >= 1024 { 1024 } else { 256 };
    // f32 on an H100 (Vulkan, driver 580.159.04). 100 of 2^16: 27.7 us, `single` 35.4. The last workgroup takes about
    // 0.45 us for 1024 candidates (1000 of 2^26 346 us, 100 of 2^26 151 us), many workgroups about 150 us
    // for any number (10,000 of 2^26 248 us).
    TopKPolicy { readers: 2112, finishers, most: 400 * u64::from(finishers), single: 1 << 14, team }
}

/// Binds the first `count` words.
fn whole(resource: Resource, count: u64) -> Binding {
    BoundChunk { first: 0, count }.of(resource, 4)
}

/// Input and output of a radix select.
struct Selection {
    keys: Resource,
    len: u64,
    /// Spec of the conversion of keys to numbers.
    order: Spec,
    positions: Binding,
    /// Output of the keys, if any.
    chosen: Option<Binding>,
    /// The chunks that hold the keys, and keys of a chunk, unless all keys take part.
    chunks: Option<(Binding, u32)>,
}

/// How the k best are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TopKWay {
    Single,
    Chunks,
    Radix,
    Sort,
}

struct TopKLowering<'a> {
    n: u64,
    k: u64,
    way: TopKWay,
    order: Spec,
    policy: TopKPolicy,
    chunk: u32,
    profile: &'a DeviceProfile,
    subgroups: bool,
    program: Program,
}

const INPUT: Resource = Resource::Operand(0);
const VALUES: Resource = Resource::Operand(1);
const INDICES: Resource = Resource::Operand(2);

impl<'a> TopKLowering<'a> {
    fn new(desc: &TopK, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        let TopK { n, k, .. } = *desc;
        if !matches!(dtype, DType::F32 | DType::I32 | DType::U32) {
            return Err(err!(Unsupported, "top-k: elements of {dtype}; convert them to f32, i32 or u32"));
        }
        if k == 0 || k > n {
            return Err(err!(InvalidArgument, "top-k: k is {k} and n is {n}; k must be from 1 to n"));
        }
        index_u32("top-k", "n", n)?;
        let binding = profile.limits.max_storage_binding;
        let input = 4 * n as u64;
        let chunk = match desc.chunk {
            Some(chunk) if chunk.is_power_of_two() && (CHUNKS.0..=CHUNKS.1).contains(&chunk) => chunk,
            Some(chunk) => {
                return Err(err!(
                    InvalidArgument,
                    "top-k: chunks of {chunk} elements; a chunk must be a power of two from 64 to 4096"
                ));
            }
            None => chunk_len(n, k),
        };
        let chunks = n.div_ceil(chunk as usize);
        let most = |subgroups| policy(profile, subgroups).most;
        let single = if k > CAPACITY || n as u64 > most(false) || input > binding {
            Err(err!(
                Unsupported,
                "top-k: `single` takes k up to {CAPACITY} of up to {} elements here, not {k} of {n}; use `filter` or \
                 `radix`",
                most(false).min(binding / 4)
            ))
        } else {
            Ok(())
        };
        let filter = if chunks < k {
            Err(err!(
                Unsupported,
                "top-k: `filter` and `subgroup` need at least k chunks of {chunk}, not k {k} of {n} elements; use \
                 `radix`"
            ))
        } else {
            let what = format_args!("{k} chunks of {chunk} elements");
            profile.check_scratch("top-k", what, 4 * k as u64 * u64::from(chunk), "use `radix`")
        };
        let radix = profile.check_scratch("top-k", format_args!("{k} indices"), 4 * k as u64, "use `sort`");
        let (variant, decision) = choose("top-k", &desc.variant, TopK::variants(), profile, || {
            let in_chunks = filter.is_ok() && k <= n / 128;
            // Where chunks do not pay, one workgroup is cheaper than the many dispatches of a radix select.
            let single_up_to = policy(profile, false).single << if in_chunks { 0 } else { 3 };
            if single.is_ok() && n <= single_up_to {
                ("single", "few elements: one workgroup suffices".into())
            } else if in_chunks {
                if profile.features.subgroups {
                    ("subgroup", format!("reads once, in chunks of {chunk}; joins by shuffles"))
                } else {
                    ("filter", format!("reads once, in chunks of {chunk}; the device has no subgroups"))
                }
            } else if radix.is_ok() && k < n / 2 {
                ("radix", "k is too large beside n for chunks, and too small to sort all elements".into())
            } else {
                ("sort", "k is at least half of n, or above a binding: sorts all elements".into())
            }
        })?;
        let way = match variant.name {
            "single" => single.map(|()| TopKWay::Single)?,
            "filter" | "subgroup" => filter.map(|()| TopKWay::Chunks)?,
            "radix" => radix.map(|()| TopKWay::Radix)?,
            _ => TopKWay::Sort,
        };
        let mut program = Program::new("top-k", decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("input", dtype, n, Access::Read));
        program.operands.push(operand("values", dtype, k, Access::Write));
        program.operands.push(operand("indices", DType::U32, k, Access::Write));
        profile.check_buffers(
            "top-k",
            &program.operands,
            "find the k best of chunks, then the k best of those",
        )?;
        program.cost = Cost::of(n as f64, &program.operands);
        let subgroups = variant.requires.subgroups;
        Ok(Self {
            n: n as u64,
            k: k as u64,
            way,
            order: key_spec(dtype, !desc.smallest)?,
            policy: policy(profile, subgroups),
            chunk,
            profile,
            subgroups,
            program,
        })
    }

    fn run<T: Element>(mut self, desc: &TopK) -> Result<Program> {
        let sort =
            |n: u64| RadixSort::new(n as usize).when(!desc.smallest, |op| op.descending()).with_values();
        let small = self.k <= CAPACITY as u64
            && self.chunks() + self.k * u64::from(self.chunk) <= self.policy.most
            && 4 * self.n <= self.profile.limits.max_storage_binding;
        match self.way {
            TopKWay::Single => self.finish(None),
            TopKWay::Chunks if small => {
                let bests = self.best_of_chunks();
                self.finish(Some(bests));
            }
            TopKWay::Sort => {
                let sorted = Op::<T>::lower(&sort(self.n), self.profile)?;
                self.sort_all(sorted);
            }
            way => {
                let (keys, positions) = (self.program.scratch(4 * self.k), self.program.scratch(4 * self.k));
                if way == TopKWay::Radix {
                    self.select(&Selection {
                        keys: INPUT,
                        len: self.n,
                        order: self.order.clone(),
                        positions,
                        chosen: Some(keys),
                        chunks: None,
                    });
                } else {
                    self.select_by_chunks(keys, positions);
                }
                let sorted = Op::<T>::lower(&sort(self.k), self.profile)?;
                self.program.append(sorted, &[keys.resource, positions.resource, VALUES, INDICES]);
            }
        }
        Ok(self.program)
    }

    fn chunks(&self) -> u64 {
        self.n.div_ceil(u64::from(self.chunk))
    }

    /// Splits `n` words into parts that each fit one binding and begin at multiples of the largest chunk and of a tile.
    fn parts(&self, n: u64) -> impl Iterator<Item = BoundChunk> + use<> {
        word_parts(n, self.profile)
    }

    /// Binds a part of the input as vec4, which leaves out up to three elements.
    fn as_vec4(&mut self, part: BoundChunk) -> Binding {
        match part.count / 4 {
            // Never accessed, but it must be bound.
            0 => self.program.scratch(16),
            vec4s => BoundChunk { count: 4 * vec4s, ..part }.of(INPUT, 4),
        }
    }

    /// Writes the best number of each chunk to scratch.
    fn best_of_chunks(&mut self) -> Binding {
        let bests = self.program.scratch(round_up(4 * self.chunks(), 16));
        // Each thread loads at least four vec4 of its chunk.
        let team = self.policy.team.min(self.chunk / 16);
        let team = 1 << team.max(1).ilog2();
        let threads = THREADS as u32;
        let threads = if self.profile.quirks.serial_workgroups { threads / 4 } else { threads };
        let spec = self
            .order
            .clone()
            .flag("SUBGROUPS", self.subgroups)
            .constant("WORKGROUP_SIZE", threads)
            .constant("TEAM", team)
            .constant("LOADS", self.chunk / 4 / team);
        let kernel = Kernel::library("primitives/top_k_chunks", "top_k_chunks", spec);
        let kernel = self.program.kernel(kernel);
        for part in self.parts(self.n) {
            let chunks = part.count.div_ceil(u64::from(self.chunk));
            let workgroups = chunks.div_ceil(u64::from(threads / team)).min(self.policy.readers);
            let params = TopKChunkParams {
                n: part.count as u32,
                chunks: chunks as u32,
                first_chunk: (part.first / u64::from(self.chunk)) as u32,
                workgroups: workgroups as u32,
            };
            let vec4s = self.as_vec4(part);
            let bindings = vec![vec4s, part.of(INPUT, 4), bests];
            self.program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        }
        bests
    }

    /// Finishes in one workgroup.
    fn finish(&mut self, bests: Option<Binding>) {
        let spec = self
            .order
            .clone()
            .flag("CHUNKS", bests.is_some())
            .flag("IN_FLIGHT", !self.profile.quirks.slow_compiler)
            .constant("WORKGROUP_SIZE", self.policy.finishers)
            .constant("CAPACITY", CAPACITY as u32)
            .constant("CHUNK", self.chunk);
        let kernel = self.program.kernel(Kernel::library("primitives/top_k_finish", "top_k_finish", spec));
        let chunks = if bests.is_some() { self.chunks() as u32 } else { 0 };
        let params = FinishParams { n: self.n as u32, k: self.k as u32, chunks };
        let (n, k) = (self.n, self.k);
        let vec4s = self.as_vec4(BoundChunk { first: 0, count: n });
        let operands = [vec4s, whole(INPUT, n), whole(VALUES, k), whole(INDICES, k)];
        let bindings = operands.into_iter().chain(bests).collect();
        self.program.dispatch(kernel, &params, bindings, Grid::fold(1));
    }

    /// Selects the k best chunks, gathers their elements, and selects the k best of these.
    fn select_by_chunks(&mut self, keys: Binding, positions: Binding) {
        let bests = self.best_of_chunks();
        let chosen = self.program.scratch(4 * self.k);
        let count = self.k * u64::from(self.chunk);
        let candidates = self.program.scratch(4 * count);
        self.select(&Selection {
            keys: bests.resource,
            len: self.chunks(),
            // The keys are numbers already.
            order: Spec::new(),
            positions: chosen,
            chosen: None,
            chunks: None,
        });
        let spec = self.order.clone().constant("CHUNK", self.chunk);
        let gather = self.program.kernel(Kernel::library("primitives/top_k_gather", "top_k_gather", spec));
        for part in self.parts(self.n) {
            let params = GatherParams {
                n: self.n as u32,
                first: part.first as u32,
                len: part.count as u32,
                count: count as u32,
            };
            let bindings = vec![part.of(INPUT, 4), chosen, candidates];
            self.program.dispatch(gather, &params, bindings, Grid::fold(count.div_ceil(THREADS)));
        }
        self.select(&Selection {
            keys: candidates.resource,
            len: count,
            order: self.order.clone(),
            positions,
            chosen: Some(keys),
            chunks: Some((chosen, self.chunk)),
        });
    }

    /// Finds the k-th best key by its digits, and collects all keys at least as good, in order of position.
    fn select(&mut self, from: &Selection) {
        let parts: Vec<_> = self.parts(from.len).collect();
        let k = self.k as u32;
        let search = kth_number(&mut self.program, from.keys, &parts, &from.order, k, self.profile);
        let all_tiles = from.len.div_ceil(TILE);
        let (counts, totals) = (self.program.scratch(8 * all_tiles), self.program.scratch(8));
        let tally = Kernel::library("primitives/top_k_tally", "top_k_tally", from.order.clone());
        let tally = self.program.kernel(tally);
        let spec =
            from.order.clone().flag("VALUES", from.chosen.is_some()).flag("CHUNKS", from.chunks.is_some());
        let spec = from.chunks.iter().fold(spec, |spec, (_, chunk)| spec.constant("CHUNK", *chunk));
        let collect = self.program.kernel(Kernel::library("primitives/top_k_collect", "top_k_collect", spec));
        let params = |part: &BoundChunk| TopKTileParams {
            n: part.count as u32,
            tiles: part.count.div_ceil(TILE) as u32,
            first_tile: (part.first / TILE) as u32,
            all_tiles: all_tiles as u32,
        };
        for &part in &parts {
            let bindings = vec![part.of(from.keys, 4), search, counts];
            self.program.dispatch(tally, &params(&part), bindings, Grid::fold(part.count.div_ceil(TILE)));
        }
        let scan = self.program.kernel(Kernel::library("primitives/sort_scan", "sort_scan", Spec::new()));
        let rows = TopKScanParams { first: 0, len: all_tiles as u32, rows: 2 };
        self.program.dispatch(scan, &rows, vec![counts, totals], Grid::fold(2));
        for &part in &parts {
            let bindings = [part.of(from.keys, 4), search, counts, totals, from.positions].into_iter();
            let bindings = bindings.chain(from.chosen).chain(from.chunks.map(|(chunks, _)| chunks)).collect();
            self.program.dispatch(collect, &params(&part), bindings, Grid::fold(part.count.div_ceil(TILE)));
        }
    }

    /// Sorts all elements with their positions, and copies the first k.
    fn sort_all(&mut self, sorted: Program) {
        let places = self.program.scratch(4 * self.n);
        let write = Kernel::library("primitives/top_k_places", "top_k_places", Spec::new());
        let write = self.program.kernel(write);
        for part in self.parts(self.n) {
            let params = PlaceParams { first: part.first as u32, len: part.count as u32 };
            let bindings = vec![part.of(places.resource, 4)];
            self.program.dispatch(write, &params, bindings, Grid::fold(part.count.div_ceil(THREADS)));
        }
        if self.k == self.n {
            self.program.append(sorted, &[INPUT, places.resource, VALUES, INDICES]);
            return;
        }
        let [keys, positions] = [0, 1].map(|_| self.program.scratch(4 * self.n).resource);
        self.program.append(sorted, &[INPUT, places.resource, keys, positions]);
        let copy = self.program.kernel(Kernel::library("primitives/top_k_front", "top_k_front", Spec::new()));
        for part in self.parts(self.k) {
            let bindings = [keys, positions, VALUES, INDICES].map(|resource| part.of(resource, 4)).to_vec();
            let params = FrontParams { len: part.count as u32 };
            self.program.dispatch(copy, &params, bindings, Grid::fold(part.count.div_ceil(THREADS)));
        }
    }
}

/// Splits `n` words into parts that each fit one binding and begin at multiples of the largest chunk and of a tile.
pub(super) fn word_parts(n: u64, profile: &DeviceProfile) -> impl Iterator<Item = BoundChunk> + use<> {
    BoundChunk::full(n, (profile.limits.max_storage_binding / 4 / TILE * TILE).max(TILE))
}

/// Finds the number of the k-th best key by its digits, and its rank among equal ones.
pub(super) fn kth_number(
    program: &mut Program,
    keys: Resource,
    parts: &[BoundChunk],
    order: &Spec,
    k: u32,
    profile: &DeviceProfile,
) -> Binding {
    let (bins, search) = (program.scratch(4 * BINS), program.scratch(8));
    let readers = policy(profile, false).readers;
    let pick = |entry| Kernel::library("primitives/top_k_pick", entry, Spec::new());
    let [begin, pick] = ["top_k_pick_begin", "top_k_pick_digit"].map(|entry| program.kernel(pick(entry)));
    let digits = program.kernel(Kernel::of_file("primitives/top_k_digits", order.clone()));
    program.dispatch(begin, &PickParams { k, shift: 0 }, vec![bins, search], Grid::fold(1));
    for (shift, found) in DIGITS {
        for part in parts {
            let workgroups = part.count.div_ceil(16 * THREADS).min(readers);
            let params = DigitParams { n: part.count as u32, workgroups: workgroups as u32, shift, found };
            let bindings = vec![part.of(keys, 4), search, bins];
            program.dispatch(digits, &params, bindings, Grid::fold(workgroups));
        }
        program.dispatch(pick, &PickParams { k, shift }, vec![bins, search], Grid::fold(1));
    }
    search
}

pub(super) const INFO: Operation = Operation {
    name: "top-k",
    about: "the k largest elements in order, and where they stood",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("values", "(k)"), ("indices", "u32 (k)")],
    types: &WORDS,
    options: &[Setting::number("k", ""), Setting::flag("smallest"), Setting::number("chunk", "")],
    domains: &[("input", Domain::Runs)],
    make: Some(make),
    variants: TopK::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[("k", "3")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let settings = asked.settings();
    let k = settings.maybe("k")?.ok_or_else(|| {
        err!(InvalidArgument, "top-k: --k is missing; give the number of elements to find, from 1 to {n}")
    })?;
    let mut op = TopK::new(n, k).when(settings.has("smallest"), |op| op.smallest()).variant(asked.variant());
    op.chunk = settings.maybe("chunk")?;
    let dtype = input.dtype();
    let operands = vec![Role::Given(input), Role::Result(vec![k]), Role::Result(vec![k])];
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let chunks = ["filter", "subgroup"].contains(&variant);
    let cases: &[(usize, usize)] = if chunks {
        &[(70_000, 1), (300_001, 100), (200_000, 1500)]
    } else if variant == "single" {
        &[(1, 1), (70_000, 1000)]
    } else {
        &[(70_001, 3000), (5000, 5000)]
    };
    for (i, &(n, k)) in cases.iter().enumerate() {
        let top = TopK::new(n, k).variant(variant);
        programs.push(Op::<f32>::lower(&top.clone().when(i % 2 == 0, |op| op.smallest()), profile)?);
        programs.push(Op::<i32>::lower(&top, profile)?);
        programs.push(Op::<u32>::lower(&top.clone().smallest(), profile)?);
        if chunks {
            for chunk in [128, 4096] {
                let top = TopK::new(1 << 20, 20).variant(variant).chunk(chunk);
                programs.push(Op::<f32>::lower(&top, profile)?);
            }
        }
    }
    Ok(programs)
}

/// Elements of a chunk: reading the best of all chunks a few times then costs as much as reading the k best chunks.
fn chunk_len(n: usize, k: usize) -> u32 {
    let ideal = (3.0 * n as f64 / k as f64).sqrt();
    let nearest = 2f64.powf(ideal.log2().round());
    nearest.clamp(f64::from(CHUNKS.0), f64::from(CHUNKS.1)) as u32
}
