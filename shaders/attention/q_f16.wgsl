// Reads queries of f16 as f32.
#import attention/ragged
const Q_BINDING: u32 = 1u;
#if DIMS % 4 > 0
@group(0) @binding(Q_BINDING) var<storage, read> q: array<u32>;

fn query_element(row: u32, at: u32) -> f32 {
    return unpack2x16float(q[at / 2u] >> (at % 2u * 16u)).x;
}
#put ragged_vec4(query, DIMS, base_q)
#else
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec2<u32>>;

fn query_vec4(row: u32, column: u32) -> vec4<f32> {
    let words = q[row * VEC4S + column - params.base_q];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
