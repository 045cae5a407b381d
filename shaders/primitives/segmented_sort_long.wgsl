// The keys of long segments, tile by tile. `segmented_sort_long_count` counts those of a tile, and the long segments
// that begin there, 0 or 1: one thread a tile. An exclusive scan of the counts gives each key its number among all.
// `segmented_sort_long_take` copies the keys to these places with their positions, `segmented_sort_long_owners` gives
// each position the number of its segment, and `segmented_sort_long_move` moves sorted keys to the segments.
#import primitives/segmented_sort_ends
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = (TILE + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
// Positions of a thread in `segmented_sort_long_owners`.
const OWNERS: u32 = 16u;

struct Params { n: u32, tiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> ends: array<u32>;
#if COUNT
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
#else
@group(0) @binding(2) var<storage, read> sums: array<u32>;
#endif
#if TAKE
@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> long_keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> positions: array<u32>;
#endif
#if OWN
@group(0) @binding(3) var<storage, read> positions: array<u32>;
@group(0) @binding(4) var<storage, read_write> owners: array<u32>;
#endif
#if MOVE
@group(0) @binding(3) var<storage, read> positions: array<u32>;
@group(0) @binding(4) var<storage, read> keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> keys_out: array<u32>;
#if VALUES
@group(0) @binding(6) var<storage, read> values: array<u32>;
@group(0) @binding(7) var<storage, read_write> values_out: array<u32>;
#endif
#endif

// The places of a tile in long segments: below `before`, and from `after` on.
struct LongPlaces { before: u32, after: u32, count: u32 }

fn long_places(tile: u32) -> LongPlaces {
    let count = min(TILE, extent() - tile * TILE);
    let mine = ends[tile];
    if mine == HEADLESS { return LongPlaces(count, count, count); }
    var places = LongPlaces(0u, count, count);
    if tile > 0u && ends[max(tile, 1u) - 1u] == HEADLESS { places.before = first_head(mine); }
    if tile + 1u < tiles_there() && ends[min(tile + 1u, params.tiles - 1u)] == HEADLESS {
        places.after = last_head(mine);
    }
    return places;
}

#if COUNT
@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_long_count(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
    let tile = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if tile > params.tiles { return; }
    var taken = 0u;
    var begun = 0u;
    if tile < tiles_there() {
        let places = long_places(tile);
        taken = places.before + places.count - places.after;
        begun = u32(places.after < places.count);
    }
    counts[tile] = taken;
    counts[params.tiles + 1u + tile] = begun;
}
#endif

#if TAKE
@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_long_take(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
    let tile = workgroup_index(group);
    if tile >= tiles_there() { return; }
    let places = long_places(tile);
    for (var i = 0u; i < ITEMS; i++) {
        let at = i * WORKGROUP_SIZE + lane;
        if at < places.before || (at >= places.after && at < places.count) {
            let to = sums[tile] + select(at, places.before + at - places.after, at >= places.after);
            long_keys[to] = keys[tile * TILE + at];
            positions[to] = tile * TILE + at;
        }
    }
}
#endif

#if OWN
@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_long_owners(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
    let first = workgroup_index(group) * OWNERS * WORKGROUP_SIZE + lane;
    let total = sums[params.tiles];
    for (var i = 0u; i < OWNERS; i++) {
        let at = first + i * WORKGROUP_SIZE;
        if at < total {
            let tile = positions[at] / TILE;
            let mine = ends[tile];
            let begun = sums[params.tiles + 1u + tile] - total;
            // The tile's last segment is the next to begin; a long one before it is the last that has begun.
            let is_last = mine != HEADLESS && positions[at] - tile * TILE >= last_head(mine);
            owners[at] = select(begun - 1u, begun, is_last);
        }
    }
}
#endif

#if MOVE
@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_long_move(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
    let tile = workgroup_index(group);
    if tile >= tiles_there() { return; }
    let places = long_places(tile);
    for (var i = 0u; i < ITEMS; i++) {
        let at = i * WORKGROUP_SIZE + lane;
        if at < places.before || (at >= places.after && at < places.count) {
            let number = sums[tile] + select(at, places.before + at - places.after, at >= places.after);
            let source = positions[number];
            keys_out[tile * TILE + at] = keys[source];
#if VALUES
            values_out[tile * TILE + at] = values[source];
#endif
        }
    }
}
#endif
