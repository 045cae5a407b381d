//! Grids of kernels of one's own.

use tilework::program::Grid;

/// The workgroups of a kernel with a thread for each of `items`, for its `workgroup_index()`.
pub(crate) fn workgroups(items: usize, workgroup_size: usize) -> [u32; 3] {
    match Grid::fold(items.div_ceil(workgroup_size) as u64) {
        Grid::Direct(workgroups) => workgroups,
        Grid::Indirect { .. } => unreachable!("a fold is direct"),
    }
}
