//! The variants `coop` and `coop-stored` of attention's backward pass, on cooperative matrices of f16:
//! `shaders/attention/attention_backward_coop.wgsl` and `attention_backward_slopes.wgsl`.

use super::attention_backward::AttentionBackward;
use super::backward_layout::{GradientLowering, GradientPass, SlopeUse};
use super::backward_statistics::LogBase;
use crate::program::prelude::*;

/// The rows and columns of a cooperative matrix.
const SIDE: u32 = 16;
pub(super) const UNIT: usize = SIDE as usize;
/// Threads in a subgroup.
const LANES: u32 = 32;

/// The tile of a pass: pairs of subgroups, own rows of each pair, walked rows, and tiles of those in workgroup memory.
#[derive(Debug, Clone, Copy)]
struct CoopPassTile {
    pairs: u32,
    rows: u32,
    walk: u32,
    buffers: u32,
}

impl CoopPassTile {
    const fn new([pairs, rows, walk, buffers]: [u32; 4]) -> Self {
        Self { pairs, rows, walk, buffers }
    }

    /// The tiles of the three passes, statistics, dq, and dk with dv, and their workgroup memory. They follow from
    /// registers and workgroup memory: a subgroup holds rows of one operand and its results in registers. Devices with
    /// less memory run fewer subgroups.
    ///
    /// Microseconds of the passes on an H100 (Vulkan, driver 580.159.04), f16, B4 H16 T4096, by pairs x rows, walked
    /// rows, tiles. Head size 64: 1847, 2083, 3345 with 2 x 32, 16, 1; 1974, 2248, 2683 with 4 x 32, 16, 2; 3179, 3407,
    /// 3661 with 2 x 32, 16, 2. Head size 128: 2462, 3323, 5227 with 4 x 32, 16, 1; 3546, 4591, 8552 with 2 x 32, 16, 1
    fn of_passes(head_size: usize, max_bytes: u32) -> [(Self, u32); 3] {
        let tiles = match head_size {
            0..=64 => [[2, 32, 16, 1], [2, 32, 16, 1], [4, 32, 16, 2]],
            _ => [[4, 32, 16, 1]; 3],
        };
        let tiles = tiles.map(Self::new);
        let tiles = [(tiles[0], true), (tiles[1], true), (tiles[2], false)];
        tiles.map(|(mut tile, of_queries)| {
            let bytes = |tile: Self| tile.workgroup_bytes(head_size as u32, of_queries);
            while bytes(tile) > max_bytes && tile.pairs > 1 {
                tile.pairs /= 2;
            }
            (tile, bytes(tile))
        })
    }

    /// Whether the sides of a pair divide the elements of dq among them, and not its rows: that reads fewer walked
    /// rows. Head size 128 on the same card: 3245 us, 3527 by rows; 64: 2228 and 2231.
    fn splits_dims(self, head_size: usize, of_queries: bool) -> bool {
        of_queries && head_size.is_multiple_of(2 * self.walk as usize)
    }

    fn own(self) -> u32 {
        self.pairs * self.rows
    }

    /// Returns the workgroup memory for heads of `dims` elements, as in the kernel.
    fn workgroup_bytes(self, dims: u32, of_queries: bool) -> u32 {
        let strips = 2 * 2 * self.own() * (self.walk + 8);
        let walked = 2 * 2 * self.buffers * self.walk * (dims + 8);
        let scores = 2 * 4 * self.own() * (self.walk + 8);
        let statistics = if of_queries { 0 } else { 8 * self.buffers * self.walk };
        strips + walked + scores + statistics
    }
}

pub(super) fn takes_heads(op: &AttentionBackward) -> bool {
    op.padded_size(UNIT) <= 128
}

/// Returns what `coop` needs and the operands or the device do not meet, if anything.
fn missing(of: &GradientLowering<'_>) -> Option<String> {
    let (profile, size) = (of.profile, of.op.padded_size(UNIT));
    if of.dtype != DType::F16 {
        return Some(format!("operands of f16, not {}", of.dtype));
    }
    if !takes_heads(of.op) {
        return Some(format!("heads and values of up to 128 elements, not {size}"));
    }
    if profile.subgroup_sizes != (LANES, LANES) || profile.cooperative_side() != Some(SIDE) {
        return Some(format!(
            "cooperative matrices of 16 x 16 and subgroups of 32 threads; {} has subgroups of {} to {}",
            profile.name, profile.subgroup_sizes.0, profile.subgroup_sizes.1
        ));
    }
    let max = profile.limits.max_workgroup_bytes;
    let [a, b, c] = CoopPassTile::of_passes(size, max).map(|(_, bytes)| bytes);
    let bytes = Some(a.max(b).max(c)).filter(|bytes| *bytes > max)?;
    Some(format!("{bytes} bytes of workgroup memory; {} has fewer", profile.name))
}

/// Rejects what `coop` or the device cannot run.
pub(super) fn check(of: &GradientLowering<'_>) -> Result<()> {
    match missing(of) {
        None => Ok(()),
        Some(missing) => Err(err!(Unsupported, "{}: the variant `coop` needs {missing}; use `auto`", of.name)),
    }
}

#[derive(Debug, Clone, Copy)]
struct SlopeTile {
    /// Subgroups, and queries of each.
    teams: u32,
    rows: u32,
    /// Keys of a step.
    walk: u32,
}

