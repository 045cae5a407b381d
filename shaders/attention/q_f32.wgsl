// Reads queries of f32.
#import attention/ragged
const Q_BINDING: u32 = 1u;
#if DIMS % 4 > 0
@group(0) @binding(Q_BINDING) var<storage, read> q: array<f32>;

fn query_element(row: u32, at: u32) -> f32 {
    return q[at];
}
#put ragged_vec4(query, DIMS, base_q)
#else
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec4<f32>>;

fn query_vec4(row: u32, column: u32) -> vec4<f32> {
    return q[row * VEC4S + column - params.base_q];
}
#endif
