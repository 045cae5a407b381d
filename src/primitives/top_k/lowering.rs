use super::TopK;
use crate::primitives::sort::{RadixSort, key_spec};
use crate::program::prelude::*;

kernel_params! { struct TopKChunkParams { n: u32, chunks: u32, first_chunk: u32, workgroups: u32 } }
kernel_params! { struct FinishParams { n: u32, k: u32, chunks: u32 } }
kernel_params! { struct DigitParams { n: u32, workgroups: u32, shift: u32, found: u32, before: u32 } }
kernel_params! { struct PickParams { k: u32, shift: u32 } }
kernel_params! { struct TopKTileParams { n: u32, tiles: u32, first_tile: u32, all_tiles: u32 } }
kernel_params! { struct TopKScanParams { first: u32, len: u32, rows: u32 } }
kernel_params! { struct GatherParams { n: u32, first: u32, len: u32, count: u32 } }
kernel_params! { pub(in crate::primitives) struct PlaceParams { first: u32, len: u32 } }
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
        // Barriers are costly on software drivers: without subgroups, each thread has its own chunk.
        // A share of `most` takes a thread far fewer rounds than every driver runs.
        let team = if subgroups { team } else { 1 };
        return TopKPolicy { readers: 64, finishers: 64, most: 1 << 17, single: 1 << 14, team };
    }
    let finishers = if profile.limits.max_invocations >= 1024 { 1024 } else { 256 };
    // f32 on an H100 (Vulkan, driver 580.159.04). 100 of 2^16: 27.7 us, `single` 35.4. The last workgroup takes about
    // 0.45 us for 1024 candidates, many workgroups about 150 us for any number.
    TopKPolicy { readers: 2112, finishers, most: 400 * u64::from(finishers), single: 1 << 14, team }
}

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
    chosen: Option<Binding>,
    /// The chunks that hold the keys, and keys of a chunk, unless all keys take part.
    chunks: Option<(Binding, u32)>,
    /// How many keys there are, if the device says it.
    length: Option<Binding>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TopKWay {
    Single,
    Chunks,
    Radix,
    Sort,
}

pub(super) struct TopKLowering<'a> {
    n: u64,
    k: u64,
    counted: bool,
    way: TopKWay,
    order: Spec,
    policy: TopKPolicy,
    chunk: u32,
    profile: &'a DeviceProfile,
    subgroups: bool,
    program: Program,
}

const INPUT: Resource = Resource::Operand(0);

