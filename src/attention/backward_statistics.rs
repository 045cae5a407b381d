//! The statistics of queries, from what the forward pass saved.

use super::backward_layout::GradientLowering;
use crate::program::prelude::*;

kernel_params! {
    struct SavedParams {
        rows: u32,
        base_q: u32,
        base_rows: u32,
    }
}

const WORKGROUP_SIZE: u32 = 256;
/// Threads that share a query.
const LANES: u32 = 8;

/// The base of the logarithms of a variant's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogBase {
    Two,
    E,
}

/// Dispatches the kernel for a run of (sequence, kv head) pairs, whose statistics begin `statistics`.
pub(super) fn append(
    of: &GradientLowering<'_>, base: LogBase, chunk: BoundChunk, statistics: Binding, program: &mut Program,
) {
    let (forward, size) = (&of.op.forward, of.dtype.size());
    let head = forward.head_size;
    let rows = (forward.group() * forward.queries) as u64;
    let [q, logarithms] = [rows * (head * size) as u64, 4 * rows].map(|bytes| chunk.span(bytes));
    let spec = Spec::new()
        .constant("HEAD", head as u32)
        .constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
        .constant("LANES", LANES)
        .flag("BINARY", base == LogBase::Two)
        .flag("VECTORS", (head * size).is_multiple_of(16))
        .slot("element", element_fragment(of.dtype));
    let kernel = program.kernel(Kernel::of_file("attention/attention_backward_statistics", spec));
    let params = SavedParams {
        rows: (rows * chunk.count) as u32,
        base_q: (q.before / size as u64) as u32,
        base_rows: (logarithms.before / DType::F32.size() as u64) as u32,
    };
    // Operands: q, k, v, dy, output, logsumexp.
    let bindings =
        vec![q.of(Resource::Operand(3)), q.of(Resource::Operand(4)), logarithms.of(Resource::Operand(5)), statistics];
    let of_workgroup = u64::from(WORKGROUP_SIZE / LANES);
    program.dispatch(kernel, &params, bindings, Grid::fold((rows * chunk.count).div_ceil(of_workgroup)));
}
