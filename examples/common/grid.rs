//! Grids of own kernels.

use tilework::program::Grid;

/// Returns the workgroups for one thread per item, indexed by `workgroup_index()`.
pub(crate) fn workgroups(items: usize, workgroup_size: usize) -> [u32; 3] {
    match Grid::fold(items.div_ceil(workgroup_size) as u64) {
        Grid::Direct(workgroups) => workgroups,
        Grid::Indirect { .. } => unreachable!("a fold is direct"),
    }
}
