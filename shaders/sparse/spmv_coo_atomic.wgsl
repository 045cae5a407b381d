// y += alpha A x, A in COO in any order, by atomics; for comparison. One thread per entry.
#import sparse/spmv_params
#import sparse/spmv_values
#import sparse/spmv_vector
#import sparse/spmv_atomic

@group(0) @binding(1) var<storage, read> row_idxs: array<u32>;
@group(0) @binding(2) var<storage, read> col_idxs: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_coo_atomic(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.entries {
        add(row_idxs[at], product(value(at), col_idxs[at]));
    }
}
