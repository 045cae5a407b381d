//! The variant `coop`, flash attention on cooperative matrices of f16: `shaders/attention/attention_coop.wgsl`.

use super::attention::Attention;
use super::kv_storage::KvType;
use super::layout::{AttentionLowering, AttentionOperand};
use crate::program::prelude::*;

/// The rows and columns of a cooperative matrix.
const SIDE: u32 = 16;
/// Threads in a subgroup.
const LANES: u32 = 32;
/// Elements of padding after each f16 row in workgroup memory, as in the kernel.
const PAD: u32 = 8;
/// Elements of padding after each f32 row.
const PAD_SCORES: u32 = 4;

/// The tile of [`Attention`]'s variant `coop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoopTile {
    /// Subgroups in a workgroup, 1 to 16.
    pub teams: u32,
    /// Rows of `q` of each subgroup: 16 or 32.
    pub rows: u32,
    /// Keys in a tile: a multiple of 16 up to 128.
    pub keys: u32,
}

impl CoopTile {
    fn is_valid(&self) -> bool {
        (1..=16).contains(&self.teams)
            && [16, 32].contains(&self.rows)
            && self.keys.is_multiple_of(SIDE)
            && (SIDE..=128).contains(&self.keys)
    }

    fn threads(&self) -> u32 {
        self.teams * LANES
    }

    /// Returns the rows of `q` of a workgroup.
    pub(super) fn all_rows(&self) -> u32 {
        self.teams * self.rows
    }

    /// Returns the workgroup memory for heads of `dims` elements: weights, tiles of k and v, scores, and a word for
    /// each subgroup.
    fn workgroup_bytes(&self, dims: u32) -> u32 {
        2 * self.all_rows() * (self.keys + PAD)
            + 4 * self.keys * (dims + PAD)
            + 4 * self.all_rows() * (self.keys + PAD_SCORES)
            + 4 * self.teams
    }
}

const INPUTS: [AttentionOperand; 7] = [
    AttentionOperand::Q,
    AttentionOperand::K,
    AttentionOperand::V,
    AttentionOperand::Lengths,
    AttentionOperand::Mask,
    AttentionOperand::Output,
    AttentionOperand::Logsumexp,
];

/// Chooses the tile for a head size. TFLOP/s on an H100 (Vulkan, driver 580.159.04), B4 H16 T4096, with subgroups x
/// rows, keys: head size 64: 165 with 4 x 32, 16; 152 with 4 x 16, 32; 143 with 2 x 32, 16. Head size 128: 191 with
/// 8 x 16, 32; 165 with 6 x 16, 16; 158 with 8 x 32, 16.
fn policy(head_size: usize) -> CoopTile {
    if head_size <= 64 { CoopTile { teams: 4, rows: 32, keys: 16 } } else { CoopTile { teams: 8, rows: 16, keys: 32 } }
}

pub(super) fn takes_heads(op: &Attention) -> bool {
    op.head_size.is_multiple_of(SIDE as usize) && op.head_size <= 128 && op.value_size == op.head_size
}

/// Returns what `coop` needs and the inputs or the device do not meet, if anything.
pub(super) fn missing(of: &AttentionLowering<'_>) -> Option<String> {
    let (head_size, value_size) = (of.op.head_size, of.op.value_size);
    if of.dtype != DType::F16 || of.kv != KvType::F16 {
        return Some(format!("f16 q, k and v; q is {}, k and v are {}", of.dtype, of.kv.name()));
    }
    if of.op.paging.is_some() {
        return Some("a cache without pages".into());
    }
    if !takes_heads(of.op) {
        return Some(format!(
            "one head size of q, k and v that is a multiple of 16 up to 128, not {head_size} and {value_size}"
        ));
    }
    let DeviceProfile { subgroup_sizes, .. } = *of.profile;
    if subgroup_sizes != (LANES, LANES) || of.profile.cooperative_side() != Some(SIDE) {
        return Some(format!(
            "cooperative matrices of 16 x 16 and subgroups of 32 threads; {} has subgroups of {} to {}",
            of.profile.name, subgroup_sizes.0, subgroup_sizes.1
        ));
    }
    None
}

/// Returns the tile. Rejects what it, the inputs or the device cannot run.
pub(super) fn check(of: &AttentionLowering<'_>) -> Result<CoopTile> {
    if let Some(missing) = missing(of) {
        return Err(err!(Unsupported, "{}: the variant `coop` needs {missing}; use `auto`", of.name));
    }
    let tile = of.op.coop_tile.unwrap_or_else(|| policy(of.op.head_size));
    if !tile.is_valid() {
        return Err(err!(
            InvalidArgument,
            "{}: {tile:?} is invalid; `coop` needs 1 to 16 teams, 16 or 32 rows, and a multiple of 16 keys up to 128",
            of.name
        ));
    }
    of.check_room(&tile, tile.threads(), tile.workgroup_bytes(of.op.head_size as u32))?;
    Ok(tile)
}

pub(super) fn lower(tile: CoopTile, of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    let spec = of
        .spec(&INPUTS)
        .flag("EIGHTS", true)
        .constant("TEAMS", tile.teams)
        .constant("TEAM_ROWS", tile.rows)
        .constant("TILE_KEYS", tile.keys);
    let kernel = Kernel::library("attention/attention_coop", "attention_coop", spec);
    of.dispatch_rows(program, kernel, tile.all_rows(), &INPUTS)
}

#[cfg(test)]
mod tests;
