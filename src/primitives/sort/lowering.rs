use super::policy::{RADIX, SortPolicy, check_sweep, check_tile, policy, sweep_rows, sweep_tiles};
use super::{RadixSort, SortForm, bits_spec, check_bits, key_spec};
use crate::primitives::Gather;
use crate::program::prelude::*;
use std::ops::Range;

/// Words before the counts in the globals of `onesweep`.
const HEAD: u64 = 64;
/// Maximum of keys or words that a thread takes: each takes several loop rounds, and every driver must run them all.
const MAX_STEPS: u64 = 2048;
const _: () = assert!(runs_everywhere(24 * MAX_STEPS as usize));
/// Maximum of keys of a thread that has a block of its own, beside its counters.
const MAX_RUN: u64 = 1 << 15;
const _: () = assert!(runs_everywhere((MAX_RUN + 2 * RADIX) as usize));

kernel_params! {
    struct BlockParams {
        n: u32, first: u32, block_len: u32, blocks: u32, first_block: u32, all_blocks: u32, shift: u32,
        mask: u32, window: u32, window_len: u32, items: u32,
    }
}
kernel_params! { struct SortScanParams { first: u32, len: u32, rows: u32 } }
kernel_params! {
    struct HistogramParams { n: u32, workgroups: u32, words: u32, begin_bit: u32, end_bit: u32, digit_bits: u32 }
}
kernel_params! { struct SweepParams { pass_index: u32, shift: u32, mask: u32, items: u32 } }

/// A variant, its name resolved.
#[derive(Debug, Clone, Copy)]
enum SortWay {
    Counting,
    Onesweep,
}

#[derive(Debug, Clone, Copy)]
struct SortItems {
    keys: Resource,
    values: Option<Resource>,
}

#[derive(Debug, Clone, Copy)]
struct Digit {
    shift: u32,
    mask: u32,
}

pub(super) struct SortLowering<'a> {
    n: u64,
    key_size: u64,
    form: SortForm,
    bits: Range<u32>,
    digit_bits: u32,
    passes: u32,
    /// How keys become numbers, and in the first pass.
    spec: Spec,
    way: SortWay,
    profile: &'a DeviceProfile,
    policy: SortPolicy,
    leave_out: u32,
    first: Spec,
    program: Program,
}

/// Rejects values of several words where they cannot be gathered.
fn check_wide(op: &str, form: SortForm) -> Result<()> {
    let words = form.width;
    if words == 0 {
        return Err(err!(InvalidArgument, "{op}: values of 0 words; sort keys alone"));
    }
    if !form.in_place {
        return Ok(());
    }
    Err(err!(Unsupported, "{op}: values of {words} words in place; sort the positions as values, then gather"))
}

impl<'a> SortLowering<'a> {
    pub(super) fn new(desc: &RadixSort, form: SortForm, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        let spec = match desc.keys_as {
            None => key_spec(dtype, desc.descending)?,
            Some(bits) => bits_spec(dtype, bits, desc.descending)?,
        };
        let mut first = spec.clone();
        if let Some(function) = &desc.function {
            function.check_fused(form.op(), dtype)?;
            first = function.specialise(first.flag("MAPPED", true).slot("element", element_fragment(dtype)));
        }
        let key_size = dtype.size() as u64;
        let width = 8 * key_size as u32;
        let bits = desc.bits.clone().unwrap_or(0..width);
        let op = form.op();
        check_bits(op, dtype, &bits)?;
        let values = elements(op, "values", &[desc.n, if form.values { form.width } else { 1 }])?;
        if form.values && form.width != 1 {
            check_wide(op, form)?;
        }
        let mut policy = policy(profile, key_size, desc.n as u64);
        if let Some(tile) = desc.tile {
            check_tile(tile, profile)?;
            (policy.block_tile, policy.sweep_tile, policy.runs) = (tile, tile, false);
        }
        let sweeps = check_sweep(desc, dtype, &policy, profile);
        let (variant, decision) = choose(op, &desc.variant, RadixSort::variants(), profile, || match &sweeps {
            Ok(()) if profile.quirks.serial_workgroups => ("counting", "faster on software drivers".into()),
            Ok(()) if profile.quirks.waiting_starves => {
                ("counting", "nobody has measured how workgroups wait here".into())
            }
            Ok(()) => ("onesweep", "reads and writes once a pass".into()),
            Err(_) if !profile.features.subgroups => ("counting", "the device has no subgroup operations".into()),
            Err(_) => ("counting", "`onesweep` needs all keys in one binding and a tile that fits this device".into()),
        })?;
        let way = match variant.name {
            "onesweep" => sweeps.map(|()| SortWay::Onesweep)?,
            _ => SortWay::Counting,
        };
        let mut program = Program::new(op, decision);
        let operand = |name, dtype, access| Operand { name, dtype, len: desc.n, access };
        let input = if form.in_place { Access::ReadWrite } else { Access::Read };
        program.operands.push(operand("keys", dtype, input));
        let of_values = |name, access| Operand { len: values, ..operand(name, DType::U32, access) };
        if form.values && !form.positions {
            program.operands.push(of_values("values", input));
        }
        if form.counted {
            program.operands.push(Operand { len: 1, ..operand("length", DType::U32, Access::Read) });
        }
        if form.positions {
            program.operands.push(operand("indices", DType::U32, Access::Write));
        } else if !form.in_place {
            program.operands.push(operand("keys_out", dtype, Access::Write));
            if form.values {
                program.operands.push(of_values("values_out", Access::Write));
            }
        }
        profile.check_buffers(op, &program.operands, "sort chunks and merge them")?;
        // In place, the number of passes is even, so keys end where they began.
        let fewest = (bits.end - bits.start).div_ceil(8).max(1);
        let passes = if form.in_place { fewest.next_multiple_of(2) } else { fewest };
        let digit_bits = (bits.end - bits.start).div_ceil(passes);
        program.cost = Cost {
            flop: desc.n as f64 * f64::from(passes),
            bytes: program.operands.iter().map(|o| o.bytes() as f64).sum::<f64>()
                * if form.in_place { 2.0 } else { 1.0 },
        };
        if let Some(keys) = &desc.keys {
            first = keys.specialise(first.flag("MAPPED", true));
        }
        Ok(Self {
            n: desc.n as u64,
            key_size,
            form,
            bits,
            digit_bits,
            passes,
            spec,
            way,
            profile,
            policy,
            leave_out: desc.leave_out,
            first,
            program,
        })
    }

