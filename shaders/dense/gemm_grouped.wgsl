// Products of matrices of different shapes: a workgroup computes a tile of one C. It finds the product by bisection of
// the first tiles. A thread computes 4 x 4 elements; tiles of A and B pass through workgroup memory. With OFFSETS the
// device says where matrices begin, and a product that would leave an operand is left out.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const TILE: u32 = 64u;
const TILE_K: u32 = 16u;
const LOADS: u32 = TILE * TILE_K / WORKGROUP_SIZE;
// Columns of A's tile are stored from lanes 16 apart: the pitch spreads them over the banks.
const PITCH: u32 = TILE + 4u;

struct Params { products: u32, tiles: u32, len_a: u32, len_b: u32, len_c: u32, alpha: f32, beta: f32 }
struct GroupedProduct {
    first_tile: u32,
    m: u32,
    n: u32,
    k: u32,
    // Where its matrices begin or, with OFFSETS, the number of the product.
    a: u32,
    b: u32,
    c: u32,
    across: u32, // tiles in a row of C
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> products: array<GroupedProduct>;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> c: array<f32>;
#if OFFSETS
@group(0) @binding(5) var<storage, read> offsets: array<u32>;
#endif

var<workgroup> wg_a: array<f32, TILE_K * PITCH>;
var<workgroup> wg_b: array<f32, TILE_K * TILE>;

// Whether `len` elements from `begin` on lie within `all`.
fn lies_within(begin: u32, len: u32, all: u32) -> bool { return begin <= all && len <= all - begin; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_grouped(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    var low = 0u;
    var high = params.products - 1u;
    while low < high {
        let middle = (low + high + 1u) / 2u;
        if products[middle].first_tile <= tile { low = middle; } else { high = middle - 1u; }
    }
    let product = products[low];
    var begin_a = product.a;
    var begin_b = product.b;
    var begin_c = product.c;
#if OFFSETS
    begin_a = offsets[3u * product.a];
    begin_b = offsets[3u * product.a + 1u];
    begin_c = offsets[3u * product.a + 2u];
    if !lies_within(begin_a, product.m * product.k, params.len_a)
        || !lies_within(begin_b, product.k * product.n, params.len_b)
        || !lies_within(begin_c, product.m * product.n, params.len_c) { return; }
#endif
    let number = tile - product.first_tile;
    let first_row = number / product.across * TILE;
    let first_column = number % product.across * TILE;
    let row = local / 16u * 4u;
    let column = local % 16u * 4u;
#for r in 4
#for s in 4
    var sum_{r}_{s} = 0.0;
#end
#end
    // Without a factor nothing of A and B is read.
    let end = select(product.k, 0u, params.alpha == 0.0);
    for (var i = 0u; i < end; i += TILE_K) {
#for j in LOADS
        {
            let at = local + {j * WORKGROUP_SIZE}u;
            let a_row = first_row + at / TILE_K;
            let a_column = i + at % TILE_K;
            var x = 0.0;
            if a_row < product.m && a_column < product.k { x = a[begin_a + a_row * product.k + a_column]; }
            wg_a[at % TILE_K * PITCH + at / TILE_K] = x;
            let b_row = i + at / TILE;
            let b_column = first_column + at % TILE;
            var y = 0.0;
            if b_row < product.k && b_column < product.n { y = b[begin_b + b_row * product.n + b_column]; }
            wg_b[at] = y;
        }
#end
        workgroupBarrier();
#for step in TILE_K
        {
#for r in 4
            let a_{r} = wg_a[{step * PITCH + r}u + row];
            let b_{r} = wg_b[{step * TILE + r}u + column];
#end
#for r in 4
#for s in 4
            sum_{r}_{s} = fma(a_{r}, b_{s}, sum_{r}_{s});
#end
#end
        }
#end
        workgroupBarrier();
    }
#for r in 4
#for s in 4
    if first_row + row + {r}u < product.m && first_column + column + {s}u < product.n {
        let at = begin_c + (first_row + row + {r}u) * product.n + first_column + column + {s}u;
        var result = params.alpha * sum_{r}_{s};
        if params.beta != 0.0 { result = fma(params.beta, c[at], result); }
        c[at] = result;
    }
#end
#end
}
