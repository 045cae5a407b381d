//! Subgroup operations: shuffles, sums, cooperative matrices.

use super::{Machine, Subgroup, Workgroup, lanes_of};
use crate::sim::code::{Address, INVALID, LaneSource, MatrixTile, NONE, Slot};
use crate::sim::memory::MAX_LANES;
use crate::sim::report::FindingKind;
use crate::sim::scalar::{from_f16, to_f16};
use naga::{CollectiveOperation, ScalarKind, SubgroupOperation};

impl Machine<'_> {
    pub(super) fn gather(&self, s: &mut Subgroup, mode: LaneSource, d: usize, a: usize, b: Slot) {
        let w = self.lanes;
        let first = s.first_active() as usize;
        let mut from = [0u32; MAX_LANES];
        from[..w].copy_from_slice(&s.registers[a..a + w]);
        for l in lanes_of(s.active) {
            let by = if b == NONE { 0 } else { s.registers[b as usize * w + l] as usize };
            let lane = match mode {
                LaneSource::BroadcastFirst => first,
                LaneSource::From => by,
                LaneSource::Down => l.wrapping_add(by),
                LaneSource::Up => l.wrapping_sub(by),
                LaneSource::Xor => l ^ by,
                LaneSource::Quad => (l & !3) | (by & 3),
                LaneSource::Swap(with) => l ^ with as usize,
            };
            // WGSL does not define the value of an inactive lane.
            s.registers[d + l] = if lane < w && s.active >> lane & 1 == 1 { from[lane] } else { 0 };
        }
    }

    pub(super) fn collective(
        &self, s: &mut Subgroup, op: SubgroupOperation, scan: CollectiveOperation, (kind, half): (ScalarKind, bool),
        d: usize, a: usize,
    ) {
        let float = kind == ScalarKind::Float;
        let signed = kind == ScalarKind::Sint;
        let f = f32::from_bits;
        let join = |x: u32, y: u32| match op {
            SubgroupOperation::All | SubgroupOperation::And => x & y,
            SubgroupOperation::Any | SubgroupOperation::Or => x | y,
            SubgroupOperation::Xor => x ^ y,
            SubgroupOperation::Add if float => (f(x) + f(y)).to_bits(),
            SubgroupOperation::Add => x.wrapping_add(y),
            SubgroupOperation::Mul if float => (f(x) * f(y)).to_bits(),
            SubgroupOperation::Mul => x.wrapping_mul(y),
            SubgroupOperation::Min if float => f(x).min(f(y)).to_bits(),
            SubgroupOperation::Min if signed => (x as i32).min(y as i32) as u32,
            SubgroupOperation::Min => x.min(y),
            SubgroupOperation::Max if float => f(x).max(f(y)).to_bits(),
            SubgroupOperation::Max if signed => (x as i32).max(y as i32) as u32,
            SubgroupOperation::Max => x.max(y),
        };
        let join = |x, y| if half { from_f16(to_f16(join(x, y))) } else { join(x, y) };
        // Only sums and products are scanned.
        let identity = match op {
            SubgroupOperation::Mul if float => 1f32.to_bits(),
            SubgroupOperation::Mul => 1,
            _ => 0,
        };
        let mut sum: Option<u32> = None;
        for l in lanes_of(s.active) {
            let x = s.registers[a + l];
            let with = sum.map_or(x, |sum| join(sum, x));
            match scan {
                CollectiveOperation::Reduce => {}
                CollectiveOperation::InclusiveScan => s.registers[d + l] = with,
                CollectiveOperation::ExclusiveScan => s.registers[d + l] = sum.unwrap_or(identity),
            }
            sum = Some(with);
        }
        if scan == CollectiveOperation::Reduce {
            s.registers[d..d + self.lanes].fill(sum.unwrap_or(identity));
        }
    }

    /// Finds the addresses of a round of elements of a cooperative matrix. Returns their number.
    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    pub(super) fn tile_targets(
        &mut self, s: &Subgroup, group: &Workgroup, pc: u32, address: Address, stride: Slot, tile: MatrixTile,
        round: u32,
    ) -> usize {
        let w = self.lanes as u32;
        let bound = self.bound[usize::from(address.memory)];
        let stride = s.registers[stride as usize * self.lanes];
        let by = if address.at == NONE { 0 } else { s.registers[address.at as usize * self.lanes] };
        let first = round * w;
        let lanes = w.min(tile.rows * tile.columns - first);
        self.targets.clear();
        for l in 0..lanes {
            let (row, column) = ((first + l) / tile.columns, (first + l) % tile.columns);
            let (major, minor) = if tile.row_major { (row, column) } else { (column, row) };
            let element = u64::from(major) * u64::from(stride) * u64::from(tile.vector) + u64::from(minor);
            let begin = u64::from(by) + u64::from(address.offset) + element * u64::from(tile.width.bytes());
            if by == INVALID || begin + u64::from(tile.width.bytes()) > u64::from(bound.bytes) {
                let code = self.code;
                let name = code.memories[usize::from(address.memory)].name();
                self.find(FindingKind::OutOfBounds, s, group, pc, 0, || {
                    format!("element ({row}, {column}) of a matrix lies outside `{name}` of {} bytes", bound.bytes)
                });
            } else {
                self.targets.push(l as usize, bound.base + begin as u32);
            }
        }
        lanes as usize
    }

    /// Computes `d = a b + c` of cooperative matrices.
    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    pub(super) fn multiply_tiles(
        &mut self, s: &mut Subgroup, group: &Workgroup, pc: u32, d: Slot, [a, b, c]: [Slot; 3],
        [rows, columns, inner]: [u32; 3], half: bool,
    ) {
        let w = self.lanes;
        let at = |slot: Slot| slot as usize * w;
        let tiles = [(a, rows * inner), (b, inner * columns), (c, rows * columns)];
        let registers = |n: u32| n.div_ceil(w as u32);
        let check = self.options.check_nan && !tiles.iter().any(|(t, n)| self.any_nan(s, *t, registers(*n)));
        let element = |r: &[u32], first: Slot, e: u32| f32::from_bits(r[at(first + e / w as u32) + e as usize % w]);
        for row in 0..rows {
            for column in 0..columns {
                let e = row * columns + column;
                let mut sum = element(&s.registers, c, e);
                for k in 0..inner {
                    let x = element(&s.registers, a, row * inner + k);
                    sum += x * element(&s.registers, b, k * columns + column);
                }
                let bits = if half { from_f16(to_f16(sum.to_bits())) } else { sum.to_bits() };
                s.registers[at(d + e / w as u32) + e as usize % w] = bits;
            }
        }
        if check && self.any_nan(s, d, registers(rows * columns)) {
            self.nan_among(s, group, pc);
        }
        // The step counted one fma per thread.
        let there = u64::from(s.full.count_ones());
        self.sink.tally[pc as usize].fma += u64::from(rows * columns * inner) - there;
    }
}