    pub(super) fn run(mut self) -> Result<Program> {
        if self.n == 0 {
            return Ok(self.program);
        }
        let wide = self.form.values && self.form.width > 1;
        let mut input = self.operands("keys", "values");
        let mut output = if self.form.positions {
            let keys = self.program.scratch(self.n * self.key_size).resource;
            SortItems { keys, ..self.operands("keys", "indices") }
        } else if self.form.in_place {
            input
        } else {
            self.operands("keys_out", "values_out")
        };
        if wide {
            // The first pass makes the positions as it goes.
            (input.values, output.values) = (None, Some(self.program.scratch(self.n * 4).resource));
        }
        // Passes alternate between the output and scratch, and end in the output.
        let spare = if self.passes > 1 { Some(self.spare()) } else { None };
        let targets = (0..self.passes).map(|pass| {
            let rest = self.passes - 1 - pass;
            if rest.is_multiple_of(2) { output } else { spare.unwrap_or(output) }
        });
        let targets: Vec<SortItems> = targets.collect();
        let sources = std::iter::once(input).chain(targets.iter().copied());
        let moves: Vec<(SortItems, SortItems)> = sources.zip(targets.iter().copied()).collect();
        match self.way {
            SortWay::Onesweep => self.onesweep(&moves),
            SortWay::Counting => self.counting(&moves)?,
        }
        if let (true, Some(positions)) = (wide, output.values) {
            let (rows, width) = (self.n as usize, self.form.width);
            let gather = Gather::new([rows, width], rows).when(self.form.counted, Gather::counted);
            let gather = gather.lower_as(DType::U32, self.profile)?;
            let of = self.operands("values", "values_out");
            let length = self.length_binding().map(|length| length.resource);
            let operands: Vec<_> = [of.keys, positions].into_iter().chain(length).chain(of.values).collect();
            self.program.append(gather, &operands);
        }
        Ok(self.program)
    }

    fn operands(&self, keys: &str, values: &str) -> SortItems {
        let find = |name| self.program.operands.iter().position(|o| o.name == name).map(Resource::Operand);
        SortItems { keys: find(keys).unwrap_or(Resource::Operand(0)), values: find(values) }
    }

    /// Allocates scratch for all keys and values.
    fn spare(&mut self) -> SortItems {
        let keys = self.program.scratch(self.n * self.key_size).resource;
        let values = self.form.values.then(|| self.program.scratch(self.n * 4).resource);
        SortItems { keys, values }
    }

    fn digit(&self, pass: u32) -> Digit {
        let shift = (self.bits.start + pass * self.digit_bits).min(self.bits.end);
        Digit { shift, mask: (1 << self.digit_bits.min(self.bits.end - shift)) - 1 }
    }

    fn key_binding(&self, items: SortItems, part: BoundChunk) -> Binding {
        part.of(items.keys, self.key_size)
    }

    fn value_binding(&self, items: SortItems, part: BoundChunk) -> Option<Binding> {
        items.values.map(|resource| part.of(resource, 4))
    }

