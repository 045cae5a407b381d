// Writes up to four elements at an index that is a multiple of four. Elements after the last one in its word keep
// their values.
#import element/fours

const OUTPUT: u32 = 2u;

@group(0) @binding(OUTPUT) var<storage, read_write> output: array<Words>;

#if VECTORS
fn store4(at: u32, y: vec4<f32>) { output[at / 4u] = encode4(y); }
#else
#if HALVES
fn store2(at: u32, y: vec2<f32>) {
    var word = encode(y.x, y.y);
    if at + 1u == params.len {
        word = (word & 0xffffu) | (output[at / 2u] & 0xffff0000u);
    }
    output[at / 2u] = word;
}
fn store4(at: u32, y: vec4<f32>) {
    store2(at, y.xy);
    if at + 2u < params.len { store2(at + 2u, y.zw); }
}
#else
fn store4(at: u32, y: vec4<f32>) {
    var bits = bitcast<vec4<u32>>(y);
    for (var i = 0u; i < min(4u, params.len - at); i++) { output[at + i] = bits[i]; }
}
#endif
#endif
