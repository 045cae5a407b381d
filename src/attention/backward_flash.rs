//! The variant `flash` of attention's backward pass: `shaders/attention/attention_backward_flash.wgsl` and its tiles.

use super::backward_layout::{GradientLowering, GradientPass, SlopeUse};
use super::backward_statistics::LogBase;
use crate::program::prelude::*;

/// Elements of a vec4.
pub(super) const UNIT: usize = 4;

/// A tile, and its split over threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct GradientTile {
    /// Rows that a workgroup owns; `own / thread_rows` is a power of two.
    own: u32,
    /// Rows of a step: a multiple of `4 * lanes`.
    walk: u32,
    /// Threads that share an own row: a power of two.
    lanes: u32,
    thread_rows: u32,
    /// Dimensions staged at once: a multiple of 4.
    dims: u32,
    /// Walked rows staged at once: 4 times a divisor of `lanes`.
    values: u32,
}

impl GradientTile {
    const fn new([own, walk, lanes, thread_rows, dims, values]: [u32; 6]) -> Self {
        Self { own, walk, lanes, thread_rows, dims, values }
    }

    /// Whether the threads of a row lie in one subgroup.
    fn in_subgroup(self, profile: &DeviceProfile) -> bool {
        profile.features.subgroups && profile.subgroup_sizes.0 >= self.lanes
    }

    /// Returns the rounds of one step, and the steps over `n` rows.
    fn rounds(self, vec4s: u32, n: u64) -> u64 {
        let products = 2 * vec4s.div_ceil(self.dims / 4) * (self.dims / 4 + 1);
        let sums = 2 * (self.walk / self.values) * (self.values / 4 + 1);
        // A walk begins at a row that need not be a multiple of a step.
        (n.div_ceil(self.walk.into()) + 1) * u64::from(products + sums + 1)
    }
}

fn policy(profile: &DeviceProfile, vec4s: u32) -> GradientTile {
    if profile.quirks.serial_workgroups {
        return GradientTile::new([16, 32, 8, 2, 16, if vec4s > 32 { 8 } else { 16 }]);
    }
    let large = profile.limits.max_workgroup_bytes >= 32 << 10;
    GradientTile::new(match vec4s {
        0..=16 if large => [64, 64, 8, 4, 32, 32],
        17..=32 if large => [64, 64, 16, 4, 32, 16],
        0..=16 => [32, 32, 8, 4, 32, 32],
        17..=32 => [32, 32, 8, 4, 32, 16],
        _ => [32, 32, 8, 2, 32, 8],
    })
}

/// Returns the tile. Rejects what it or the device cannot run.
pub(super) fn check(of: &GradientLowering<'_>) -> Result<GradientTile> {
    let forward = &of.op.forward;
    let size = of.op.padded_size(UNIT);
    if size > 256 {
        return Err(err!(
            Unsupported,
            "{}: the variant `flash` takes heads and values of up to 256 elements, not {size}; use `auto`",
            of.name
        ));
    }
    let vec4s = size as u32 / 4;
    let tile = policy(of.profile, vec4s);
    let of_queries = tile.rounds(vec4s, forward.keys as u64);
    let of_keys = forward.group() as u64 * (1 + tile.rounds(vec4s, forward.queries as u64));
    of.check_rounds("flash", of_queries.max(of_keys))?;
    Ok(tile)
}

pub(super) fn lower(tile: GradientTile, of: &GradientLowering<'_>, program: &mut Program) -> Result<()> {
    let pass = |entry, of_queries, outputs| GradientPass {
        file: "attention/attention_backward_flash",
        entry,
        spec: Spec::new()
            .constant("OWN", tile.own)
            .constant("WALK", tile.walk)
            .constant("LANES", tile.lanes)
            .constant("THREAD_ROWS", tile.thread_rows)
            .constant("TILE_DIMS", tile.dims)
            .constant("TILE_VALUES", tile.values)
            .flag("STATISTICS", of_queries && !of.op.saved)
            .flag("HALVES", of.dtype == DType::F16)
            .flag("SUBGROUPS", tile.in_subgroup(of.profile))
            .flag("CAREFUL", of.profile.quirks.exp_drops_nan),
        rows: tile.own as usize,
        of_queries,
        outputs,
        slopes: SlopeUse::Nothing,
    };
    let passes = [
        pass("attention_backward_flash_queries", true, &[0][..]),
        pass("attention_backward_flash_keys", false, &[1, 2]),
    ];
    of.dispatch(LogBase::Two, &passes, [0, u64::MAX], program)
}
