// Reduction, the teaching ladder: one workgroup reduces one tile of a row with the tree that the variant imports; one
// thread loads ITEMS_PER_THREAD elements. Levels repeat until one result a row is left.
// Algorithm: M. Harris, Optimizing Parallel Reduction in CUDA (2007).
#import primitives/reduce_params
#import workgroup/reduce_sequential as tree

const ITEMS_PER_THREAD: u32 = 1u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_tree(
#put thread_builtins(lane, SUBGROUPS)
) {
    let tile = workgroup_index(group);
    let row = tile / params.parts;
    let part = tile % params.parts;
    if row >= params.rows { return; }
    let row_origin = params.origin + row * params.row_stride;
    var acc = op_identity();
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = (part * ITEMS_PER_THREAD + i) * WORKGROUP_SIZE + lane;
        if at < extent() { acc = op_combine(acc, load(row_origin + at, params.column + at)); }
    }
#if SUBGROUPS
    let total = workgroup_reduce(acc, lane, sub_lane, sub_size, sub_id, sub_count);
#else
    let total = workgroup_reduce(acc, lane);
#endif
    if lane == 0u { store(params.first + row * params.part_stride + part, total); }
}
