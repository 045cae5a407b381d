// y = alpha A x + beta y, A in CSR (N. Bell and M. Garland 2009). LANES neighbouring threads sum a row and join their
// sums: by shuffles with SUBGROUPS (LANES is at most the smallest subgroup), else by a tree in workgroup memory. A
// workgroup takes WORKGROUP_SIZE / LANES rows.
#import sparse/spmv_params
#import sparse/spmv_rows
#import sparse/spmv_vector
#import sparse/spmv_walk
#import sparse/spmv_result
#if SUBGROUPS
#import sparse/spmv_join_shuffle
#else
#import sparse/spmv_join_tree
#endif

const PADDED: bool = false;
const LANES: u32 = 8u;
const ROWS: u32 = WORKGROUP_SIZE / LANES;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_vector(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
#endif
) {
    let first = workgroup_index(group) * ROWS;
    if first >= params.rows {
        return;
    }
#if SUBGROUPS
    let invocation = sub_id * sub_size + sub_lane;
#else
    let invocation = index;
#endif
    let row = first + invocation / LANES;
    var sum = 0.0;
    if row < params.rows {
        let range = row_range(row);
        sum = walk(range.x + invocation % LANES, range.y, LANES);
    }
    let total = join_lanes(sum, invocation, LANES);
    if invocation % LANES == 0u {
        put(row, total);
    }
}
