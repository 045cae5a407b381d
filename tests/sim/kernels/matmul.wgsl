// A tiled matrix product: without barriers, without a partial last tile, or without zeros after the last terms.
struct Params { m: u32, k: u32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>; // <- DROPS_TILE
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

const TILE = 8u;
var<workgroup> wg_a: array<array<f32, TILE>, TILE>;
var<workgroup> wg_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn multiply(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) at: vec3<u32>) {
    var sum = 0.0;
#if DROPS_TILE
    let tiles = params.k / TILE;
#else
    let tiles = (params.k + TILE - 1u) / TILE;
#endif
    for (var tile = 0u; tile < tiles; tile++) {
        let k_a = tile * TILE + at.x;
        let k_b = tile * TILE + at.y;
        let in_a = id.y < params.m && k_a < params.k;
        let in_b = id.x < params.n && k_b < params.k;
#if NO_ZERO_FILL
        if in_a { wg_a[at.y][at.x] = a[id.y * params.k + k_a]; }
        if in_b { wg_b[at.y][at.x] = b[k_b * params.n + id.x]; }
#else
        wg_a[at.y][at.x] = select(0.0, a[min(id.y * params.k + k_a, arrayLength(&a) - 1u)], in_a); // <- other
        wg_b[at.y][at.x] = select(0.0, b[min(k_b * params.n + id.x, arrayLength(&b) - 1u)], in_b); // <- other
#endif
#if !NO_BARRIER
        workgroupBarrier();
#endif
        for (var k = 0u; k < TILE; k++) {
            sum += wg_a[at.y][k] * wg_b[k][at.x]; // <- NO_BARRIER <- NO_ZERO_FILL
        }
#if !NO_BARRIER
        workgroupBarrier();
#endif
    }
    if id.x < params.n && id.y < params.m {
        c[id.y * params.n + id.x] = sum;
    }
}
