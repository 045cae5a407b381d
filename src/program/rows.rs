//! Rows of matrices, shared by the lanes of a workgroup: how they are spread, bound, and reduced.

use super::{Binding, DeviceProfile, Operand, Resource, kernel_params};
use crate::error::{Result, err};
use crate::shader::Spec;
use crate::shape::index_u32;

kernel_params! {
    /// Of the kernels over rows: `shaders/nn/rows_params.wgsl`.
    pub(crate) struct Params {
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
pub(crate) struct Tile {
    pub(crate) lanes: u64,
    /// Times four elements of each lane.
    pub(crate) quads: u64,
}

impl Tile {
    /// Elements that it holds.
    pub(crate) fn elements(self) -> u64 {
        4 * self.lanes * self.quads
    }
}

/// How rows are spread on a device.
pub(crate) struct Policy {
    /// Most times four elements in the registers of an invocation.
    pub(crate) most: u64,
    /// As many as it should have, where rows are long.
    pub(crate) wanted: u64,
    /// Lanes from which on it should have more than one.
    pub(crate) enough: u64,
    pub(crate) workgroup: u64,
}

/// What suits the device.
pub(crate) fn policy(profile: &DeviceProfile) -> Policy {
    let workgroup = 256.min(u64::from(profile.limits.max_invocations));
    // Text grows with the number in registers, and processors compile slowly.
    let most = if profile.quirks.slow_compiler { 4 } else { 16 };
    Policy { most, wanted: 4, enough: 32, workgroup }
}

/// The smallest tile that holds `quads` times four elements.
pub(crate) fn tile(quads: u64, policy: &Policy) -> Tile {
    let lanes = if quads <= policy.enough {
        quads.next_power_of_two()
    } else {
        quads.div_ceil(policy.wanted).next_power_of_two().clamp(policy.enough, policy.workgroup)
    };
    Tile { lanes, quads: quads.div_ceil(lanes) }
}

/// Rows that one binding holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Number of the first of them.
    pub(crate) first: u64,
    pub(crate) rows: u64,
    /// Where they begin in the binding, in elements.
    pub(crate) origin: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Piece {
    /// So many rows of `n` elements of `size` bytes, from the row `first` on.
    pub(crate) fn new(first: u64, rows: u64, n: u64, size: u64) -> Self {
        let begin = first * n * size;
        let offset = begin / 256 * 256;
        let origin = (begin - offset) / size;
        Self { first, rows, origin, offset, size: (origin + rows * n) * size }
    }

    /// Of an operand of such rows.
    pub(crate) fn of(self, resource: Resource) -> Binding {
        Binding { resource, offset: self.offset, size: self.size }
    }

    /// Of an operand with so many bytes for each row; of a piece of [`aligned_pieces`].
    pub(crate) fn sized(self, resource: Resource, bytes: u64) -> Binding {
        Binding { resource, offset: self.first * bytes, size: self.rows * bytes }
    }
}

/// All of `rows` rows of `n` elements of `size` bytes, in as few pieces as bindings allow.
pub(crate) fn pieces(rows: u64, n: u64, size: u64, profile: &DeviceProfile) -> Vec<Piece> {
    let limit = profile.limits.max_storage_binding;
    let most = if rows * n * size <= limit { rows } else { (room(profile) / size / n).max(1) };
    let piece = rows.div_ceil(rows.div_ceil(most.max(1)).max(1)).max(1);
    let of = |first: u64| Piece::new(first, piece.min(rows - first), n, size);
    (0..rows).step_by(piece as usize).map(of).collect()
}

/// As [`pieces`], of a multiple of 256 rows each, so that rows of operands of every size begin at aligned offsets.
pub(crate) fn aligned_pieces(rows: u64, n: u64, size: u64, profile: &DeviceProfile) -> Vec<Piece> {
    const STEP: u64 = 256;
    if rows * n * size <= profile.limits.max_storage_binding {
        return pieces(rows, n, size, profile);
    }
    let blocks = pieces(rows.div_ceil(STEP), STEP * n, size, profile);
    let of = |block: Piece| {
        let first = block.first * STEP;
        let rows = (block.rows * STEP).min(rows - first);
        Piece { first, rows, origin: 0, offset: first * n * size, size: rows * n * size }
    };
    blocks.into_iter().map(of).collect()
}

/// Bytes of a piece: it may begin up to 255 bytes into its binding.
fn room(profile: &DeviceProfile) -> u64 {
    (profile.limits.max_storage_binding / 256 * 256).saturating_sub(256)
}

/// Refuses operands that no buffer holds, and rows that no binding holds.
pub(crate) fn check_rows(
    op: &str,
    operand: &Operand,
    rows: usize,
    n: usize,
    profile: &DeviceProfile,
) -> Result<()> {
    let (limits, dtype, size) = (&profile.limits, operand.dtype, operand.dtype.size() as u64);
    if operand.bytes() > limits.max_buffer_size {
        return Err(err!(
            TooLarge,
            "{op}: {} of {rows} x {n} {dtype} has {} bytes; the largest buffer of {} has {}; take fewer rows at a time",
            operand.name,
            operand.bytes(),
            profile.name,
            limits.max_buffer_size
        ));
    }
    if n as u64 > room(profile) / size {
        return Err(err!(
            TooLarge,
            "{op}: a row of {n} {dtype} has {} bytes; {} is the most that {} binds of one",
            (n as u64).saturating_mul(size),
            room(profile) / size * size,
            profile.name
        ));
    }
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
