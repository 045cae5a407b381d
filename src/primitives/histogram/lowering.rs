use super::Histogram;
use super::bins::{Mode, Rule};
use super::policy::{HistogramPolicy, policy};
use crate::elementwise::MapFn;
use crate::program::prelude::*;
use bytemuck::Zeroable;

/// Workgroups of the kernels that count in device memory, and of the one that clears.
const WORKGROUP_SIZE: u64 = 256;

/// Offsets of bindings are multiples of this.
const CUT: u64 = 256;

/// Copies of counters for few elements.
const FEW_COPIES: u32 = 4;

/// Maximum of elements in a chunk: indices stay below 2^32 after a step beyond the end.
const MAX_IN_CHUNK: u64 = 1 << 31;

/// Maximum of loop rounds of a thread; every driver runs them all.
const MAX_ITERATIONS: u64 = 40_000;
const _: () = assert!(runs_everywhere(3 * MAX_ITERATIONS as usize / 2));

kernel_params! {
    pub(in crate::primitives) struct BinsParams {
        n: u32, bins: u32, least: u32, span: u32, bias: u32, shift: u32, lo: f32, scale: f32, margin: f32,
        edges: u32, stride: u32, parts: u32, vectors: u32, before: u32,
    }
}

kernel_params! {
    struct WideParams { bins: u32 }
}

impl BinsParams {
    /// The parameters of a rule over a number of elements that `parts` workgroups share.
    pub(in crate::primitives) fn new(rule: &Rule, bins: u32, n: u32, parts: u32) -> Self {
        let reached = rule.table.len() as u32;
        Self {
            n,
            bins,
            least: rule.least,
            span: rule.span,
            bias: rule.bias,
            shift: rule.shift,
            lo: rule.lo,
            scale: rule.scale,
            margin: rule.margin,
            edges: reached,
            stride: if reached > 1 { 1 << (reached - 1).ilog2() } else { 0 },
            parts,
            ..Zeroable::zeroed()
        }
    }
}

impl Rule {
    /// The spec by which a kernel finds the bin of an element.
    pub(in crate::primitives) fn spec(&self, dtype: DType) -> Spec {
        Spec::new()
            .slot("element", element_fragment(dtype))
            .flag("FLOAT", dtype.is_float())
            .flag("SIGNED", matches!(dtype, DType::I32 | DType::I8))
            .flag("SHIFT", self.mode == Mode::Shift)
            .flag("UNIFORM", self.mode == Mode::Uniform)
    }

    /// Loop rounds that the bin of one element takes.
    pub(in crate::primitives) fn rounds(&self) -> u64 {
        match self.mode {
            Mode::Search => 2 + u64::from((self.table.len() as u32).max(1).ilog2()),
            Mode::Shift | Mode::Uniform => 1,
        }
    }

    /// Keeps the edges in the program, if kernels look them up.
    pub(in crate::primitives) fn edges(&self, program: &mut Program) -> Option<Binding> {
        (self.mode != Mode::Shift).then(|| program.constant(bytemuck::cast_slice(&self.table).to_vec()))
    }
}

kernel_params! {
    struct StartsParams { tiles: u32 }
}

