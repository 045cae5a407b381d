// The elements from `by` on, then those before it.
#import primitives/elements

fn made(i: u32) -> u32 {
    let left = params.n - params.by;
    return bits_of(select(i - left, i + params.by, i < left));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn rotate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_words(workgroup_index(group), lane);
}
