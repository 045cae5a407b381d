use super::ScanForm;
use super::policy::{WALKERS, policy, state_policy, walked};
use crate::primitives::lookback::Posts;
use crate::primitives::operator::{Accumulator, Operator};
use crate::primitives::state::Monoid;
use crate::program::prelude::*;

kernel_params! {
    pub(in crate::primitives) struct ScanTilesParams {
        tiles: u32,
        first_tile: u32,
        all_tiles: u32,
        vec4s: u32,
        elements: u32,
        first_element: u32,
        row: u32,
        piece: u32,
    }
}

/// Where a scan restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::primitives) enum Segments {
    /// Nowhere.
    One,
    /// At each row of this many elements.
    Rows(usize),
    /// Where operand 1 has a flag.
    Heads,
    /// Where operand 1 has a bit set: that of element `i` is bit `i % 32` of word `i / 32`.
    Bits,
    /// Where a key of operand 0 differs from the one before.
    Keys(DType),
}

impl Segments {
    /// Returns the operand that says where segments begin.
    fn labels(self) -> Option<usize> {
        match self {
            Self::One | Self::Rows(_) => None,
            Self::Heads | Self::Bits => Some(1),
            Self::Keys(_) => Some(0),
        }
    }
}

/// Words a thread of the ladder variant `coarsened` scans.
const COARSE_WORDS: u32 = 8;
/// Threads of a workgroup of the ladder variants and of the kernel that scans totals.
const WORKGROUP_SIZE: u32 = 256;

pub(in crate::primitives) struct ScanJob<'a> {
    pub(in crate::primitives) name: &'static str,
    pub(in crate::primitives) op: &'a Operator,
    pub(in crate::primitives) dtype: DType,
    pub(in crate::primitives) segments: Segments,
    pub(in crate::primitives) len: usize,
    pub(in crate::primitives) form: &'a ScanForm,
}

/// A chunk of the array that fits one binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScanChunk {
    first: u64,
    len: u64,
    tiles: u64,
    /// Number of the chunk, and of its first tile, in the order of the scan.
    number: u64,
    first_tile: u64,
}

enum ScanWay {
    /// By tiles in registers, in one pass or three kernels.
    Tiles { one_pass: bool },
    /// By three kernels with this tree in workgroup memory, of words of each thread.
    Ladder { tree: &'static str, words: u32, subgroups: bool },
}

impl ScanWay {
    fn of(variant: &str) -> Self {
        let ladder = |tree, words, subgroups| Self::Ladder { tree, words, subgroups };
        match variant {
            "lookback" => Self::Tiles { one_pass: true },
            "hierarchical" => Self::Tiles { one_pass: false },
            "kogge-stone" => ladder("workgroup/scan_kogge_stone", 1, false),
            "brent-kung" => ladder("workgroup/scan_brent_kung", 1, false),
            "subgroup" => ladder("workgroup/scan_shuffle", 1, true),
            "coarsened" => ladder("workgroup/scan_kogge_stone_double", COARSE_WORDS, false),
            _ => ladder("workgroup/scan_kogge_stone_double", 1, false),
        }
    }
}

struct ScanLowering<'a> {
    job: &'a ScanJob<'a>,
    monoid: Monoid<'a>,
    profile: &'a DeviceProfile,
    program: Program,
}