impl<'a> TopKLowering<'a> {
    pub(super) fn new(desc: &TopK, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
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
            // There one workgroup sorts up to CAPACITY elements: k 3 of 1000 in 334 us, in chunks 92 (Mesa 22.3).
            let by_chunks = profile.quirks.serial_workgroups && filter.is_ok() && n <= CAPACITY;
            let in_chunks = in_chunks || by_chunks;
            if single.is_ok() && n <= single_up_to && !by_chunks {
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
        program.operands.extend(desc.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        program.operands.push(operand("values", dtype, k, Access::Write));
        program.operands.push(operand("indices", DType::U32, k, Access::Write));
        profile.check_buffers("top-k", &program.operands, "find the k best of chunks, then the k best of those")?;
        program.cost = Cost::of(n as f64, &program.operands);
        let subgroups = variant.requires.subgroups;
        Ok(Self {
            n: n as u64,
            k: k as u64,
            counted: desc.counted,
            way,
            order: key_spec(dtype, !desc.smallest)?,
            policy: policy(profile, subgroups),
            chunk,
            profile,
            subgroups,
            program,
        })
    }

    pub(super) fn run<T: Element>(mut self, desc: &TopK) -> Result<Program> {
        let sort = |n: u64, counted| {
            let sort = RadixSort::new(n as usize).when(!desc.smallest, |op| op.descending()).with_values();
            sort.when(counted, RadixSort::counted)
        };
        let [values, indices] = self.outputs();
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
                let sorted = Op::<T>::lower(&sort(self.n, self.counted), self.profile)?;
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
                        length: self.length(),
                    });
                } else {
                    self.select_by_chunks(keys, positions);
                }
                // The radix select found as many as there are; chunks pad with the worst keys.
                let length = self.length().filter(|_| way == TopKWay::Radix);
                let sorted = Op::<T>::lower(&sort(self.k, length.is_some()), self.profile)?;
                let inputs = [keys, positions].into_iter().chain(length).map(|binding| binding.resource);
                self.program.append(sorted, &inputs.chain([values, indices]).collect::<Vec<_>>());
            }
        }
        Ok(self.program)
    }

    /// The operands `values` and `indices`.
    fn outputs(&self) -> [Resource; 2] {
        [1, 2].map(|at| Resource::Operand(at + usize::from(self.counted)))
    }

    fn length(&self) -> Option<Binding> {
        self.counted.then(|| Binding::operand(1, &self.program.operands))
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
        let spec = limited(spec, self.counted, 4);
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
            let bindings = [vec4s, part.of(INPUT, 4), bests].into_iter().chain(self.length()).collect();
            self.program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        }
        bests
    }

    fn finish(&mut self, bests: Option<Binding>) {
        let spec = self
            .order
            .clone()
            .flag("CHUNKS", bests.is_some())
            .flag("IN_FLIGHT", !self.profile.quirks.slow_compiler)
            .constant("WORKGROUP_SIZE", self.policy.finishers)
            .constant("CAPACITY", CAPACITY as u32)
            .constant("CHUNK", self.chunk);
        let spec = limited(spec, self.counted, 5 + u32::from(bests.is_some()));
        let kernel = self.program.kernel(Kernel::library("primitives/top_k_finish", "top_k_finish", spec));
        let chunks = if bests.is_some() { self.chunks() as u32 } else { 0 };
        let params = FinishParams { n: self.n as u32, k: self.k as u32, chunks };
        let (n, k) = (self.n, self.k);
        let vec4s = self.as_vec4(BoundChunk { first: 0, count: n });
        let [values, indices] = self.outputs();
        let operands = [vec4s, whole(INPUT, n), whole(values, k), whole(indices, k)];
        let bindings = operands.into_iter().chain(bests).chain(self.length()).collect();
        self.program.dispatch(kernel, &params, bindings, Grid::fold(1));
    }

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
            // The best of chunks behind the end are the worst.
            length: None,
        });
        let spec = limited(self.order.clone().constant("CHUNK", self.chunk), self.counted, 4);
        let gather = self.program.kernel(Kernel::library("primitives/top_k_gather", "top_k_gather", spec));
        for part in self.parts(self.n) {
            let params = GatherParams {
                n: self.n as u32,
                first: part.first as u32,
                len: part.count as u32,
                count: count as u32,
            };
            let bindings = [part.of(INPUT, 4), chosen, candidates].into_iter();
            let bindings = bindings.chain(self.length()).collect();
            self.program.dispatch(gather, &params, bindings, Grid::fold(count.div_ceil(THREADS)));
        }
        self.select(&Selection {
            keys: candidates.resource,
            len: count,
            order: self.order.clone(),
            positions,
            chosen: Some(keys),
            chunks: Some((chosen, self.chunk)),
            length: None,
        });
    }

    /// Finds the k-th best key by its digits, and collects all keys at least as good, in order of position.
    fn select(&mut self, from: &Selection) {
        let parts: Vec<_> = self.parts(from.len).collect();
        let k = self.k as u32;
        let keys = (from.keys, from.length);
        let search = kth_number(&mut self.program, keys, &parts, &from.order, k, self.profile);
        let all_tiles = from.len.div_ceil(TILE);
        let (counts, totals) = (self.program.scratch(8 * all_tiles), self.program.scratch(8));
        let counted = from.length.is_some();
        let spec = limited(from.order.clone(), counted, 4);
        let tally = Kernel::library("primitives/top_k_tally", "top_k_tally", spec);
        let tally = self.program.kernel(tally);
        let spec = from.order.clone().flag("VALUES", from.chosen.is_some()).flag("CHUNKS", from.chunks.is_some());
        let spec = from.chunks.iter().fold(spec, |spec, (_, chunk)| spec.constant("CHUNK", *chunk));
        let outputs = 5 + from.chosen.iter().len() + from.chunks.iter().len();
        let spec = limited(spec, counted, outputs as u32 + 1);
        let collect = self.program.kernel(Kernel::library("primitives/top_k_collect", "top_k_collect", spec));
        let params = |part: &BoundChunk| TopKTileParams {
            n: part.count as u32,
            tiles: part.count.div_ceil(TILE) as u32,
            first_tile: (part.first / TILE) as u32,
            all_tiles: all_tiles as u32,
        };
        for &part in &parts {
            let bindings = [part.of(from.keys, 4), search, counts].into_iter().chain(from.length).collect();
            self.program.dispatch(tally, &params(&part), bindings, Grid::fold(part.count.div_ceil(TILE)));
        }
        let scan = self.program.kernel(Kernel::library("primitives/sort_scan", "sort_scan", Spec::new()));
        let rows = TopKScanParams { first: 0, len: all_tiles as u32, rows: 2 };
        self.program.dispatch(scan, &rows, vec![counts, totals], Grid::fold(2));
        for &part in &parts {
            let bindings = [part.of(from.keys, 4), search, counts, totals, from.positions].into_iter();
            let bindings = bindings.chain(from.chosen).chain(from.chunks.map(|(chunks, _)| chunks));
            let bindings = bindings.chain(from.length).collect();
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
        let length = self.length().map(|binding| binding.resource);
        let inputs = [INPUT, places.resource].into_iter().chain(length);
        let [values, indices] = self.outputs();
        if self.k == self.n {
            self.program.append(sorted, &inputs.chain([values, indices]).collect::<Vec<_>>());
            return;
        }
        let [keys, positions] = [0, 1].map(|_| self.program.scratch(4 * self.n).resource);
        self.program.append(sorted, &inputs.chain([keys, positions]).collect::<Vec<_>>());
        let copy = self.program.kernel(Kernel::library("primitives/top_k_front", "top_k_front", Spec::new()));
        for part in self.parts(self.k) {
            let bindings = [keys, positions, values, indices].map(|resource| part.of(resource, 4)).to_vec();
            let params = FrontParams { len: part.count as u32 };
            self.program.dispatch(copy, &params, bindings, Grid::fold(part.count.div_ceil(THREADS)));
        }
    }
}

