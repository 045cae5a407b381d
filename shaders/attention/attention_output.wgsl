// Stores four elements of the output.
#import element/f32 as element

const OUTPUT_BINDING: u32 = 4u;
#if HALVES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec2<u32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<u32>>;
#endif

fn store_vec4(row: u32, column: u32, x: vec4<f32>) {
    let at = row * VEC4S + column - params.base_q;
#if HALVES
    output[at] = vec2(encode(x.x, x.y), encode(x.z, x.w));
#else
    output[at] = bitcast<vec4<u32>>(x);
#endif
}
