// Reads queries of f32.
const Q_BINDING: u32 = 1u;
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec4<f32>>;

fn query_vec4(row: u32, column: u32) -> vec4<f32> {
    return q[row * VEC4S + column - params.base_q];
}
