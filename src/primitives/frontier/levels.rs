//! Programs that make the levels of a tree, each from the one above.

use super::OpenParams;
use crate::primitives::Select;
use crate::program::prelude::*;

const CHILDREN: u32 = 4;

/// The scratch of a tree whose levels share one array of nodes, and the program under construction. Each step lists the
/// nodes that split, counts their children, and makes these by an indirect dispatch.
pub(in crate::primitives) struct Levels {
    pub(in crate::primitives) program: Program,
    /// Whether each node of the level splits.
    pub(in crate::primitives) flags: Binding,
    /// The index of each node of the level.
    pub(in crate::primitives) numbers: Binding,
    pub(in crate::primitives) length: Binding,
    /// The number of nodes of all levels: an operand.
    pub(in crate::primitives) count: Binding,
    parents: Binding,
    wanted: Binding,
    workgroups: Binding,
    shared: Vec<usize>,
    rooms: Vec<u32>,
    most: u32,
}

/// Returns the maximum nodes of each level: `first` in the first, and then four for each node above that may split, of
/// which there are at most `splitting`. Levels that cannot have nodes are left out.
pub(in crate::primitives) fn rooms(first: u64, more_levels: u32, splitting: u64) -> Vec<u64> {
    let below = |above: &u64| Some(u64::from(CHILDREN) * (*above).min(splitting)).filter(|n| *n > 0);
    std::iter::successors(Some(first), below).take(more_levels as usize + 1).collect()
}

impl Levels {
    /// Begins with a program whose operands are there. `rooms` are those of its levels, and `most` is the room for all
    /// nodes.
    pub(in crate::primitives) fn new(mut program: Program, count: Binding, rooms: &[u64], most: u32) -> Self {
        let rooms: Vec<_> = rooms.iter().map(|room| (*room).min(most.into()) as u32).collect();
        let largest = 4 * u64::from(rooms.iter().copied().max().unwrap_or(1));
        let [flags, numbers, parents] = [(); 3].map(|()| program.scratch(largest));
        let [length, wanted] = [(); 2].map(|()| program.scratch(4));
        let workgroups = program.scratch(12);
        let shared = Vec::new();
        Self { program, flags, numbers, length, count, parents, wanted, workgroups, shared, rooms, most }
    }

    /// Adds the levels below the first. `params` are those of a level, counted from 1 for the second; a workgroup makes
    /// `each` nodes. The kernel binds the count, the length, the parents, then `bindings`.
    pub(in crate::primitives) fn grow<P: KernelParams>(
        mut self, kernel: Kernel, each: u32, params: impl Fn(u32) -> P, bindings: &[Binding], profile: &DeviceProfile,
    ) -> Result<Program> {
        let open = Kernel::of_file("primitives/frontier_open", Spec::new().flag("TREE", true));
        let [open, kernel] = [open, kernel].map(|kernel| self.program.kernel(kernel));
        let Self { flags, numbers, length, count, parents, wanted, workgroups, .. } = self;
        for (level, pair) in (1..).zip(self.rooms.windows(2)) {
            let select = Select::new(pair[0] as usize).counted().variant(self.program.variant());
            let select = Op::<u32>::lower(&select, profile)?;
            let operands = [numbers, flags, length, parents, wanted].map(|binding| (binding.resource, 0));
            self.program.append_at(select, &operands, &mut self.shared);
            let open_params = OpenParams { children: CHILDREN, room: pair[1], most: self.most, each };
            let bound = vec![wanted, length, count, workgroups];
            self.program.dispatch(open, &open_params, bound, Grid::fold(1));
            let bound = [count, length, parents].iter().chain(bindings).copied().collect();
            let grid = Grid::Indirect { resource: workgroups.resource, offset: 0 };
            self.program.dispatch(kernel, &params(level), bound, grid);
        }
        Ok(self.program)
    }
}
