// Brightness of RGB pixels, byte by byte: one thread computes four pixels, which share a word.
#import image/grey_weigh

fn byte_at(i: u32) -> u32 { return (input[i / 4u] >> (8u * (i % 4u))) & 255u; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn grey_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= (params.pixels - 1u) / 4u + 1u { return; }
    var word = 0u;
    for (var i = 0u; i < min(4u, params.pixels - 4u * at); i++) {
        let r = (4u * at + i) * params.step;
        let g = r + params.colour;
        word |= weigh(byte_at(r), byte_at(g), byte_at(g + params.colour)) << (8u * i);
    }
    put_word(at, word);
}
