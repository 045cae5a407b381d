//! Kernels and options that reduce-by-key and segmented reduction share: one result for each run, packed.

use super::lookback::{self, Posts};
use super::operator::{Accumulator, OP, Operator, STATE};
use super::scan::{HIERARCHICAL, LOOKBACK, ScanForm, ScanPolicy, ScanTilesParams};
use super::state::Monoid;
use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];

const TILE: Setting = Setting::text("tile", "THREADS,VEC4S", "");
pub(super) const OPTIONS: &[Setting] = &[OP, STATE, Setting::flag("deterministic"), LENGTH, TILE];

kernel_params! { struct RunsTailsParams { labels: u32, values: u32 } }

pub(super) fn tile(asked: &Asked<'_>) -> Result<Option<(u32, u32)>> {
    Ok(asked.settings().given_numbers(&TILE)?.map(|[workgroup_size, vec4s]| (workgroup_size, vec4s)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Labels {
    /// A key that differs from the one before begins a run.
    Keys(DType),
    /// A nonzero flag begins a run.
    Heads,
}

pub(super) struct RunsJob<'a> {
    pub(super) name: &'static str,
    pub(super) op: &'a Operator,
    pub(super) dtype: DType,
    pub(super) labels: Labels,
    pub(super) n: usize,
    pub(super) form: &'a ScanForm,
    /// Threads of a workgroup and vec4 of a thread, instead of the policy's.
    pub(super) tile: Option<(u32, u32)>,
}

fn policy(profile: &DeviceProfile, n: u64, lookback: bool) -> ScanPolicy {
    // Runs of 8 at 2^28 on an H100 (Vulkan, driver 580.159.04): hierarchical 1288 us (1024 x 4 1318), look-back 1170 us
    // (512 x 8 1192).
    // A thread holds keys and values: twice the registers of a scan.
    let tile = match n {
        0..0x4_0000 => (256, 2),
        0x4_0000..0x40_0000 => (512, 2),
        _ if lookback => (1024, 4),
        _ => (512, 4),
    };
    let policy = ScanPolicy::of(profile, tile);
    // One tile, if it can be. f32 by keys, us with 2, 4, 8 vec4 a thread (Mesa 22.3): 2000 98, 96, 61; 20,000 359, 327,
    // 412.
    let (workgroup_size, vec4s) = match n {
        _ if !profile.quirks.serial_workgroups => return policy,
        0..=512 => return policy,
        1025..=2048 => (64, 8),
        2049..=4096 => (256, 4),
        _ => (64, 4),
    };
    ScanPolicy { workgroup_size, vec4s }
}

impl RunsJob<'_> {
    pub(super) fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { name, op, dtype, labels, n, form, .. } = *self;
        let monoid = Monoid::new(op, dtype).map_err(|e| e.context(name))?;
        let count = |numbers| elements(name, "elements", &[n, numbers]);
        let (inputs, outputs) = (count(monoid.inputs())?, count(monoid.outputs())?);
        if !matches!(dtype, DType::F32 | DType::I32 | DType::U32) || op.accumulator() == Accumulator::Pair {
            return Err(err!(
                Unsupported,
                "{name}: {} of {dtype}; sum, prod, min, max and custom operators reduce f32, i32 and u32",
                op.name()
            ));
        }
        let most = profile.limits.max_invocations;
        if let Some((size, vec4s)) = self.tile
            && !(size.is_power_of_two() && (32..=most).contains(&size) && matches!(vec4s, 1 | 2 | 4 | 8))
        {
            return Err(err!(
                InvalidArgument,
                "{name}: a tile of {size} threads with {vec4s} vec4 each; threads must be a power of two from 32 to {most}, \
                 and vec4 1, 2, 4 or 8"
            ));
        }
        let rounds = dtype.is_float() && op.rounds(dtype);
        let bits = Bits { rounds, deterministic: form.deterministic };
        let (variant, decision) = choose_with(name, &form.variant, VARIANTS, profile, bits, || {
            if rounds {
                ("hierarchical", "the order of combination is fixed, so bits repeat".into())
            } else if n >= 1 << 18 && (monoid.words() > 1 || profile.quirks.serial_workgroups) {
                ("hierarchical", "the values of whole tiles do not wait for look-back".into())
            } else {
                // Runs of 8 on an H100 (Vulkan, driver 580.159.04): 2^20 in 16.5 against 18.2 us, 2^28 in 1170 against
                // 1288 us; of 1000, 949 against 1178 us.
                ("lookback", "reads every element once, and never waits forever for another workgroup".into())
            }
        })?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let mut program = Program::new(name, decision);
        let (read, write) = (Access::Read, Access::Write);
        match labels {
            Labels::Keys(keys) => program.operands.extend([
                operand("keys", keys, n, read),
                operand("values", dtype, inputs, read),
                operand("keys_out", keys, n, write),
            ]),
            Labels::Heads => {
                program
                    .operands
                    .extend([operand("values", dtype, inputs, read), operand("heads", DType::U32, n, read)]);
            }
        }
        let outputs = [operand("results", dtype, outputs, write), operand("count", DType::U32, 1, write)];
        program.operands.extend(outputs);
        if form.counted {
            let inputs = program.operands.iter().take_while(|o| o.access == read).count();
            program.operands.insert(inputs, operand("length", DType::U32, 1, read));
        }
        profile.check_bindings(name, &program.operands, "split the arrays at the start of a run")?;
        // The last tile may reach beyond the end.
        index_u32(name, "elements, and a tile,", n.saturating_add(1 << 17))?;
        // The number of results is known only at the end, so the cost counts only reads.
        program.cost = Cost { flop: 2.0 * n as f64, bytes: 4.0 * (n + inputs) as f64 };
        program.determinism = variant.determinism(rounds);
        self.dispatch(profile, &monoid, variant.name == "lookback", &mut program);
        Ok(program)
    }

    fn dispatch(&self, profile: &DeviceProfile, monoid: &Monoid<'_>, lookback: bool, program: &mut Program) {
        let Self { labels, form, .. } = *self;
        let n = self.n as u64;
        let operands = program.operands.clone();
        let whole = |name| {
            let index = operands.iter().position(|o| o.name == name);
            Binding::operand(index.unwrap_or_default(), &operands)
        };
        if n == 0 {
            lookback::clear_words(program, whole("count"), 1);
            return;
        }
        let (workgroup_size, vec4s) = self.tile.unwrap_or_else(|| {
            // A thread holds as many more words of values and prefixes.
            let (many, most) = (
                monoid.words().max(monoid.inputs() as u64) as u32,
                if profile.features.subgroups { 1024 } else { 128 },
            );
            let ScanPolicy { workgroup_size, vec4s } = policy(profile, n, lookback);
            if monoid.has_state() {
                let vec4s = match (profile.quirks.serial_workgroups, profile.features.subgroups) {
                    (true, true) => vec4s.min(4),
                    (true, false) => 1,
                    _ => (vec4s / many).max(1).next_power_of_two(),
                };
                (workgroup_size.min(most), vec4s)
            } else {
                (workgroup_size, vec4s)
            }
        });
        let tiles = n.div_ceil(u64::from(workgroup_size * vec4s) * 4);
        let several = tiles > 1;
        let spec = monoid.spec().flag("SEGMENTED", true).flag("COUNTED", true);
        let spec = match labels {
            Labels::Keys(keys) => spec.flag("FLOAT_KEYS", keys.is_float()),
            Labels::Heads => spec.slot("labels", Fragment::Library("primitives/segmented_reduce")),
        };
        let mut tile_spec = spec
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("VEC4S", vec4s)
            .flag("SUBGROUPS", profile.features.subgroups);
        // The last 256 bytes or less are bound as words, so the array may have any length and no bindings overlap.
        let main = (4 * n - 1) / 256 * 256;
        let mut as_vec4 = |name, numbers: u64| {
            let all = whole(name);
            let main = numbers * main;
            // Never accessed if the tail holds everything, but it must be bound.
            let vec4s = if main > 0 { Binding { size: main, ..all } } else { program.scratch(16) };
            [vec4s, Binding { offset: main, size: 4 * n * numbers - main, ..all }]
        };
        let labels_name = if labels == Labels::Heads { "heads" } else { "keys" };
        let mut inputs = [as_vec4("values", monoid.inputs() as u64), as_vec4(labels_name, 1)].concat();
        if form.counted {
            let [values, labels] = [inputs[1], inputs[3]];
            let tails = program.scratch(256 + values.size);
            let kernel = program.kernel(Kernel::of_file("primitives/runs_tails", Spec::new()));
            let params = RunsTailsParams { labels: (labels.size / 4) as u32, values: (values.size / 4) as u32 };
            program.dispatch(kernel, &params, vec![labels, values, tails], Grid::fold(1));
            (inputs[1], inputs[3]) = (tails, whole("length"));
            tile_spec = limited(tile_spec, true, 4);
        }
        let params = ScanTilesParams {
            tiles: tiles as u32,
            first_tile: 0,
            all_tiles: tiles as u32,
            vec4s: (main / 16) as u32,
            elements: n as u32,
            first_element: 0,
            row: 0,
            piece: 0,
        };
        let carry_binding = if labels == Labels::Heads { 7u32 } else { 8 };
        let mut carry = None;
        if lookback && several {
            let all = Posts { tiles, words: monoid.words(), counted: true, chunks: 1 };
            let posts = program.scratch(4 * all.scratch_words());
            all.clear(program, posts);
            tile_spec = all.spec(tile_spec.flag("LOOKBACK", true), profile, carry_binding, form.leave_out);
            carry = Some(posts);
        } else if several {
            let totals = program.scratch(monoid.item_bytes() * tiles);
            let total = tile_spec.clone().flag("TOTALS", true);
            let kernel = program.kernel(Kernel::library("primitives/runs_tiles", "runs_tiles_total", total));
            let bindings = inputs.iter().copied().chain([totals]).collect();
            program.dispatch(kernel, &params, bindings, Grid::fold(tiles));
            let spec = monoid.spec().flag("SEGMENTED", true).flag("COUNTED", true);
            let kernel = program.kernel(Kernel::library("primitives/scan_totals", "scan_totals", spec));
            program.dispatch(kernel, &params, vec![totals], Grid::fold(1));
            tile_spec = tile_spec.flag("CARRIED", true);
            carry = Some(totals);
        }
        let mut outputs = vec![whole("results"), whole("count")];
        if labels != Labels::Heads {
            outputs.push(whole("keys_out"));
        }
        let tile_spec = tile_spec.constant("CARRY_BINDING", carry_binding);
        let kernel = program.kernel(Kernel::library("primitives/runs_tiles", "runs_tiles_reduce", tile_spec));
        let bindings = inputs.into_iter().chain(outputs).chain(carry).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(tiles));
    }
}
