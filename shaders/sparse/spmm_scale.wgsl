// C = beta C: before a product that adds to C, or without any. A team takes a row, a thread a chunk of it.
#import sparse/spmm_params
#import sparse/spmm_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_scale(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = join_team(group, lane);
    if row < params.rows && chunk < params.chunks {
        put(row, Chunk());
    }
}
