// Each element less the one before; the first as it is.
#import primitives/elements

fn made(i: u32) -> u32 {
    let bits = bits_of(i);
    if i == 0u { return bits; }
    let difference = decode(bits, 0u) - decode(bits_of(i - 1u), 0u);
    return encode(difference, difference);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn adjacent_difference(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_word(workgroup_index(group) * WORKGROUP_SIZE + lane);
}
