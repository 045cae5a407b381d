// Queries of f16, computed in f32.
const Q_BINDING: u32 = 1u;
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec2<u32>>;

fn query_four(row: u32, four: u32) -> vec4<f32> {
    let words = q[row * FOURS + four - params.base_q];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
