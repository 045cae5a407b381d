// y = alpha A x + beta y, A by slices of `slice` rows as wide as their longest row (SELL-C-sigma, M. Kreutzer
// et al. 2014): one invocation sums a row, and neighbouring invocations load neighbouring places.
#import sparse/spmv_params
#import sparse/spmv_slices
#import sparse/spmv_vector
#import sparse/spmv_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_sell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    // There are as many places as slices have rows, some of them behind the last row.
    if place >= params.rows {
        return;
    }
    put(row_order[place], walk_slice(place));
}
