// Stores four elements of the output, those that the row has.
#import element/f32 as element
#import attention/ragged

const OUTPUT_BINDING: u32 = 4u;
#if VALUE_DIMS % 4 > 0
#if HALVES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<atomic<u32>>;

#put shared_words(output, 16)
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;
#endif
#else
#if HALVES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec2<u32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<u32>>;
#endif
#endif

#block store_rows(base)
fn store_vec4(row: u32, column: u32, x: vec4<f32>) {
#if VALUE_DIMS % 4 > 0
    let at = row * VALUE_DIMS + 4u * column - 4u * params.{base};
#for e in 4
    if 4u * column + {e}u < VALUE_DIMS {
#if HALVES
        store_element(at + {e}u, encode(x[{e}], 0.0));
#else
        output[at + {e}u] = encode(x[{e}], 0.0);
#endif
    }
#end
#else
    let at = row * VALUE_VEC4S + column - params.{base};
#if HALVES
    output[at] = vec2(encode(x.x, x.y), encode(x.z, x.w));
#else
    output[at] = bitcast<vec4<u32>>(x);
#endif
#endif
}
#end
#if GENERAL
#put store_rows(base_output)
#else
#put store_rows(base_q)
#endif
