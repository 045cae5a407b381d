//! Flash attention on cooperative matrices of f16: `shaders/attention/attention_coop.wgsl` for a head size and a tile.

use super::attention::{Attention, KvType};
use super::layout::{AttentionLowering, AttentionOperand};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{DeviceProfile, Kernel, Program};

/// Rows and columns of a cooperative matrix.
const SIDE: u32 = 16;
/// Invocations of a subgroup.
const LANES: u32 = 32;
/// Elements that a row of `f16` in workgroup memory is longer than the tile, as the kernel has it.
const PAD: u32 = 8;
/// The same for rows of `f32`.
const PAD_SCORES: u32 = 4;

/// Sides of the tiles of `coop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoopTile {
    /// Subgroups of a workgroup.
    pub teams: u32,
    /// Rows of q of a subgroup: 16 or 32.
    pub rows: u32,
    /// Keys of a tile: a multiple of 16.
    pub keys: u32,
}

impl CoopTile {
    fn is_sound(&self) -> bool {
        (1..=16).contains(&self.teams)
            && [16, 32].contains(&self.rows)
            && self.keys.is_multiple_of(SIDE)
            && (SIDE..=128).contains(&self.keys)
    }

    fn invocations(&self) -> u32 {
        self.teams * LANES
    }

    /// Rows of q of a workgroup.
    fn all_rows(&self) -> u32 {
        self.teams * self.rows
    }

    /// For heads of `dims`: weights, a tile of k and one of v, scores, and a word of each subgroup.
    fn workgroup_bytes(&self, dims: u32) -> u32 {
        2 * self.all_rows() * (self.keys + PAD)
            + 4 * self.keys * (dims + PAD)
            + 4 * self.all_rows() * (self.keys + PAD_SCORES)
            + 4 * self.teams
    }
}

const INPUTS: [AttentionOperand; 6] = [
    AttentionOperand::Q,
    AttentionOperand::K,
    AttentionOperand::V,
    AttentionOperand::Lengths,
    AttentionOperand::Mask,
    AttentionOperand::Output,
];

/// The tile for heads of this size. On an H100 (Vulkan, driver 580.159.04), B4 H16 T4096, TFLOP/s by subgroups x rows and
/// keys: of 64 134 by 4 x 32 and 16, 126 by 8 x 16 and 16, 121 by 4 x 16 and 32, 108 by 4 x 32 and 32, 97 by 4 x 16 and 64;
/// of 128 174 by 8 x 16 and 32, 134 by 4 x 32 and 32, 132 by 8 x 16 and 16, 124 by 4 x 32 and 16.
fn policy(head_size: usize) -> CoopTile {
    if head_size <= 64 {
        CoopTile { teams: 4, rows: 32, keys: 16 }
    } else {
        CoopTile { teams: 8, rows: 16, keys: 32 }
    }
}

/// What is wanted and is not there, in words.
pub(super) fn missing(of: &AttentionLowering<'_>) -> Option<String> {
    let Attention { head_size, paging, .. } = *of.op;
    if of.dtype != DType::F16 || of.kv != KvType::F16 {
        return Some(format!("q of {} and keys of {}; it takes both of f16", of.dtype, of.kv.name()));
    }
    if paging.is_some() {
        return Some("a cache in pages; it takes keys that lie one after another".into());
    }
    if !head_size.is_multiple_of(SIDE as usize) || head_size > 128 {
        return Some(format!("a head size of {head_size}; it takes multiples of 16 up to 128"));
    }
    let DeviceProfile { subgroup_sizes, .. } = *of.profile;
    if subgroup_sizes != (LANES, LANES) || of.profile.cooperative_side() != Some(SIDE) {
        return Some(format!(
            "subgroups of {} to {} invocations; it is written for cooperative matrices of 16 x 16 in subgroups of 32",
            subgroup_sizes.0, subgroup_sizes.1
        ));
    }
    None
}

pub(super) fn lower(of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    if let Some(missing) = missing(of) {
        return Err(err!(Unsupported, "{}: `coop` does not take {missing}; take `auto`", of.name));
    }
    let tile = of.op.coop_tile.unwrap_or_else(|| policy(of.op.head_size));
    if !tile.is_sound() {
        return Err(err!(
            InvalidArgument,
            "{}: {tile:?} is no tile of `coop`: 16 or 32 rows, up to 16 subgroups, a multiple of 16 keys up to 128",
            of.name
        ));
    }
    of.check_room(&tile, tile.invocations(), tile.workgroup_bytes(of.op.head_size as u32))?;
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
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::super::OPS;
    use super::*;
    use crate::program::Op;
    use crate::shader::Target;
    use half::f16;

    #[test]
    fn kernels_take_the_memory_that_tiles_say() {
        for (teams, rows, keys, dims) in [(4, 32, 16, 64), (8, 16, 32, 128), (1, 16, 48, 80), (2, 32, 64, 16)]
        {
            let tile = CoopTile { teams, rows, keys };
            let op = Attention::new([1, 2, 70, dims], [2, 70]).variant("coop").coop_tile(tile);
            let program = Op::<f16>::lower(&op, &DeviceProfile::h100()).unwrap();
            let module = program.kernels[0].expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface("attention_coop").unwrap();
            assert_eq!(interface.workgroup_size, [tile.invocations(), 1, 1], "{tile:?}");
            assert_eq!(interface.workgroup_bytes, tile.workgroup_bytes(dims as u32), "{tile:?}");
        }
    }

    #[test]
    fn samples_validate_and_stay_short() {
        for program in (OPS[0].samples)(&DeviceProfile::h100(), "coop").unwrap() {
            for kernel in &program.kernels {
                let text = kernel.expand(Target::Naga).unwrap();
                text.validate().unwrap();
                // The driver takes long for long ones.
                assert!(text.text().lines().count() < 1000);
            }
        }
    }
}