impl SlopeTile {
    /// Microseconds of all gradients of a saved pass on an H100 (Vulkan, driver 580.159.04), f16, B4 H16 T4096, by
    /// subgroups x queries x keys. Head size 64: 4543 with 4 x 16 x 32, 4634 with 8 x 32 x 16; `coop` 5142. Head size
    /// 128: 8086 with 8 x 16 x 32, 8186 with 4 x 32 x 32; `coop` 8349.
    fn of(head_size: usize, max_bytes: u32) -> Self {
        let teams = if head_size <= 64 { 4 } else { 8 };
        let mut tile = Self { teams, rows: 16, walk: 32 };
        while tile.workgroup_bytes(head_size as u32) > max_bytes && tile.teams > 1 {
            tile.teams /= 2;
        }
        tile
    }

    /// Queries of a workgroup.
    fn own(self) -> u32 {
        self.teams * self.rows
    }

    /// Returns the workgroup memory for heads of `dims` elements, as in the kernel.
    fn workgroup_bytes(self, dims: u32) -> u32 {
        let walked = 2 * 2 * self.walk * (self.own() + 8 + dims + 8);
        walked + 4 * self.own() * (SIDE + 8)
    }
}

/// The most bytes of slopes of a step. Steps of 512 MiB take 1 % longer for the case above and 12 % if causal, of
/// 256 MiB 3 and 40 %; of 2 GiB as long.
const STEP_BYTES: u64 = 1 << 30;

/// Returns the bytes of the slopes of a (sequence, kv head) pair.
fn slope_bytes(of: &GradientLowering<'_>, key_tile: u32) -> u64 {
    let forward = &of.op.forward;
    let keys = (forward.keys as u64).next_multiple_of(key_tile.into());
    let queries = (forward.queries as u64).next_multiple_of(UNIT as u64);
    [2, forward.group() as u64, queries].into_iter().fold(keys, u64::saturating_mul)
}

fn max_slope_bytes(of: &GradientLowering<'_>) -> u64 {
    of.profile.largest_binding().min(STEP_BYTES)
}

/// Rejects what `coop-stored` or the device cannot run.
pub(super) fn check_stored(of: &GradientLowering<'_>) -> Result<()> {
    check(of)?;
    let size = of.op.padded_size(UNIT);
    let [.., (tile, _)] = CoopPassTile::of_passes(size, of.profile.limits.max_workgroup_bytes);
    let slope_tile = SlopeTile::of(size, of.profile.limits.max_workgroup_bytes);
    let shared = slope_tile.workgroup_bytes(size as u32);
    if shared > of.profile.limits.max_workgroup_bytes {
        return Err(err!(
            Unsupported,
            "{}: the variant `coop-stored` needs {shared} bytes of workgroup memory; {} has fewer; use `auto`",
            of.name,
            of.profile.name
        ));
    }
    let (bytes, limit) = (slope_bytes(of, tile.own()), max_slope_bytes(of));
    if bytes > limit {
        return Err(err!(
            Unsupported,
            "{}: the variant `coop-stored` takes heads whose slopes have up to {limit} bytes, not {bytes}; use `auto`",
            of.name
        ));
    }
    Ok(())
}

/// Lowers `coop`, or with `stores` `coop-stored`.
pub(super) fn lower(stores: bool, of: &GradientLowering<'_>, program: &mut Program) -> Result<()> {
    let (head_size, max) = (of.op.forward.head_size, of.profile.limits.max_workgroup_bytes);
    let tiles = CoopPassTile::of_passes(head_size, max);
    let pass = |entry, (tile, _): (CoopPassTile, u32), of_queries, outputs: &'static [usize]| GradientPass {
        file: "attention/attention_backward_coop",
        entry,
        spec: Spec::new()
            .constant("PAIRS", tile.pairs)
            .constant("PAIR_ROWS", tile.rows)
            .constant("WALK", tile.walk)
            .constant("BUFFERS", tile.buffers)
            .flag("SPLIT_DIMS", tile.splits_dims(head_size, outputs == [0]))
            .flag("STATISTICS", outputs.is_empty())
            .flag("STATISTICS_ALONE", outputs.is_empty()),
        rows: tile.own() as usize,
        of_queries,
        outputs,
        slopes: SlopeUse::Nothing,
    };
    let statistics = pass("attention_backward_coop_statistics", tiles[0], true, &[]);
    let queries = pass("attention_backward_coop_queries", tiles[1], true, &[0]);
    let mut keys = pass("attention_backward_coop_keys", tiles[2], false, &[1, 2]);
    let key_tile = tiles[2].0.own();
    let passes = if stores {
        keys.spec = keys.spec.constant("KEY_TILE", key_tile);
        keys.slopes = SlopeUse::Writes;
        let tile = SlopeTile::of(head_size, max);
        let product = GradientPass {
            file: "attention/attention_backward_slopes",
            entry: "attention_backward_slopes",
            spec: Spec::new()
                .constant("TEAMS", tile.teams)
                .constant("ROWS", tile.rows)
                .constant("WALK", tile.walk)
                .constant("KEY_TILE", key_tile),
            rows: tile.own() as usize,
            of_queries: true,
            outputs: &[0],
            slopes: SlopeUse::Reads,
        };
        [statistics, keys, product]
    } else {
        [statistics, queries, keys]
    };
    // The first computes what the forward pass may have saved.
    let passes = &passes[usize::from(of.op.saved)..];
    let slopes = if stores { [slope_bytes(of, key_tile), max_slope_bytes(of)] } else { [0, u64::MAX] };
    of.dispatch(LogBase::Two, passes, slopes, program)
}

#[cfg(test)]
mod tests;