    fn length_binding(&self) -> Option<Binding> {
        let index = self.program.operands.iter().position(|o| o.name == "length")?;
        Some(Binding::operand(index, &self.program.operands))
    }

    fn scan_kernel(&mut self, by_thread: bool) -> usize {
        let spec = Spec::new().constant("WORKGROUP_SIZE", self.policy.walkers);
        let spec = if by_thread { spec.flag("RUNS", true) } else { spec };
        self.program.kernel(Kernel::library("primitives/sort_scan", "sort_scan", spec))
    }

    /// Adds the kernel that moves a tile of keys, with the steps of a thread unrolled or in loops. Its values are those
    /// at hand, or the positions of the keys.
    fn tile_kernel(
        &mut self, file: &'static str, entry: &'static str, (workgroup_size, items): (u32, u32), spec: Spec,
        positions: bool,
    ) -> usize {
        let steps = if self.policy.written_out { "primitives/sort_steps" } else { "primitives/sort_steps_loop" };
        let spec = spec
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("ITEMS_PER_THREAD", items)
            .flag("VALUES", self.form.values)
            .flag("POSITIONS", positions)
            .slot("steps", Fragment::Library(steps));
        self.program.kernel(Kernel::library(file, entry, spec))
    }

    /// Counts, scans and scatters in each pass.
    fn counting(&mut self, moves: &[(SortItems, SortItems)]) -> Result<()> {
        let tile = self.policy.block_tile;
        let runs = self.policy.runs;
        let (longest, tile_len) = match runs {
            true => (MAX_RUN, 1),
            false => (MAX_STEPS * u64::from(tile.0), u64::from(tile.0) * u64::from(tile.1)),
        };
        // Chunks begin at multiples of 256 bytes, of keys and of values.
        let most = self.profile.limits.max_storage_binding / self.key_size / 64 * 64;
        let parts: Vec<_> = BoundChunk::full(self.n, most).collect();
        let block_len = round_up(self.n.div_ceil(self.policy.blocks).min(longest), tile_len);
        let blocks = |part: &BoundChunk| part.count.div_ceil(block_len);
        let grid =
            |part: &BoundChunk| Grid::fold(if runs { blocks(part).div_ceil(tile.0.into()) } else { blocks(part) });
        let all_blocks: u64 = parts.iter().map(blocks).sum();
        let counts = self.program.scratch(4 * RADIX * all_blocks);
        let totals = self.program.scratch(4 * RADIX);
        let what = format_args!("the counts of {} keys", self.n);
        self.profile.check_scratch(self.form.op(), what, counts.size, "sort chunks and merge them")?;
        let rows_of_threads = runs && all_blocks <= MAX_RUN;
        let scanners = if rows_of_threads { RADIX / u64::from(self.policy.walkers) } else { RADIX };
        let scan = self.scan_kernel(rows_of_threads);
        let counted = self.length_binding();
        for (pass, &(from, to)) in (0..).zip(moves) {
            let Digit { shift, mask } = self.digit(pass);
            let spec = if pass == 0 { &self.first } else { &self.spec };
            let spec = spec.clone().flag("COUNTED", self.form.counted).flag("RUNS", runs);
            let count = spec.clone().constant("WORKGROUP_SIZE", tile.0);
            let count = self.program.kernel(Kernel::library("primitives/sort_count", "sort_count", count));
            let positions = self.form.values && from.values.is_none();
            let (file, entry) = ("primitives/sort_scatter", "sort_scatter");
            let scatter = if runs {
                let spec = spec.constant("WORKGROUP_SIZE", tile.0).flag("VALUES", self.form.values);
                self.program.kernel(Kernel::library(file, entry, spec.flag("POSITIONS", positions)))
            } else {
                self.tile_kernel(file, entry, tile, spec.constant("ROW", tile.0.min(32)), positions)
            };
            let params = |part: &BoundChunk, first_block: u64, window: &BoundChunk| BlockParams {
                n: part.count as u32,
                first: part.first as u32,
                block_len: block_len as u32,
                blocks: blocks(part) as u32,
                first_block: first_block as u32,
                all_blocks: all_blocks as u32,
                shift,
                mask,
                window: window.first as u32,
                window_len: window.count as u32,
                items: tile.1,
            };
            let mut first_block = 0;
            for part in &parts {
                let bindings = [self.key_binding(from, *part), counts].into_iter().chain(counted).collect();
                self.program.dispatch(count, &params(part, first_block, part), bindings, grid(part));
                first_block += blocks(part);
            }
            let rows = SortScanParams { first: 0, len: all_blocks as u32, rows: RADIX as u32 };
            self.program.dispatch(scan, &rows, vec![counts, totals], Grid::fold(scanners));
            let mut first_block = 0;
            for part in &parts {
                for window in &parts {
                    let keys = [self.key_binding(from, *part), self.key_binding(to, *window)];
                    let values = [self.value_binding(from, *part), self.value_binding(to, *window)];
                    let bindings = keys.into_iter().chain([counts, totals]);
                    let bindings = bindings.chain(values.into_iter().flatten()).chain(counted).collect();
                    let params = params(part, first_block, window);
                    self.program.dispatch(scatter, &params, bindings, grid(part));
                }
                first_block += blocks(part);
            }
        }
        Ok(())
    }

