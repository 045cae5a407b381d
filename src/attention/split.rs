//! The variant `split-kv`, for few queries and many keys: keys split over workgroups, then partial results merged.

use super::layout::{AttentionLowering, AttentionOperand};
use crate::program::prelude::*;

/// The constants that depend on the device.
struct SplitPolicy {
    threads: u32,
    /// The largest number of rows of `q` that share a read of keys.
    rows: u32,
    /// Groups of four keys that a team has in flight.
    blocks: u32,
    /// The number of workgroups that fill the device.
    workgroups: u64,
    /// Whether each team lies in one subgroup.
    subgroups: bool,
}

fn policy(profile: &DeviceProfile, lanes: u32) -> SplitPolicy {
    let subgroups = profile.features.subgroups && profile.subgroup_sizes.0 >= lanes;
    if profile.quirks.serial_workgroups {
        SplitPolicy { threads: 64, rows: 2, blocks: 1, workgroups: 16, subgroups }
    } else if subgroups {
        // Sixteen workgroups for each multiprocessor of an H100. GB/s of keys and values there (Vulkan, driver
        // 580.159.04), f16, H32 G8 D128, B16 S8192 and B1 S131072: 2646 and 2612; with 64 threads 2365 and
        // 2630; with twice as many workgroups 2522 and 2444.
        SplitPolicy { threads: 128, rows: 4, blocks: 1, workgroups: 2112, subgroups }
    } else {
        SplitPolicy { threads: 64, rows: 4, blocks: 1, workgroups: 2112, subgroups }
    }
}

const INPUTS: [AttentionOperand; 7] = [
    AttentionOperand::Q,
    AttentionOperand::K,
    AttentionOperand::V,
    AttentionOperand::Scales,
    AttentionOperand::Table,
    AttentionOperand::Lengths,
    AttentionOperand::Mask,
];

/// What the merging kernel writes.
const RESULTS: [AttentionOperand; 2] = [AttentionOperand::Output, AttentionOperand::Logsumexp];

/// Threads in a workgroup that merges a row.
const MERGE_SIZE: u32 = 256;

/// The largest number of keys in a part, for drivers that end long loops.
const MAX_PART_KEYS: u64 = 1 << 16;

/// The largest head size, whose teams have 32 lanes.
pub(super) const MAX_SIZE: usize = 256;

/// Rejects head sizes that teams do not hold.
pub(super) fn check(of: &AttentionLowering<'_>) -> Result<()> {
    if fits(of) {
        return Ok(());
    }
    Err(err!(Unsupported, "{}: the variant `split-kv` takes heads of at most {MAX_SIZE} elements; use `auto`", of.name))
}

/// Tells whether a team holds a head.
pub(super) fn fits(of: &AttentionLowering<'_>) -> bool {
    of.op.head_size.max(of.op.value_size) <= MAX_SIZE
}

pub(super) fn lower(of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    let (profile, op) = (of.profile, of.op);
    let lanes = of.vec4s().max(of.value_vec4s()).div_ceil(2).next_power_of_two();
    let policy = policy(profile, lanes);
    let rows_of_pair = of.rows_of_pair();
    let row_tile = policy.rows.min((rows_of_pair as u32).next_power_of_two());
    let chunks = of.chunks()?;
    let row_tiles = rows_of_pair.div_ceil(row_tile as usize) as u64;
    // The keys that any query of a head sees.
    let keys = op.window.map_or(op.keys, |w| {
        let sides = if op.causal { w } else { w.saturating_mul(2) };
        op.keys.min(sides.saturating_add(op.queries))
    }) as u64;
    let step = u64::from(policy.threads / lanes * 4 * policy.blocks);
    let max_pairs = chunks.iter().map(|p| p.pairs).max().unwrap_or(1) as u64;
    let each = 16 * u64::from(of.value_vec4s() + 1);
    let limit = profile.limits.max_storage_binding;
    let rows = max_pairs * rows_of_pair as u64;
    let room = limit / each / rows;
    let what = format_args!("partial results of {rows} rows");
    profile.check_scratch(&of.name, what, each * rows, "use `flash` or `auto`")?;
    let wanted = policy.workgroups.div_ceil(max_pairs * row_tiles).min(room);
    let mut part_keys = keys.div_ceil(wanted).next_multiple_of(step);
    // A step is one round, and without subgroups a loop over the lanes of a team.
    let rounds = if policy.subgroups { 1 } else { u64::from(lanes) + 2 };
    if !profile.runs_rounds(rounds.saturating_mul(keys)) {
        part_keys = part_keys.min(MAX_PART_KEYS.min(step * profile.loop_steps(rounds, MAX_PART_KEYS)));
    }
    let parts = keys.div_ceil(part_keys);
    if parts > room {
        return Err(err!(
            TooLarge,
            "{}: partial results of {keys} keys in {parts} parts do not fit a binding of {}; use fewer rows at a time",
            of.name,
            profile.name
        ));
    }
    let partials = program.scratch(each * rows * parts);
    let partials_at = of.count(&INPUTS) as u32 + 1;
    let spec = of
        .spec(&INPUTS)
        .flag("EIGHTS", true)
        .constant("PARTIALS_BINDING", partials_at)
        .constant("WORKGROUP_SIZE", policy.threads)
        .constant("LANES", lanes)
        .constant("ROWS", row_tile)
        .constant("KEY_BLOCKS", policy.blocks)
        .flag("SUBGROUPS", policy.subgroups)
        .flag("SINGLE", op.queries == 1)
        .flag("CAREFUL", profile.quirks.exp_drops_nan);
    let split = program.kernel(Kernel::library("attention/attention_split", "attention_split", spec));
    let spec = of
        .spec(&RESULTS)
        .constant("WORKGROUP_SIZE", MERGE_SIZE)
        .constant("LANES", MERGE_SIZE)
        .constant("COLUMNS", of.value_vec4s().next_power_of_two())
        .constant("PARTIALS_BINDING", of.count(&RESULTS) as u32 + 1);
    let merge = program.kernel(Kernel::library("attention/attention_merge", "attention_merge", spec));
    for chunk in chunks {
        let mut params = of.params(&chunk);
        params.parts = parts as u32;
        params.part_keys = part_keys as u32;
        params.row_tiles = row_tiles as u32;
        params.first_row = (chunk.first * rows_of_pair) as u32;
        let workgroups = chunk.pairs as u64 * row_tiles * parts;
        params.rows = workgroups as u32;
        let mut bindings = of.bindings(program, &chunk, &INPUTS);
        bindings.push(partials);
        of.dispatch(program, split, &params, bindings, Grid::fold(workgroups));
        let rows = (chunk.pairs * rows_of_pair) as u64;
        params.rows = rows as u32;
        let mut bindings = of.bindings(program, &chunk, &RESULTS);
        bindings.push(partials);
        of.dispatch(program, merge, &params, bindings, Grid::fold(rows));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
