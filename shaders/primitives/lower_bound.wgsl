// The number of elements that are below each needle.
#import primitives/search

fn is_before(x: u32, needle: u32) -> bool { return x < needle; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn lower_bound(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    search(workgroup_index(group), lane);
}
