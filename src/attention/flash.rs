//! The variant `flash`, which keeps scores in registers: `shaders/attention/attention_flash.wgsl` and its tiles.

use super::layout::{AttentionLowering, AttentionOperand};
use crate::program::prelude::*;

/// The tile of the variant `flash` of [`Attention`](super::Attention), and its split over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlashTile {
    /// Rows of `q` of a workgroup.
    pub rows: u32,
    /// Keys in a tile: a multiple of `4 * lanes`.
    pub keys: u32,
    /// Threads that share a row: a power of two.
    pub lanes: u32,
    /// Rows of a thread; `rows / thread_rows` is a power of two.
    pub thread_rows: u32,
    /// Dimensions of `q` and `k` staged at once: 4 times a power of two.
    pub dims: u32,
    /// Keys whose weights are staged at once: a power of two, a multiple of `4 * lanes`, a divisor of `keys`.
    pub weights: u32,
    /// Keys whose values are staged at once: a multiple of 4, a divisor of `weights`.
    pub values: u32,
    /// Loads the next data to registers while the current data is used.
    pub ahead: bool,
}

impl FlashTile {
    const fn new([rows, keys, lanes, thread_rows]: [u32; 4], [dims, weights, values]: [u32; 3]) -> Self {
        Self { rows, keys, lanes, thread_rows, dims, weights, values, ahead: false }
    }

    /// Returns the number of threads in a column of the tile.
    const fn groups(self) -> u32 {
        self.rows / self.thread_rows
    }

    const fn threads(self) -> u32 {
        self.groups() * self.lanes
    }

    fn staged(self, vec4s: u32) -> u32 {
        let scores = (self.rows + self.keys) * self.dims / 4;
        let values = self.rows * self.weights / 4 + self.values * vec4s;
        scores.max(values)
    }

    /// Tells whether the threads of a row lie in one subgroup.
    fn in_subgroup(self, profile: &DeviceProfile) -> bool {
        profile.features.subgroups && profile.subgroup_sizes.0 >= self.lanes
    }

    fn workgroup_bytes(self, vec4s: u32, profile: &DeviceProfile) -> u32 {
        16 * self.staged(vec4s) + if self.in_subgroup(profile) { 0 } else { 4 * self.threads() * self.thread_rows }
    }

    fn specialise(self, spec: Spec) -> Spec {
        spec.constant("TILE_ROWS", self.rows)
            .constant("TILE_KEYS", self.keys)
            .constant("LANES", self.lanes)
            .constant("THREAD_ROWS", self.thread_rows)
            .constant("TILE_DIMS", self.dims)
            .constant("TILE_WEIGHTS", self.weights)
            .constant("TILE_VALUES", self.values)
            .constant("AHEAD", self.ahead)
    }

    fn is_valid(self) -> bool {
        let Self { rows, keys, lanes, thread_rows, dims, weights, values, ahead: _ } = self;
        let all = [rows, keys, lanes, thread_rows, dims, weights, values];
        all.iter().all(|&x| (1..=1024).contains(&x))
            && lanes.is_power_of_two()
            && rows.is_multiple_of(thread_rows)
            && self.groups().is_power_of_two()
            && dims.is_multiple_of(4)
            && dims.is_power_of_two()
            && weights.is_power_of_two()
            && weights.is_multiple_of(4 * lanes)
            && keys.is_multiple_of(weights)
            && values.is_multiple_of(4)
            && weights.is_multiple_of(values)
    }
}

pub(super) fn policy(profile: &DeviceProfile, vec4s: u32) -> FlashTile {
    let limits = &profile.limits;
    if profile.quirks.serial_workgroups {
        return FlashTile::new([16, 32, 8, 2], [16, 32, 8]);
    }
    if limits.max_workgroup_bytes < 32 << 10 {
        // WebGPU guarantees 16 KiB.
        return match vec4s {
            0..=16 => FlashTile::new([64, 32, 8, 8], [32, 32, 16]),
            17..=32 => FlashTile::new([64, 32, 8, 4], [32, 32, 8]),
            _ => FlashTile::new([32, 32, 8, 4], [32, 32, 8]),
        };
    }
    // TFLOP/s on an H100 (Vulkan, driver 580.159.04), f32, B4 H16 T4096. D64: 36.0; 34.5 with loads ahead, 30.7 with 16
    // dimensions at once. D128: 34.4; 31.7 without loads ahead, 34.5 with 64 rows, 32.3 with 64 rows and keys.
    let large = limits.max_workgroup_bytes >= 48 << 10;
    match vec4s {
        0..=16 => FlashTile::new([128, 64, 8, 8], [32, 32, 32]),
        17..=32 if large => FlashTile { ahead: true, ..FlashTile::new([128, 128, 16, 8], [32, 64, 16]) },
        17..=32 => FlashTile::new([64, 64, 16, 8], [32, 64, 16]),
        _ if large => FlashTile::new([64, 64, 16, 4], [32, 64, 16]),
        _ => FlashTile::new([32, 32, 8, 4], [32, 32, 8]),
    }
}

