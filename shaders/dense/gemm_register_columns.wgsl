// A tile of TILE_K x TILE_N of op(B) in workgroup memory, read by four columns.
const TILE_K: u32 = 4u;

var<workgroup> wg_b: array<f32, TILE_K * TILE_N>;

fn columns_of_b(i: u32, group: u32) -> vec4<f32> {
    let x = i * TILE_N + 4u * group;
    return vec4(wg_b[x], wg_b[x + 1u], wg_b[x + 2u], wg_b[x + 3u]);
}
