//! Counts that only the device knows: of elements, and of the workgroups of a later dispatch.

use super::{Access, Binding, Decision, Grid, Kernel, Operand, Program, kernel_params};
use crate::element::DType;
use crate::shader::Spec;

kernel_params! { struct FoldCountParams { before: u32, held: u32, width: u32, skip: u32, each: u32 } }

/// Selects kernels that read the number of elements from the binding `at` (`shaders/dispatch/extent.wgsl`), if it is
/// `counted` on the device.
pub(crate) fn limited(spec: Spec, counted: bool, at: u32) -> Spec {
    if counted { spec.flag("LIMITED", true).constant("LENGTH_BINDING", at) } else { spec }
}

/// What a dispatch covers: counted entries, of some items each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Entries that earlier dispatches cover.
    pub(crate) before: u32,
    /// Maximum of entries that this one covers.
    pub(crate) held: u32,
    pub(crate) width: u32,
    /// Items before the first entry that workgroups walk, too.
    pub(crate) skip: u32,
    /// Items of a workgroup.
    pub(crate) each: u32,
}

impl Covered {
    /// `held` entries of one item behind `before` others, `each` a workgroup.
    pub(crate) fn new(before: u32, held: u32, each: u32) -> Self {
        Self { before, held, width: 1, skip: 0, each }
    }

    /// Adds the dispatch that computes the workgroups from `count`: three u32, folded as in [`Grid::fold`].
    fn fold(self, program: &mut Program, count: Binding, workgroups: Binding) {
        let Self { before, held, width, skip, each } = self;
        let kernel = program.kernel(Kernel::of_file("dispatch/fold_count", Spec::new()));
        let params = FoldCountParams { before, held, width, skip, each };
        program.dispatch(kernel, &params, vec![count, workgroups], Grid::fold(1));
    }
}

/// Computes from a count the workgroups of `items` items each that cover it, at most as many as cover `most`.
pub(crate) fn workgroups(items: u32, most: u32) -> Program {
    let mut program = Program::new("workgroups", Decision::policy("folded", "the count lies on the device"));
    let operand = |name, len, access| Operand { name, dtype: DType::U32, len, access };
    program.operands = vec![operand("count", 1, Access::Read), operand("workgroups", 3, Access::Write)];
    let [count, workgroups] = [0, 1].map(|i| Binding::operand(i, &program.operands));
    Covered::new(0, most, items).fold(&mut program, count, workgroups);
    program
}

/// Workgroups from which on a launch for the count pays. A workgroup that begins behind the count ends at once: on an
/// H100 10,000 of them take about 1 us, and the dispatch that computes the workgroups about 3 us. That is 1 % of the
/// work of this many workgroups, and a tenth of what all of them take if none has work.
const WORTH: u64 = 1 << 17;

/// Launches dispatches for the operand `length`, not for the most that they hold, where that pays. Each is named by its
/// place in the program, with what it covers; those that cover the same share the counts of workgroups.
pub(crate) fn launch_for(program: &mut Program, length: Binding, covered: &[(usize, Covered)]) {
    let mut groups: Vec<(Covered, Vec<usize>)> = Vec::new();
    for &(at, of) in covered {
        match groups.iter_mut().find(|(known, _)| *known == of) {
            Some((_, places)) => places.push(at),
            None => groups.push((of, vec![at])),
        }
    }
    let launched = |at: &usize| match program.dispatches[*at].grid {
        Grid::Direct(workgroups) => workgroups.map(u64::from).iter().product(),
        Grid::Indirect { .. } => 0,
    };
    groups.retain(|(_, places)| places.iter().map(launched).sum::<u64>() >= WORTH);
    for (of, places) in &groups {
        let workgroups = program.scratch(12);
        for &at in places {
            program.dispatches[at].grid = Grid::Indirect { resource: workgroups.resource, offset: 0 };
        }
        of.fold(program, length, workgroups);
    }
    // The counts come before all that is launched by them, and behind what may write the length.
    if let Some(&first) = groups.iter().flat_map(|(_, places)| places).min() {
        program.dispatches[first..].rotate_right(groups.len());
    }
}

#[cfg(test)]
#[cfg(feature = "primitives")]
mod tests;