impl ScanJob<'_> {
    pub(in crate::primitives) fn lower(
        &self, profile: &DeviceProfile, variants: &'static [Variant],
    ) -> Result<Program> {
        let Self { name, op, dtype, len, form, .. } = *self;
        let monoid = Monoid::new(op, dtype).map_err(|e| e.context(name))?;
        if matches!(dtype, DType::U8 | DType::I8 | DType::U64 | DType::Bf16)
            || op.accumulator() == Accumulator::Pair
            || monoid.has_state() && dtype == DType::F16
        {
            return Err(err!(
                Unsupported,
                "{name}: {} of {dtype}; sum, prod, min, max and custom operators scan f32, f16, i32 and u32, operators over \
                 a state f32, i32 and u32",
                op.name()
            ));
        }
        if let (true, Segments::Rows(n)) = (form.counted, self.segments) {
            return Err(err!(
                Unsupported,
                "{name}: rows of {n} elements with a length from the device; it counts the elements of one row"
            ));
        }
        let count = |numbers| elements(name, "elements", &[len, numbers]);
        let (inputs, outputs) = (count(monoid.inputs())?, count(monoid.outputs())?);
        let rounds = dtype.is_float() && op.rounds(dtype);
        let bits = Bits { rounds, deterministic: form.deterministic };
        let (variant, decision) = choose_with(name, &form.variant, variants, profile, bits, || {
            if profile.quirks.serial_workgroups {
                return ("hierarchical", "each thread of a processor walks a part, and none waits".into());
            }
            ("lookback", "reads every element once, and never waits forever for another workgroup".into())
        })?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let mut program = Program::new(name, decision);
        program.operands.push(operand("input", dtype, inputs, Access::Read));
        match self.segments {
            Segments::One | Segments::Rows(_) => {}
            Segments::Heads => program.operands.push(operand("heads", DType::U32, len, Access::Read)),
            Segments::Bits => {
                program.operands.push(operand("heads", DType::U32, len.div_ceil(32), Access::Read));
            }
            Segments::Keys(keys) => program.operands.insert(0, operand("keys", keys, len, Access::Read)),
        }
        if form.counted {
            program.operands.push(operand("length", DType::U32, 1, Access::Read));
        }
        program.operands.push(operand("output", dtype, outputs, Access::Write));
        if let Segments::Keys(_) = self.segments {
            profile.check_bindings(name, &program.operands, "split the arrays at the start of a run")?;
        } else {
            let remedy = "scan chunks, and combine each with the total before it";
            profile.check_buffers(name, &program.operands, remedy)?;
        }
        // The last tile may reach beyond the end.
        index_u32(name, "elements, and a tile,", len.saturating_add(1 << 17))?;
        program.cost = Cost::of(2.0 * len as f64, &program.operands);
        program.determinism = variant.determinism(rounds);
        let mut lowering = ScanLowering { job: self, monoid, profile, program };
        match ScanWay::of(variant.name) {
            _ if len == 0 => {}
            ScanWay::Tiles { one_pass } => lowering.tiles(one_pass)?,
            ScanWay::Ladder { tree, words, subgroups } => lowering.ladder(tree, words, subgroups)?,
        }
        Ok(lowering.program)
    }
}