    /// Counts the digits of all passes at once, then runs one kernel a pass.
    fn onesweep(&mut self, moves: &[(SortItems, SortItems)]) {
        let tile = self.policy.sweep_tile;
        let tiles = sweep_tiles(self.n, tile);
        let words = tiles * RADIX;
        let globals = self.program.scratch(4 * (HEAD + u64::from(self.passes) * RADIX));
        let posts = [0, 1].map(|_| self.program.scratch(4 * words));
        let totals = self.program.scratch(4 * u64::from(self.passes));
        let all = BoundChunk { first: 0, count: self.n };
        let (passes, walkers) = (self.passes, self.policy.walkers);
        let walker = |program: &mut Program, entry, spec: Spec| {
            let spec = spec.constant("PASSES", passes).constant("WORKGROUP_SIZE", walkers);
            program.kernel(Kernel::library("primitives/sort_histogram", entry, spec))
        };
        let clear_spec = Spec::new().flag("CLEAR", true).flag("COUNTED", self.form.counted);
        let clear = walker(&mut self.program, "sort_histogram_clear", clear_spec);
        let count = walker(&mut self.program, "sort_histogram_count", self.first.clone());
        let scan = self.scan_kernel(false);
        let (rows, large) = (sweep_rows(self.profile, tile.0), self.profile.subgroup_sizes.1 > 32);
        let leave_out = self.leave_out;
        let sweep_spec = |spec: &Spec| {
            let spec = spec.clone().constant("ROWS", rows).flag("LARGE_SUBGROUPS", large);
            let spec = spec.slot("ranks", Fragment::Library("primitives/sort_ballots"));
            if leave_out > 0 { spec.flag("LEAVE_OUT", true).constant("ONE_IN", leave_out) } else { spec }
        };
        let params = |workgroups: u64| HistogramParams {
            n: self.n as u32,
            workgroups: workgroups as u32,
            words: words as u32,
            begin_bit: self.bits.start,
            end_bit: self.bits.end,
            digit_bits: self.digit_bits,
        };
        let share = |items: u64| {
            let (walkers, most) = (u64::from(walkers), self.policy.counters);
            items.div_ceil(8 * walkers).min(most).max(items.div_ceil(MAX_STEPS * walkers))
        };
        let (clearers, counters) = (share(words), share(self.n));
        let bindings = [globals, posts[0]].into_iter().chain(self.length_binding()).collect();
        self.program.dispatch(clear, &params(clearers), bindings, Grid::fold(clearers));
        let bindings = vec![globals, self.key_binding(moves[0].0, all)];
        self.program.dispatch(count, &params(counters), bindings, Grid::fold(counters));
        let rows = SortScanParams { first: HEAD as u32, len: RADIX as u32, rows: self.passes };
        self.program.dispatch(scan, &rows, vec![globals, totals], Grid::fold(u64::from(passes)));
        // Tickets number the tiles, so the grid may have any shape with enough workgroups.
        let lines = tiles.div_ceil(u64::from(self.profile.limits.max_workgroups_per_dimension).min(65535));
        let grid = Grid::Direct([tiles.div_ceil(lines) as u32, lines as u32, 1]);
        let mut sweeps = Vec::new();
        let covered = Covered::new(0, self.n as u32, tile.0 * tile.1);
        for (pass, &(from, to)) in (0..).zip(moves) {
            let Digit { shift, mask } = self.digit(pass);
            let positions = self.form.values && from.values.is_none();
            let file = "primitives/sort_onesweep";
            let spec = sweep_spec(if pass == 0 { &self.first } else { &self.spec });
            let sweep = self.tile_kernel(file, "sort_onesweep", tile, spec, positions);
            let [mine, next] = if pass % 2 == 0 { posts } else { [posts[1], posts[0]] };
            let keys = [self.key_binding(from, all), self.key_binding(to, all)];
            let values = [self.value_binding(from, all), self.value_binding(to, all)];
            let bindings = keys.into_iter().chain([globals, mine, next]).chain(values.into_iter().flatten());
            let params = SweepParams { pass_index: pass, shift, mask, items: tile.1 };
            sweeps.push((self.program.dispatches.len(), covered));
            self.program.dispatch(sweep, &params, bindings.collect(), grid);
        }
        if let Some(length) = self.length_binding() {
            launch_for(&mut self.program, length, &sweeps);
        }
    }
}