kernel_params! {
    struct ChunkParams { chunk: u32, steps: u32 }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CountWay {
    /// By atomics in device memory; contiguous if each thread has a range of its own.
    Global { contiguous: bool },
    /// By counters in workgroup memory for all bins. Each thread counts one element, or several if coarsened;
    /// equal neighbours are added up first if aggregated.
    Private { coarsened: bool, aggregated: bool },
    /// By counters in workgroup memory for the bins that a workgroup meets first.
    Cached,
    /// By counters of 16 bits, the bins in turn.
    Packed,
    /// By bucket, after moving the elements into buckets of bins.
    Partitioned,
}

impl CountWay {
    /// Resolves a variant for `slots` bins of elements of a type. Bytes are counted by value, whatever the bins.
    fn of(variant: &str, slots: u64, most: u64, dtype: DType, profile: &DeviceProfile) -> Result<Self> {
        let way = match variant {
            "global" => Self::Global { contiguous: false },
            "global-contiguous" => Self::Global { contiguous: true },
            "cached" => Self::Cached,
            "partitioned" => Self::Partitioned,
            "multipass" if dtype.size() > 1 => Self::Packed,
            _ => Self::Private { coarsened: variant != "privatized", aggregated: variant == "aggregated" },
        };
        if matches!(way, Self::Private { .. }) && slots > most {
            return Err(err!(
                Unsupported,
                "histogram: the variant `{variant}` keeps all bins in workgroup memory, {most} on {}, and {slots} are asked \
                 for; use `multipass`, `cached` or `global`",
                profile.name
            ));
        }
        Ok(way)
    }
}

pub(super) struct HistogramLowering<'a> {
    way: CountWay,
    dtype: DType,
    /// `partitioned`: buckets of bins, and scratch.
    buckets: u64,
    moved: Option<[Binding; 4]>,
    bytes: u64,
    bins: u64,
    rule: Option<Rule>,
    function: Option<MapFn>,
    counted: bool,
    wide: bool,
    /// Counts of 32 bits, in scratch if those of the operand are wide.
    narrow: Option<Binding>,
    accumulate: bool,
    policy: HistogramPolicy,
    profile: &'a DeviceProfile,
    program: Program,
}

