// Each element less the one before; the first as it is.
#import primitives/elements

fn made(i: u32) -> u32 {
    let bits = bits_of(i);
    let difference = decode(bits, 0u) - decode(bits_of(max(i, 1u) - 1u), 0u);
    return select(encode(difference, difference), bits, i == 0u);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn adjacent_difference(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_words(workgroup_index(group), lane);
}
