// Copies one channel of an image, to be counted: one thread copies a word, four pixels of bytes, two of f16 (HALVES),
// one of f32.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    pixels: u32,
    first: u32, // the channel of the first pixel
    step: u32,  // elements from a pixel to the next
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn equalize_split(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
#if BYTES
    if at >= (params.pixels - 1u) / 4u + 1u { return; }
    var word = 0u;
    for (var i = 0u; i < min(4u, params.pixels - 4u * at); i++) {
        let place = params.first + (4u * at + i) * params.step;
        word |= ((input[place / 4u] >> (8u * (place % 4u))) & 255u) << (8u * i);
    }
    output[at] = word;
#else
#if HALVES
    if at >= (params.pixels - 1u) / 2u + 1u { return; }
    var word = 0u;
    for (var i = 0u; i < min(2u, params.pixels - 2u * at); i++) {
        let place = params.first + (2u * at + i) * params.step;
        word |= ((input[place / 2u] >> (16u * (place % 2u))) & 0xffffu) << (16u * i);
    }
    output[at] = word;
#else
    if at < params.pixels { output[at] = input[params.first + at * params.step]; }
#endif
#endif
}
