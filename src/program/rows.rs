//! Rows of matrices, shared by the lanes of a workgroup: how they are spread and reduced.

use super::{DeviceProfile, Operand, kernel_params};
use crate::error::Result;
use crate::shader::Spec;
use crate::shape::index_u32;

kernel_params! {
    /// Of the kernels over rows: `shaders/rows/params.wgsl`.
    pub(crate) struct RowsParams {
        rows: u32,
        n: u32,
        parts: u32,
        part_len: u32,
        origin: u32,
        first: u32,
        eps: f32,
        pad: f32,
    }
}

/// How a row, or a part of one, is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTile {
    pub(crate) lanes: u64,
    /// Times four elements of each lane.
    pub(crate) quads: u64,
}

impl RowTile {
    /// Elements that it holds.
    pub(crate) fn elements(self) -> u64 {
        4 * self.lanes * self.quads
    }
}

/// How rows are spread on a device.
pub(crate) struct RowsPolicy {
    /// Most times four elements in the registers of an invocation.
    pub(crate) most: u64,
    /// As many as it should have, where rows are long.
    pub(crate) wanted: u64,
    /// Lanes from which on it should have more than one.
    pub(crate) enough: u64,
    pub(crate) workgroup: u64,
}

/// What suits the device.
pub(crate) fn policy(profile: &DeviceProfile) -> RowsPolicy {
    let workgroup = 256.min(u64::from(profile.limits.max_invocations));
    // Text grows with the number in registers, and processors compile slowly.
    let most = if profile.quirks.slow_compiler { 4 } else { 16 };
    RowsPolicy { most, wanted: 4, enough: 32, workgroup }
}

/// The smallest tile that holds `quads` times four elements.
pub(crate) fn tile(quads: u64, policy: &RowsPolicy) -> RowTile {
    let lanes = if quads <= policy.enough {
        quads.next_power_of_two()
    } else {
        quads.div_ceil(policy.wanted).next_power_of_two().clamp(policy.enough, policy.workgroup)
    };
    RowTile { lanes, quads: quads.div_ceil(lanes) }
}

/// Refuses operands that no buffer holds, and rows that no binding holds.
pub(crate) fn check_rows(op: &str, operand: &Operand, n: usize, profile: &DeviceProfile) -> Result<()> {
    let dtype = operand.dtype;
    profile.check_buffers(op, std::slice::from_ref(operand), "take fewer rows at a time")?;
    let bytes = (n as u64).saturating_mul(dtype.size() as u64);
    profile.check_row(op, format_args!("a row of {n} {dtype}"), bytes, "take shorter rows")?;
    index_u32(op, "elements of a row", n)?;
    Ok(())
}

/// What the reduction over `lanes` invocations of a workgroup needs.
pub(crate) fn reduction(lanes: u64, workgroup: u64, profile: &DeviceProfile) -> Spec {
    let subgroups = profile.features.subgroups;
    Spec::new()
        .constant("WORKGROUP_SIZE", workgroup as u32)
        .constant("LANES", lanes as u32)
        .flag("SUBGROUPS", subgroups)
        .flag("ACROSS", subgroups && lanes > u64::from(profile.subgroup_sizes.0))
}
