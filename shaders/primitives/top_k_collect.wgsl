// Collects the k best in order of position: one workgroup ranks the keys of its tile that are at least as good as the
// k-th best, and writes position (and with VALUES key) of those among the k. Tiles without any are not read. With
// CHUNKS, keys lie in chunks that state their origin.
#import primitives/top_k_tile
#import primitives/sort_sum

// What count_chosen gave, summed: better ones, and those as good, in the tiles before each; and in all.
@group(0) @binding(3) var<storage, read> counts: array<u32>;
@group(0) @binding(4) var<storage, read> totals: array<u32>;
@group(0) @binding(5) var<storage, read_write> positions: array<u32>;
#if VALUES
@group(0) @binding(6) var<storage, read_write> chosen: array<u32>;
#endif
#if CHUNKS
@group(0) @binding(7) var<storage, read> chunks: array<u32>;
const CHUNK: u32 = 64u;
#endif

fn put(place: u32, at: u32) {
    let position = params.first_tile * TILE + at;
#if CHUNKS
    positions[place] = chunks[position / CHUNK] * CHUNK + position % CHUNK;
#else
    positions[place] = position;
#endif
#if VALUES
    chosen[place] = keys[at];
#endif
}

fn in_tile(row: u32, tile: u32) -> u32 {
    let at = row * params.all_tiles + tile;
    if tile + 1u < params.all_tiles { return counts[at + 1u] - counts[at]; }
    return totals[row] - counts[at];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_collect(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if workgroup_index(group) >= params.tiles { return; }
    let tile = params.first_tile + workgroup_index(group);
    let kth = search[0];
    let wanted = search[1];
    let better_before = counts[tile];
    let as_good_before = counts[params.all_tiles + tile];
    if in_tile(0u, tile) == 0u && (in_tile(1u, tile) == 0u || as_good_before >= wanted) { return; }
    invocation = lane;
    let first = workgroup_index(group) * TILE + lane * ITEMS;
    var sum = 0u;
    for (var i = 0u; i < ITEMS; i++) { sum += worth(first + i, kth); }
    let before = sum_before(sum);
    var better = better_before + before % 65536u;
    var as_good = as_good_before + before / 65536u;
    for (var i = 0u; i < ITEMS; i++) {
        let own = worth(first + i, kth);
        if own == 1u || (own == 65536u && as_good < wanted) { put(better + min(as_good, wanted), first + i); }
        better += own % 65536u;
        as_good += own / 65536u;
    }
}