impl<'a> HistogramLowering<'a> {
    pub(super) fn new(desc: &Histogram, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        if matches!(dtype, DType::U64 | DType::Bf16) {
            return Err(err!(
                Unsupported,
                "histogram: elements of {dtype}; convert them to u8, i8, u32, i32, f32 or f16"
            ));
        }
        desc.check(dtype)?;
        if let Some(function) = &desc.function {
            function.check_fused("histogram", dtype)?;
        }
        let n = elements("histogram", "input", &[desc.n])?;
        let mut policy = policy(profile);
        if let Some((size, workgroups, words, loads)) = desc.packing {
            // Counters of 16 bits limit the additions between two barriers.
            let additions = u64::from(size) * u64::from(loads);
            if words < 1024 || workgroups == 0 || additions == 0 || additions > 4096 {
                return Err(err!(
                    InvalidArgument,
                    "histogram: packing of {size} threads, {workgroups} workgroups, {words} words, {loads} vec4; words \
                     must be at least 1024, and threads times vec4 from 1 to 4096"
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
            if profile.quirks.serial_workgroups {
                // us of `global` and `coarsened`, 8000 in 256 bins: 208, 158 (Mesa 22.3), 314, 923 (SwiftShader).
                ("global", format!("{slots} bins; atomics rarely collide on software drivers"))
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
                ("coarsened", format!("{copies} copies of {slots} bins in each workgroup avoid collisions"))
            }
        })?;
        let way = CountWay::of(variant.name, slots, most, dtype, profile)?;
        let mut program = Program::new("histogram", decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("input", dtype, n, Access::Read));
        if desc.counted {
            index_u32("histogram", "n", n)?;
            program.operands.push(operand("length", DType::U32, 1, Access::Read));
        }
        let words = if desc.wide { 2 * desc.bins } else { desc.bins };
        let access = if desc.accumulate { Access::ReadWrite } else { Access::Write };
        program.operands.push(operand("counts", DType::U32, words, access));
        profile.check_buffers("histogram", &program.operands[..1], "add up the histograms of chunks")?;
        let bytes = program.operands[0].bytes();
        program.cost = Cost { flop: n as f64, bytes: bytes as f64 + 4.0 * words as f64 };
        let rule = Rule::of(desc, dtype);
        let bins = desc.bins as u64;
        let Histogram { counted, wide, accumulate, .. } = *desc;
        let moved = None;
        Ok(Self {
            way,
            dtype,
            buckets: 0,
            moved,
            bytes,
            bins,
            rule,
            function: desc.function.clone(),
            counted,
            wide,
            narrow: None,
            accumulate,
            policy,
            profile,
            program,
        })
    }

    pub(super) fn run(mut self) -> Result<Program> {
        self.narrow = self.wide.then(|| self.program.scratch(4 * self.bins));
        let counts = self.narrow.unwrap_or(self.counts());
        if self.wide || !self.accumulate {
            let base = BinsParams { bins: self.bins as u32, ..Zeroable::zeroed() };
            self.clear(&base, counts, self.bins);
        }
        if let Some(rule) = self.rule.take().filter(|_| self.bytes > 0) {
            self.count(&rule, counts)?;
        }
        if self.wide {
            let spec = Spec::new().flag("ACCUMULATED", self.accumulate);
            let kernel = self.program.kernel(Kernel::of_file("primitives/histogram_wide", spec));
            let bindings = vec![counts, self.counts()];
            let grid = Grid::fold(self.bins.div_ceil(WORKGROUP_SIZE));
            self.program.dispatch(kernel, &WideParams { bins: self.bins as u32 }, bindings, grid);
        }
        Ok(self.program)
    }

    fn count(&mut self, rule: &Rule, counts: Binding) -> Result<()> {
        let edges = rule.edges(&mut self.program);
        let base = BinsParams::new(rule, self.bins as u32, 0, 0);
        let (mut spec, loops) = (rule.spec(self.dtype), rule.rounds());
        if let Some(function) = &self.function {
            spec = function.specialise(spec.flag("MAPPED", true));
        }
        for part in self.parts() {
            let base = BinsParams { before: (part.offset / self.dtype.size() as u64) as u32, ..base };
            let bindings = [counts, part].into_iter().chain(edges).collect();
            match self.way {
                CountWay::Global { contiguous } => {
                    let spec = spec.clone().flag("CONTIGUOUS", contiguous);
                    self.global(&base, spec, loops, part, bindings);
                }
                CountWay::Packed => self.packed(&base, &spec, loops, part, bindings),
                CountWay::Partitioned => self.partitioned(&base, &spec, loops, part, bindings)?,
                CountWay::Private { .. } | CountWay::Cached => self.walk(&base, &spec, loops, part, bindings),
            }
        }
        Ok(())
    }

    fn counts(&self) -> Binding {
        Binding::operand(self.program.operands.len() - 1, &self.program.operands)
    }

    /// Binds the operand `length`, if there is one, behind these bindings.
    fn limit(&self, spec: Spec, bindings: &mut Vec<Binding>) -> Spec {
        bindings.extend(self.counted.then(|| Binding::operand(1, &self.program.operands)));
        limited(spec, self.counted, bindings.len() as u32)
    }

    fn clear(&mut self, base: &BinsParams, counters: Binding, count: u64) {
        let spec = Spec::new().flag("SHIFT", true);
        let kernel = Kernel::library("primitives/histogram_global", "histogram_global_clear", spec);
        let kernel = self.program.kernel(kernel);
        let params = BinsParams { bins: count as u32, ..*base };
        self.program.dispatch(kernel, &params, vec![counters], Grid::fold(count.div_ceil(WORKGROUP_SIZE)));
    }

    /// Splits the input into chunks that each fit one binding.
    fn parts(&self) -> Vec<Binding> {
        let size = self.dtype.size() as u64;
        let mut most = self.profile.limits.max_storage_binding;
        if self.way == CountWay::Partitioned {
            // The moved elements take less than three bytes each.
            most = most / 3 * size.min(3);
        }
        let most = most.min(MAX_IN_CHUNK * size) / CUT * CUT;
        let count = self.bytes.div_ceil(most);
        let step = self.bytes.div_ceil(count).next_multiple_of(CUT);
        BoundChunk::full(self.bytes, step).map(|part| part.of(Resource::Operand(0), 1)).collect()
    }

    /// Counts by atomics in device memory.
    fn global(&mut self, base: &BinsParams, spec: Spec, loops: u64, part: Binding, mut bindings: Vec<Binding>) {
        let spec = self.limit(spec, &mut bindings);
        let kernel = Kernel::library("primitives/histogram_global", "histogram_global_count", spec);
        let kernel = self.program.kernel(kernel);
        let n = part.size / self.dtype.size() as u64;
        let least = (n * loops).div_ceil(WORKGROUP_SIZE * MAX_ITERATIONS);
        let parts = n.div_ceil(WORKGROUP_SIZE).min(self.policy.workgroups).max(least);
        let params = BinsParams { n: n as u32, parts: parts as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts));
    }

    /// Returns the least number of workgroups for `vectors`, such that no thread exceeds the maximum of loop rounds.
    fn least_parts(&self, vectors: u64, loops: u64, size: u64) -> u64 {
        // One round for each element of 16 bytes, and one for the loop over vec4.
        let per_vector = 16 / self.dtype.size() as u64;
        (vectors * (per_vector * loops + 5)).div_ceil(size * MAX_ITERATIONS)
    }

    /// Counts with two counters in each word of workgroup memory.
    fn packed(&mut self, base: &BinsParams, spec: &Spec, loops: u64, part: Binding, mut bindings: Vec<Binding>) {
        let policy = &self.policy;
        let size = u64::from(policy.packed_size);
        let most = u64::from(policy.packed_words);
        let passes = self.bins.div_ceil(2 * most);
        // The same number in each pass, rounded so that many bin counts share a kernel.
        let words = self.bins.div_ceil(2 * passes).next_multiple_of(1024).min(most);
        let passes = self.bins.div_ceil(2 * words);
        let n = part.size / self.dtype.size() as u64;
        let vectors = part.size / 16;
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
        if vectors > 0 {
            bindings.push(Binding { size: vectors * 16, ..part });
        }
        let spec = self.limit(spec, &mut bindings);
        let kernel = self.program.kernel(Kernel::of_file("primitives/histogram_packed", spec));
        let params = BinsParams { n: n as u32, parts: parts as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts * passes));
    }