impl ScanLowering<'_> {
    fn spec(&self) -> Spec {
        let ScanJob { segments, form, .. } = *self.job;
        self.monoid
            .spec()
            .flag("SEGMENTED", segments != Segments::One)
            .flag("ROWS", matches!(segments, Segments::Rows(_)))
            .flag("REVERSE", form.reverse)
            .flag("EXCLUSIVE", form.exclusive)
    }

    /// Returns true if the subgroup scan that WGSL has serves: a sum without heads.
    fn native_add(&self) -> bool {
        *self.job.op == Operator::Sum && self.job.segments == Segments::One
    }

    /// Adds the operand `length`, if the kernel reads it, to the bindings.
    fn with_length(&self, spec: Spec, reads: bool, bindings: &mut Vec<Binding>) -> Spec {
        if !reads {
            return spec;
        }
        bindings.push(Binding::operand(self.program.operands.len() - 2, &self.program.operands));
        limited(spec, true, bindings.len() as u32)
    }

    /// Splits the array into chunks of whole steps that each fit one binding, in the order of the scan.
    fn chunks(&self, tile: u64, step: u64) -> Result<Vec<ScanChunk>> {
        let (of_input, of_output) = self.element_bytes();
        let of_heads = match self.job.segments {
            Segments::One | Segments::Rows(_) | Segments::Bits => 0,
            Segments::Heads | Segments::Keys(_) => 4,
        };
        let element = of_input.max(of_output).max(of_heads);
        self.profile.check_row(
            self.job.name,
            format_args!("a tile"),
            step * element,
            "use a variant with smaller tiles",
        )?;
        let most = match self.job.segments {
            // The first key of a chunk would need the one before. All operands fit a binding.
            Segments::Keys(_) => self.job.len as u64,
            _ => self.profile.limits.max_storage_binding / (step * element) * step,
        };
        let of = |chunk: BoundChunk| {
            let BoundChunk { first, count: len } = chunk;
            ScanChunk { first, len, tiles: len.div_ceil(tile), number: 0, first_tile: 0 }
        };
        let mut chunks: Vec<_> = BoundChunk::full(self.job.len as u64, most).map(of).collect();
        if self.job.form.reverse {
            chunks.reverse();
        }
        let mut tiles = 0;
        for (number, chunk) in (0..).zip(&mut chunks) {
            chunk.number = number;
            chunk.first_tile = tiles;
            tiles += chunk.tiles;
        }
        Ok(chunks)
    }

    fn params(&self, chunk: &ScanChunk, all_tiles: u64) -> ScanTilesParams {
        ScanTilesParams {
            tiles: chunk.tiles as u32,
            first_tile: chunk.first_tile as u32,
            all_tiles: all_tiles as u32,
            vec4s: 0,
            elements: chunk.len as u32,
            first_element: chunk.first as u32,
            row: match self.job.segments {
                Segments::Rows(n) => n as u32,
                Segments::One | Segments::Heads | Segments::Bits | Segments::Keys(_) => 0,
            },
            piece: chunk.number as u32,
        }
    }

    fn element_bytes(&self) -> (u64, u64) {
        let size = self.job.dtype.size();
        ((size * self.monoid.inputs()) as u64, (size * self.monoid.outputs()) as u64)
    }

    fn scratch(&mut self, bytes: u64) -> Result<Binding> {
        let variant = self.program.variant();
        let what = format_args!("the totals of `{variant}`");
        self.profile.check_scratch(self.job.name, what, bytes, "use `lookback`")?;
        Ok(self.program.scratch(bytes))
    }

    fn total_bytes(&self) -> u64 {
        if self.job.segments == Segments::One { self.monoid.bytes() } else { self.monoid.item_bytes() }
    }

    /// Replaces the total of each tile by the total of all tiles before it.
    fn scan_totals(&mut self, totals: Binding, all_tiles: u64) {
        let spec = self.spec();
        // The kernel sees totals in the order of the scan: no direction, no heads of its own.
        let spec = spec.flag("REVERSE", false).flag("EXCLUSIVE", false).flag("ROWS", false);
        let spec = if self.profile.quirks.serial_workgroups {
            spec.constant("WORKGROUP_SIZE", WALKERS).constant("ITEMS_PER_THREAD", 64)
        } else {
            spec
        };
        let kernel = self.program.kernel(Kernel::library("primitives/scan_totals", "scan_totals", spec));
        let all = ScanChunk { first: 0, len: 0, tiles: all_tiles, number: 0, first_tile: 0 };
        let params = ScanTilesParams { row: 0, ..self.params(&all, all_tiles) };
        self.program.dispatch(kernel, &params, vec![totals], Grid::fold(1));
    }

    fn ladder(&mut self, tree: &'static str, words: u32, subgroups: bool) -> Result<()> {
        let state = self.monoid.has_state();
        // Staged states, and their items once: 8 KiB each at most.
        let (tree, words) = if state && words > 1 {
            ("workgroup/scan_kogge_stone", words * 4 / self.monoid.bytes() as u32)
        } else {
            (tree, words)
        };
        let mut spec = self
            .spec()
            .slot("tree", Fragment::Library(tree))
            .constant("WORDS_PER_THREAD", words)
            .flag("STAGED", words > 1)
            .flag("SUBGROUPS", subgroups);
        if subgroups {
            spec = spec.flag("NATIVE_ADD", self.native_add());
        }
        let (of_input, of_output) = self.element_bytes();
        let per_word = if state { 1 } else { 4 / of_input };
        let tile = u64::from(WORKGROUP_SIZE * words) * per_word;
        let chunks = self.chunks(tile, tile)?;
        let all_tiles = chunks.iter().map(|p| p.tiles).sum();
        let carried = all_tiles > 1;
        // On the way forward what lies behind the length comes last, and harms nobody.
        let reads_length = self.job.form.counted && self.job.form.reverse;
        let totals = if carried { Some(self.scratch(all_tiles * self.total_bytes())?) } else { None };
        let output = self.program.operands.len() - 1;
        let bind = |operand, chunk: &ScanChunk| {
            let size = if operand == 0 { of_input } else { of_output };
            let (offset, size) = (chunk.first * size, chunk.len * size);
            Binding { resource: Resource::Operand(operand), offset, size }
        };
        if let Some(totals) = totals {
            self.each_chunk(
                ("primitives/scan_ladder", "scan_ladder_reduce"),
                (spec.clone().flag("REDUCE", true), reads_length),
                chunks.iter().map(|chunk| (*chunk, 0, vec![bind(0, chunk), totals])),
                (all_tiles, 1),
            );
            self.scan_totals(totals, all_tiles);
        }
        let spec = spec.flag("CARRIED", carried);
        self.each_chunk(
            ("primitives/scan_ladder", "scan_ladder"),
            (spec, reads_length),
            chunks.iter().map(|chunk| {
                let bindings = [bind(0, chunk), bind(output, chunk)];
                (*chunk, 0, bindings.into_iter().chain(totals).collect())
            }),
            (all_tiles, 1),
        );
        Ok(())
    }

    /// Dispatches a kernel over all chunks, each with its number of vec4 and its bindings, and the length behind them.
    /// A workgroup takes `each` tiles.
    fn each_chunk(
        &mut self, (file, entry): (&'static str, &'static str), (spec, reads_length): (Spec, bool),
        chunks: impl Iterator<Item = (ScanChunk, u32, Vec<Binding>)>, (all_tiles, each): (u64, u64),
    ) {
        let mut kernel = None;
        for (chunk, vec4s, mut bindings) in chunks {
            let spec = self.with_length(spec.clone(), reads_length, &mut bindings);
            let program = &mut self.program;
            let kernel = *kernel.get_or_insert_with(|| program.kernel(Kernel::library(file, entry, spec)));
            let params = ScanTilesParams { vec4s, ..self.params(&chunk, all_tiles) };
            self.program.dispatch(kernel, &params, bindings, Grid::fold(chunk.tiles.div_ceil(each)));
        }
    }

    fn tiles(&mut self, one_pass: bool) -> Result<()> {
        let counted = self.job.form.counted;
        let len = self.job.len as u64;
        let segments = self.job.segments != Segments::One;
        let (unit, policy) = if self.monoid.has_state() {
            let widest = self.monoid.inputs().max(self.monoid.outputs()) as u64;
            ([4, 2, 1, 1][widest as usize - 1], state_policy(self.profile, len * widest, one_pass, segments))
        } else {
            let pack = 4 / self.job.dtype.size() as u64;
            (4 * pack, policy(self.profile, len / pack))
        };
        let walked = walked(self.profile, len.div_ceil(unit)).filter(|_| !one_pass);
        let (workgroup_size, vec4s, each) = match walked {
            Some(vec4s) => (WALKERS, vec4s, u64::from(WALKERS)),
            None => (policy.workgroup_size, policy.vec4s, 1),
        };
        let subgroups = self.profile.features.subgroups && walked.is_none();
        let mut spec = self
            .spec()
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("VEC4S", vec4s)
            .flag("HEADS", self.job.segments.labels().is_some())
            .flag("SUBGROUPS", subgroups);
        if walked.is_some() {
            spec = spec.flag("RUNS", true);
        }
        if let Segments::Keys(keys) = self.job.segments {
            spec = if self.monoid.has_state() {
                spec.flag("KEYS", true)
            } else {
                spec.slot("heads", Fragment::Library("primitives/scan_by_key"))
            };
            spec = spec.flag("FLOAT_KEYS", keys.is_float());
        }
        if self.job.segments == Segments::Bits {
            spec = if self.monoid.has_state() {
                spec.flag("BITS", true)
            } else {
                spec.slot("heads", Fragment::Library("primitives/scan_offsets"))
            };
        }
        if self.monoid.has_state() {
            spec = self.with_units(spec, unit);
        }
        if subgroups {
            spec = spec.flag("NATIVE_ADD", self.native_add());
        }
        let tile = u64::from(workgroup_size * vec4s) / each * unit;
        // Chunks begin at multiples of 256 bytes.
        let chunks = self.chunks(tile, tile.max(64 * unit))?;
        let all_tiles: u64 = chunks.iter().map(|p| p.tiles).sum();
        let several = all_tiles > 1;
        let grids: Vec<_> = chunks.iter().map(|p| self.bind_as_vec4(p, unit)).collect();
        let binding = 5 + grids.first().map_or(0, |(_, bound)| bound.heads.len() as u32);
        let mut scratch = None;
        if one_pass && several {
            let (words, chunks) = (self.monoid.words(), chunks.len() as u64);
            let all = Posts { tiles: all_tiles, words, counted: false, chunks };
            let posts = self.scratch(4 * all.scratch_words())?;
            all.clear(&mut self.program, posts);
            scratch = Some(posts);
            spec = all.spec(spec.flag("LOOKBACK", true), self.profile, binding, self.job.form.leave_out);
        } else if several {
            let totals = self.scratch(all_tiles * self.total_bytes())?;
            let reduce = spec.clone().flag("REDUCE", true);
            let bindings = chunks.iter().zip(&grids).map(|(chunk, (vec4s, bound))| {
                let inputs = bound.input.into_iter().chain([totals]).chain(bound.heads.iter().copied());
                (*chunk, *vec4s, inputs.collect())
            });
            self.each_chunk(
                ("primitives/scan_tiles", "scan_tiles_reduce"),
                (reduce, counted),
                bindings,
                (all_tiles, each),
            );
            self.scan_totals(totals, all_tiles);
            spec = spec.flag("CARRIED", true).constant("CARRY_BINDING", binding);
            scratch = Some(totals);
        }
        let bindings = chunks.iter().zip(&grids).map(|(chunk, (vec4s, bound))| {
            let inputs_and_outputs = bound.input.into_iter().chain(bound.output);
            let bindings = inputs_and_outputs.chain(bound.heads.iter().copied()).chain(scratch);
            (*chunk, *vec4s, bindings.collect())
        });
        let kernel = ("primitives/scan_tiles", "scan_tiles");
        self.each_chunk(kernel, (spec, counted), bindings, (all_tiles, each));
        Ok(())
    }

    /// Selects the kernel for units of `unit` elements.
    fn with_units(&self, spec: Spec, unit: u64) -> Spec {
        let of =
            |numbers: usize| ["array<u32, 1>", "vec2<u32>", "array<u32, 3>", "vec4<u32>"][numbers * unit as usize - 1];
        spec.slot("unit", Fragment::Library("primitives/scan_states"))
            .constant("UNIT", unit as u32)
            .alias("In", of(self.monoid.inputs()))
            .alias("Out", of(self.monoid.outputs()))
    }

    /// Binds the chunk as vec4 (of states as units) and, from the last multiple of 256 bytes on, as words: no two
    /// written bindings overlap, and the array may have any length. Also returns the number of vec4.
    fn bind_as_vec4(&mut self, chunk: &ScanChunk, unit: u64) -> (u32, ScanBindings) {
        let (of_input, of_output) = self.element_bytes();
        // A vec4 of words has 16 bytes of input; so has a unit of states, or less, and 64 of them have 256 at least.
        let many = if self.monoid.has_state() { 64 } else { 16 };
        let vec4s = (chunk.len.div_ceil(unit) - 1) / many * many;
        let output = self.program.operands.len() - 1;
        let mut pair = |operand, size: u64| {
            let (resource, begin) = (Resource::Operand(operand), chunk.first * size);
            let (main, bytes) = (vec4s * unit * size, (chunk.len * size).next_multiple_of(4));
            let vec4s = if main > 0 {
                Binding { resource, offset: begin, size: main }
            } else {
                // Never accessed, but it must be bound.
                self.program.scratch(16)
            };
            [vec4s, Binding { resource, offset: begin + main, size: bytes - main }]
        };
        let labels = self.job.segments.labels();
        let input = pair(usize::from(labels == Some(0)), of_input);
        let output = pair(output, of_output);
        let heads = match labels {
            None => Vec::new(),
            Some(labels) if self.job.segments == Segments::Bits => {
                vec![Binding::operand(labels, &self.program.operands)]
            }
            Some(labels) if self.monoid.has_state() => {
                let (offset, size) = (chunk.first * 4, chunk.len * 4);
                vec![Binding { resource: Resource::Operand(labels), offset, size }]
            }
            Some(labels) => pair(labels, 4).to_vec(),
        };
        (vec4s as u32, ScanBindings { input, output, heads })
    }
}

/// Bindings of a chunk: as vec4, and the words that are left.
struct ScanBindings {
    input: [Binding; 2],
    output: [Binding; 2],
    heads: Vec<Binding>,
}
