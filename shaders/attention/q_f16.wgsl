// Reads queries of f16 as f32.
const Q_BINDING: u32 = 1u;
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec2<u32>>;

fn query_vec4(row: u32, column: u32) -> vec4<f32> {
    let words = q[row * VEC4S + column - params.base_q];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
