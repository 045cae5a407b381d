// Queries of f32.
const Q_BINDING: u32 = 1u;
@group(0) @binding(Q_BINDING) var<storage, read> q: array<vec4<f32>>;

fn query_four(row: u32, four: u32) -> vec4<f32> {
    return q[row * FOURS + four - params.base_q];
}
