// Shared by the kernels that collect the k best in order of position: a tile of keys, and the tests for better than,
// and as good as, the k-th best.
#import dispatch/extent
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 16u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS;

struct Params {
    n: u32,          // keys of the part
    tiles: u32,      // of the part
    first_tile: u32, // tiles before the part
    all_tiles: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
// The number of the k-th best, and how many of those as good are among the k best.
@group(0) @binding(2) var<storage, read> search: array<u32>;

#put extent(params.n, params.first_tile * TILE)

// 1 for a better key, 65536 for one that is as good.
fn worth(at: u32, kth: u32) -> u32 {
    let number = order(keys[min(at, max(extent(), 1u) - 1u)]);
    let known = select(select(0u, 65536u, number == kth), 1u, number < kth);
    return select(0u, known, at < extent());
}
