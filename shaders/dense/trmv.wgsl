// y = op(A) x for a triangular matrix.
#import dense/band_product

@compute @workgroup_size(WORKGROUP_SIZE)
fn trmv(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    band_product(group, lane);
}