/// Splits `n` words into parts that each fit one binding and begin at multiples of the largest chunk and of a tile.
pub(in crate::primitives) fn word_parts(n: u64, profile: &DeviceProfile) -> impl Iterator<Item = BoundChunk> + use<> {
    BoundChunk::full(n, (profile.limits.max_storage_binding / 4 / TILE * TILE).max(TILE))
}

/// Finds the number of the k-th best key by its digits, and its rank among equal ones; of the last, if there are fewer
/// than `k` keys, as the length behind the keys says.
pub(in crate::primitives) fn kth_number(
    program: &mut Program, (keys, length): (Resource, Option<Binding>), parts: &[BoundChunk], order: &Spec, k: u32,
    profile: &DeviceProfile,
) -> Binding {
    let (bins, search) = (program.scratch(4 * BINS), program.scratch(8));
    let readers = policy(profile, false).readers;
    let limit = |spec, at| limited(spec, length.is_some(), at);
    let pick = |entry, spec| Kernel::library("primitives/top_k_pick", entry, spec);
    let begin = program.kernel(pick("top_k_pick_begin", limit(Spec::new(), 3)));
    let pick = program.kernel(pick("top_k_pick_digit", Spec::new()));
    let digits = program.kernel(Kernel::of_file("primitives/top_k_digits", limit(order.clone(), 4)));
    let bindings = [bins, search].into_iter().chain(length).collect();
    program.dispatch(begin, &PickParams { k, shift: 0 }, bindings, Grid::fold(1));
    for (shift, found) in DIGITS {
        for part in parts {
            let workgroups = part.count.div_ceil(16 * THREADS).min(readers);
            let (n, before) = (part.count as u32, part.first as u32);
            let params = DigitParams { n, workgroups: workgroups as u32, shift, found, before };
            let bindings = [part.of(keys, 4), search, bins].into_iter().chain(length).collect();
            program.dispatch(digits, &params, bindings, Grid::fold(workgroups));
        }
        program.dispatch(pick, &PickParams { k, shift }, vec![bins, search], Grid::fold(1));
    }
    search
}

/// Elements of a chunk: reading the best of all chunks a few times then costs as much as reading the k best chunks.
fn chunk_len(n: usize, k: usize) -> u32 {
    let ideal = (3.0 * n as f64 / k as f64).sqrt();
    let nearest = 2f64.powf(ideal.log2().round());
    nearest.clamp(f64::from(CHUNKS.0), f64::from(CHUNKS.1)) as u32
}
