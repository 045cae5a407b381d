// y = beta y: before a product that adds to y, or without any. One thread per element.
#import sparse/spmv_params
#import sparse/spmv_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_scale(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row >= params.rows {
        return;
    }
    if params.read_y != 0u {
        y[row] *= params.beta;
    } else {
        y[row] = 0.0;
    }
}