const INPUTS: [AttentionOperand; 9] = [
    AttentionOperand::Q,
    AttentionOperand::K,
    AttentionOperand::V,
    AttentionOperand::Scales,
    AttentionOperand::Table,
    AttentionOperand::Lengths,
    AttentionOperand::Mask,
    AttentionOperand::Output,
    AttentionOperand::Logsumexp,
];

/// The largest size of values, which threads hold in registers.
const MAX_VALUES: usize = 256;

/// Returns the largest number of keys for which no driver ends a thread's loops early.
fn max_keys(of: &AttentionLowering<'_>, tile: FlashTile) -> u64 {
    let (profile, vec4s) = (of.profile, of.value_vec4s());
    let threads = tile.threads();
    let loads = |count: u32| count.div_ceil(threads) + 1;
    let chunk = loads(tile.rows * tile.dims / 4) + loads(tile.keys * tile.dims / 4) + tile.dims / 4 + 1;
    let values = loads(tile.values * vec4s) + tile.values / 4 + 2;
    let products = u64::from(of.vec4s().div_ceil(tile.dims / 4)) * u64::from(chunk);
    let rounds = products + u64::from(tile.keys / tile.values * values + 1);
    // Tiles at an edge of the visible keys: their values are checked, and may be added one key at a time.
    let edges = 2 * (tile.rows / tile.keys + 2);
    let spoiled = loads(tile.keys * vec4s) + threads.ilog2() + 2 + tile.keys + tile.keys / tile.weights;
    let room = profile.max_rounds().saturating_sub(u64::from(edges * spoiled));
    (room / rounds).saturating_mul(tile.keys.into())
}

pub(super) fn fits(of: &AttentionLowering<'_>) -> bool {
    let tile = policy(of.profile, of.value_vec4s());
    of.op.value_size <= MAX_VALUES && of.op.keys as u64 <= max_keys(of, tile)
}

/// Returns the tile. Rejects what it or the device cannot run.
pub(super) fn check(of: &AttentionLowering<'_>) -> Result<FlashTile> {
    let (profile, vec4s) = (of.profile, of.value_vec4s());
    if of.op.value_size > MAX_VALUES {
        return Err(err!(
            Unsupported,
            "{}: the variant `flash` takes values of at most {MAX_VALUES} elements; use `auto`",
            of.name
        ));
    }
    let tile = of.op.tile.unwrap_or_else(|| policy(profile, vec4s));
    if !tile.is_valid() {
        return Err(err!(
            InvalidArgument,
            "{}: {tile:?} is invalid; the fields of `FlashTile` have the rules",
            of.name
        ));
    }
    of.check_room(&tile, tile.threads(), tile.workgroup_bytes(vec4s, profile))?;
    let max = max_keys(of, tile);
    if of.op.keys as u64 > max {
        return Err(err!(
            TooLarge,
            "{}: the variant `flash` takes at most {max} keys on {}, which ends longer loops early; use `auto`",
            of.name,
            profile.name
        ));
    }
    Ok(tile)
}

pub(super) fn lower(tile: FlashTile, of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    // If all rows see the same keys, only keys after the last and in missing pages are hidden.
    let all_alike = !of.op.causal && of.op.window.is_none();
    let may_end = of.op.lengths || of.op.paging.is_some() || !of.op.keys.is_multiple_of(tile.keys as usize);
    let spec = tile
        .specialise(of.spec(&INPUTS))
        .flag("HIDES_ENDS", all_alike && may_end)
        .flag("SUBGROUPS", tile.in_subgroup(of.profile))
        .flag("CAREFUL", of.profile.quirks.exp_drops_nan);
    let kernel = Kernel::library("attention/attention_flash", "attention_flash", spec);
    of.dispatch_rows(program, kernel, tile.rows, &INPUTS)
}

#[cfg(test)]
mod tests;
