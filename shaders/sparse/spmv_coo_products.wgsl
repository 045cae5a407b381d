// The product of each unsorted entry with its element of x, for a sort by row and spmv_coo. One thread per entry.
#import sparse/spmv_params
#import sparse/spmv_values
#import sparse/spmv_vector

@group(0) @binding(1) var<storage, read> col_idxs: array<u32>;
@group(0) @binding(4) var<storage, read_write> products: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_coo_products(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.entries {
        products[at] = product(value(at), col_idxs[at]);
    }
}
