//! The kernel on cooperative matrices, `shaders/dense/gemm_coop.wgsl`: what it is specialised to, and what that takes.

use super::{Kernel, Tile};
use crate::shader::Spec;

/// How sums reach C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Blocks are stored as they are: C is made of whole ones.
    Whole,
    /// So, but in tiles at the edges of C, which end as `Staged`.
    Direct,
    /// Through workgroup memory, where an element can be reached.
    Staged,
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) tile: Tile,
    /// Rows and columns of C that one subgroup computes.
    pub(super) part: [u32; 2],
    /// Rows and columns of a cooperative matrix: 16 or 8.
    pub(super) side: u32,
    /// Invocations of a subgroup.
    pub(super) lanes: u32,
    pub(super) trans_a: bool,
    pub(super) trans_b: bool,
    /// Whether the factors come as high and low halves.
    pub(super) split: bool,
    /// Whether each step of k has sums of its own.
    pub(super) fresh: bool,
    pub(super) end: End,
}

/// Elements of a load from storage, as the file says.
pub(super) const PIECE: u32 = 8;

/// Elements that a row in workgroup memory is longer than the tile, as the file says.
const PAD: u32 = 8;

impl Form {
    /// Subgroups of a workgroup along the rows and along the columns of the tile.
    fn teams(&self) -> [u32; 2] {
        [self.tile.m / self.part[0], self.tile.n / self.part[1]]
    }

    /// Invocations of a workgroup.
    pub(super) fn invocations(&self) -> u64 {
        self.teams().into_iter().map(u64::from).product::<u64>() * u64::from(self.lanes)
    }

    /// Bytes of workgroup memory.
    pub(super) fn workgroup_bytes(&self) -> u64 {
        let Tile { m, n, k } = self.tile;
        // Rows of the tile as they are stored, and their elements.
        let (rows_a, across_a) = if self.trans_a { (k, m) } else { (m, k) };
        let (rows_b, across_b) = if self.trans_b { (n, k) } else { (k, n) };
        let elements = |rows: u32, across: u32| u64::from(rows) * (u64::from(across) + u64::from(PAD));
        let staged = elements(rows_a, across_a) + elements(rows_b, across_b);
        let halves = if self.split { 2 } else { 1 };
        let end = if self.end == End::Whole { 0 } else { self.invocations() / u64::from(self.lanes) };
        2 * halves * staged + 4 * end * u64::from(self.side * self.side)
    }

    /// What is wrong with the sides, in words.
    pub(super) fn wrong(&self) -> Option<String> {
        let Self { tile: Tile { m, n, k }, part: [rows, columns], side, .. } = *self;
        let whole = |x: u32, of: u32| x > 0 && x.is_multiple_of(of);
        if !whole(rows, side) || !whole(columns, side) || !whole(k, side) {
            return Some(format!(
                "the sides of a subgroup's part, {rows} x {columns}, and the step of k, {k}, must be multiples of {side}, \
                 the side of a cooperative matrix"
            ));
        }
        if rows.saturating_mul(columns) > 128 * 128 || k > 128 {
            return Some("a subgroup's part has at most 16384 elements, a step of k at most 128".into());
        }
        if !whole(m, rows) || !whole(n, columns) {
            return Some(format!("the tile must be made of whole parts of {rows} x {columns}"));
        }
        let invocations = self.invocations();
        let pieces = |x: u32| u64::from(x) * u64::from(k / PIECE);
        if !pieces(m).is_multiple_of(invocations) || !pieces(n).is_multiple_of(invocations) {
            return Some(format!(
                "{invocations} invocations cannot share the loads of {m} x {k} and {k} x {n} elements evenly"
            ));
        }
        None
    }

    /// The kernel, given what its end is specialised to.
    pub(super) fn kernel(&self, end: Spec) -> Kernel {
        let Tile { m, n, k } = self.tile;
        let spec = end
            .constant("TILE_M", m)
            .constant("TILE_N", n)
            .constant("TILE_K", k)
            .constant("PART_M", self.part[0])
            .constant("PART_N", self.part[1])
            .constant("BLOCK_SIDE", self.side)
            .constant("LANES", self.lanes)
            .flag("TRANS_A", self.trans_a)
            .flag("TRANS_B", self.trans_b)
            .flag("LOW", self.split)
            .flag("FRESH", self.fresh)
            .flag("WHOLE_BLOCKS", self.end == End::Whole)
            .flag("DIRECT", self.end == End::Direct);
        Kernel::library("dense/gemm_coop", "gemm_coop", spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::Target;

    #[test]
    fn the_file_takes_what_a_form_says() {
        let ends = [End::Whole, End::Direct, End::Staged];
        for (tile, part, side) in [([128, 64, 32], [64, 32], 16), ([32, 64, 32], [16, 32], 8)] {
            let [m, n, k] = tile;
            for how in 0..12 {
                let form = Form {
                    tile: Tile { m, n, k },
                    part,
                    side,
                    lanes: 32,
                    trans_a: how & 1 != 0,
                    trans_b: how & 2 != 0,
                    split: how & 1 != 0,
                    fresh: how & 2 != 0,
                    end: ends[how / 4],
                };
                assert_eq!(form.wrong(), None);
                // Behind the factors' two halves and their magnitudes.
                let kernel = form.kernel(Spec::new().constant("C_BINDING", 6u32));
                let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
                let interface = module.interface(kernel.entry).unwrap();
                assert_eq!(u64::from(interface.workgroup_size[0]), form.invocations(), "{form:?}");
                assert_eq!(u64::from(interface.workgroup_bytes), form.workgroup_bytes(), "{form:?}");
            }
        }
    }
}
