// The elements from the last to the first.
#import primitives/elements

fn made(i: u32) -> u32 { return bits_of(extent() - 1u - i); }

@compute @workgroup_size(WORKGROUP_SIZE)
fn reverse(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_words(workgroup_index(group), lane);
}
