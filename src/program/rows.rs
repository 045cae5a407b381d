use super::{DeviceProfile, Operand, kernel_params};
use crate::error::Result;
use crate::shader::Spec;
use crate::shape::index_u32;

kernel_params! {
    /// Parameters of the kernels over rows: `shaders/rows/params.wgsl`.
    pub(crate) struct RowsParams {
        rows: u32, n: u32, parts: u32, part_len: u32, origin: u32, first: u32, eps: f32, pad: f32,
    }
}

/// How a row, or a part of one, is spread over lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTile {
    pub(crate) lanes: u64,
    pub(crate) vec4s: u64,
}

impl RowTile {
    pub(crate) fn elements(self) -> u64 {
        4 * self.lanes * self.vec4s
    }
}

pub(crate) struct RowsPolicy {
    /// The maximum number of vec4s in the registers of a thread.
    pub(crate) max: u64,
    /// Vec4s of a thread for long rows.
    pub(crate) wanted: u64,
    /// Lanes beyond which a thread takes more than one vec4.
    pub(crate) enough: u64,
    pub(crate) workgroup: u64,
}

pub(crate) fn policy(profile: &DeviceProfile) -> RowsPolicy {
    let workgroup = 256.min(u64::from(profile.limits.max_invocations));
    // Text grows with the number of registers, and software drivers compile slowly.
    let max = if profile.quirks.slow_compiler { 4 } else { 16 };
    RowsPolicy { max, wanted: 4, enough: 32, workgroup }
}

pub(crate) fn tile(vec4s: u64, policy: &RowsPolicy) -> RowTile {
    let lanes = if vec4s <= policy.enough {
        vec4s.next_power_of_two()
    } else {
        vec4s.div_ceil(policy.wanted).next_power_of_two().clamp(policy.enough, policy.workgroup)
    };
    RowTile { lanes, vec4s: vec4s.div_ceil(lanes) }
}

/// Rejects operands above the largest buffer and rows above the largest binding.
pub(crate) fn check_rows(op: &str, operand: &Operand, n: usize, profile: &DeviceProfile) -> Result<()> {
    let dtype = operand.dtype;
    profile.check_buffers(op, std::slice::from_ref(operand), "take fewer rows at a time")?;
    let bytes = (n as u64).saturating_mul(dtype.size() as u64);
    profile.check_row(op, format_args!("a row of {n} {dtype}"), bytes, "take shorter rows")?;
    index_u32(op, "elements of a row", n)?;
    Ok(())
}

/// Constants and flags of the reduction over `lanes` threads of a workgroup.
pub(crate) fn reduction(lanes: u64, workgroup: u64, profile: &DeviceProfile) -> Spec {
    let subgroups = profile.features.subgroups;
    Spec::new()
        .constant("WORKGROUP_SIZE", workgroup as u32)
        .constant("LANES", lanes as u32)
        .flag("SUBGROUPS", subgroups)
        .flag("ACROSS", subgroups && lanes > u64::from(profile.subgroup_sizes.0))
}
