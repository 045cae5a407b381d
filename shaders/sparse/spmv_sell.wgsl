// y = alpha A x + beta y, A in SELL-C-sigma (M. Kreutzer et al. 2014). One thread sums a row of a slice; neighbouring
// threads load neighbouring slots.
#import sparse/spmv_params
#import sparse/spmv_slices
#import sparse/spmv_vector
#import sparse/spmv_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_sell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    // Slices may have more positions than there are rows.
    if place >= params.rows {
        return;
    }
    put(row_order[place], walk_slice(place));
}