    /// Moves elements into buckets of bins, whose counters fit workgroup memory, and counts each bucket.
    fn partitioned(
        &mut self, base: &BinsParams, spec: &Spec, loops: u64, part: Binding, mut bindings: Vec<Binding>,
    ) -> Result<()> {
        let policy = &self.policy;
        let memory = self.profile.limits.max_workgroup_bytes;
        // Leave room for one entry for each bucket.
        let counters = u64::from(memory / 4).saturating_sub(256).max(256).min(policy.bucket_words) / 4 * 4;
        let slots = 2 * counters;
        let buckets = self.bins.div_ceil(slots);
        if buckets > u64::from(policy.packed_size) {
            return Err(err!(
                Unsupported,
                "histogram: {} bins are {buckets} buckets of {slots}, and a workgroup of `partitioned` has {} threads on {}; \
                 use `cached`",
                self.bins,
                policy.packed_size,
                self.profile.name
            ));
        }
        let n = part.size / self.dtype.size() as u64;
        let vectors = part.size / 16;
        // Workgroup memory holds one word for each element of a tile: 16 a thread.
        let size = if memory >= 40 << 10 { 512 } else { 128 };
        let size = policy.packed_size.min(size);
        let size = size.max((buckets as u32).next_multiple_of(32));
        let tile = u64::from(size) * 16;
        let tiles = (vectors * 16 / self.dtype.size() as u64).div_ceil(tile).max(1);
        let room = (n + buckets * (tiles + 8)).div_ceil(8) * 4;

        // The first chunk is the largest.
        let room_words = 4 * room;
        let [totals, starts, ends, words] = *self.moved.get_or_insert_with(|| {
            [4 * buckets, 4 * buckets, 4 * buckets, room_words].map(|bytes| self.program.scratch(bytes))
        });
        self.buckets = buckets;
        self.clear(base, totals, buckets);

        let mut of_buckets = bindings.clone();
        of_buckets[0] = totals;
        self.walk(base, spec, loops, part, of_buckets);

        let own = Spec::new().constant("BUCKETS", buckets as u32);
        let place = Kernel::of_file("primitives/histogram_starts", own.clone());
        let place = self.program.kernel(place);
        let params = StartsParams { tiles: tiles as u32 };
        self.program.dispatch(place, &params, vec![totals, starts, ends], Grid::fold(1));

        let mut next = 1 + bindings.len() as u32;
        if vectors > 0 {
            bindings.extend([Binding { size: vectors * 16, ..part }, ends, words]);
            next += 1;
        }
        let scatter = spec
            .clone()
            .constant("BUCKETS", buckets as u32)
            .constant("WORKGROUP_SIZE", size)
            .constant("ENDS_BINDING", next)
            .flag("VECTORS", vectors > 0);
        let scatter = self.limit(scatter, &mut bindings);
        let scatter = self.program.kernel(Kernel::of_file("primitives/histogram_scatter", scatter));
        let params = BinsParams { n: n as u32, parts: tiles as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(scatter, &params, bindings, Grid::fold(tiles));

        let policy = &self.policy;
        // Words of a step of the workgroup; a chunk must be large enough to pay for clearing the counters.
        let step = u64::from(4 * policy.packed_loads * policy.packed_size);
        let chunk = n.div_ceil(2 * policy.packed_workgroups).max(slots).next_multiple_of(step);
        let count = own
            .constant("WORKGROUP_SIZE", policy.packed_size)
            .constant("WORDS", counters as u32)
            .constant("LOADS", policy.packed_loads);
        let count = Kernel::of_file("primitives/histogram_bucketed", count);
        let count = self.program.kernel(count);
        let params = ChunkParams { chunk: chunk as u32, steps: (chunk / step) as u32 };
        let bindings = vec![self.narrow.unwrap_or(self.counts()), starts, ends, words];
        self.program.dispatch(count, &params, bindings, Grid::fold(room / chunk + buckets));
        Ok(())
    }

    /// Counts in workgroup memory.
    fn walk(&mut self, base: &BinsParams, spec: &Spec, loops: u64, part: Binding, mut bindings: Vec<Binding>) {
        let policy = &self.policy;
        let (coarsened, aggregated) = match self.way {
            CountWay::Private { coarsened, aggregated } => (coarsened, aggregated),
            _ => (true, false),
        };
        let cached = self.way == CountWay::Cached;
        let by_value = self.dtype.size() == 1 && !cached && self.buckets == 0;
        let size = u64::from(policy.workgroup_size);
        let n = part.size / self.dtype.size() as u64;
        let vectors = if coarsened { part.size / 16 } else { 0 };
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
            .flag("AGGREGATED", aggregated)
            .flag("VECTORS", vectors > 0)
            .flag("WIDE", wide)
            .flag("ROLLED", self.profile.quirks.slow_compiler)
            .flag("BYTES", by_value);
        if vectors > 0 {
            bindings.push(Binding { size: vectors * 16, ..part });
        }
        let spec = self.limit(spec, &mut bindings);
        let kernel = if cached {
            let spec = spec.constant("SLOTS", policy.counters / 2);
            Kernel::of_file("primitives/histogram_cached", spec)
        } else {
            let room = (u64::from(policy.counters) / slots) as u32;
            let copies = if coarsened { 1 << room.clamp(1, policy.copies).ilog2() } else { 1 };
            // To clear and add up many copies takes longer than collisions of few elements.
            let copies = if n < parts * slots * u64::from(copies) { copies.min(FEW_COPIES) } else { copies };
            let mut spec = spec.constant("SLOTS", slots as u32).constant("COPIES", copies);
            if self.buckets > 0 {
                spec = spec.flag("BUCKETED", true).constant("BUCKETS", slots as u32);
            }
            Kernel::of_file("primitives/histogram_private", spec)
        };
        let kernel = self.program.kernel(kernel);
        let params = BinsParams { n: n as u32, parts: parts as u32, vectors: vectors as u32, ..*base };
        self.program.dispatch(kernel, &params, bindings, Grid::fold(parts));
    }
}
