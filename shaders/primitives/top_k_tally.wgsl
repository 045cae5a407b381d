// After the radix select of top-k: one workgroup counts the keys of a tile that are better than the k-th best, and
// those as good.
#import primitives/top_k_tile

// The better ones of each tile, then those as good of each tile.
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;

var<workgroup> wg_better: atomic<u32>;
var<workgroup> wg_as_good: atomic<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_tally(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    if lane == 0u {
        atomicStore(&wg_better, 0u);
        atomicStore(&wg_as_good, 0u);
    }
    workgroupBarrier();
    let kth = search[0];
    var sum = 0u;
    for (var i = 0u; i < ITEMS; i += 4u) {
        let at = tile * TILE + i * WORKGROUP_SIZE + lane;
        let a = worth(at, kth);
        let b = worth(at + WORKGROUP_SIZE, kth);
        let c = worth(at + 2u * WORKGROUP_SIZE, kth);
        let d = worth(at + 3u * WORKGROUP_SIZE, kth);
        sum += (a + b) + (c + d);
    }
    if sum % 65536u > 0u { atomicAdd(&wg_better, sum % 65536u); }
    if sum / 65536u > 0u {
        atomicAdd(&wg_as_good, sum / 65536u);
    }
    workgroupBarrier();
    if lane == 0u {
        counts[params.first_tile + tile] = atomicLoad(&wg_better);
        counts[params.all_tiles + params.first_tile + tile] = atomicLoad(&wg_as_good);
    }
}
