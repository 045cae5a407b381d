// Merge sort, stable: blocks are sorted in workgroup memory, then pairs of runs of `width` elements are merged.
// merge_sort_block: one workgroup sorts a block. Each thread sorts ITEMS elements in registers; then runs are merged.
// merge_sort_diagonals, merge_sort_tiles: as those of merge, for every pair of runs.
// With CHECKED the comparison may be no order. Where threads or tiles would take other elements than their neighbours
// leave, runs stay as they are, so that the result is some permutation.
// With POSITIONS the blocks' values are the positions of the keys. With HALVES keys are 16 bits wide, two in a word.
#import dispatch/extent
#import primitives/merge_path
#if CUSTOM
#import element/f32 as element
#import primitives/merge_sort_less as less

fn comes_before(x: u32, y: u32) -> bool {
#if DESCENDING
    return less(decode(y, 0u), decode(x, 0u));
#else
    return less(decode(x, 0u), decode(y, 0u));
#endif
}
#else
#import primitives/sort_key

fn comes_before(x: u32, y: u32) -> bool { return order(x) < order(y); }
#endif

struct Params { n: u32, width: u32, tiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
#put extent(params.n, 0u)

// Begins of the two runs.
var<private> run_a: u32;
var<private> run_b: u32;

#if HALVES
#import primitives/half_words

fn key_at(i: u32) -> u32 { return half_of(keys[i / 2u], i); }
#else
fn key_at(i: u32) -> u32 { return keys[i]; }
#endif
fn a_at(i: u32) -> u32 { return key_at(run_a + i); }
fn b_at(j: u32) -> u32 { return key_at(run_b + j); }

// Sets the runs of a tile, and gives their lengths and the tile's place in them.
fn runs_of(tile: u32) -> vec3<u32> {
    run_a = tile * TILE / (2u * params.width) * (2u * params.width);
    let n = extent();
    run_b = min(run_a + params.width, n);
    return vec3<u32>(run_b - run_a, min(params.width, n - run_b), tile * TILE - run_a);
}

#if BLOCK
@group(0) @binding(2) var<storage, read_write> keys_out: array<u32>;
#if POSITIONS
@group(0) @binding(3) var<storage, read_write> values_out: array<u32>;
#endif
#if VALUES && !POSITIONS
@group(0) @binding(3) var<storage, read> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> values_out: array<u32>;
#endif
#if VALUES
var<workgroup> wg_places: array<u32, TILE>;
#endif

// Sorts the elements of a thread by odd-even transposition, which is stable, whatever the comparison is.
fn sort_items(begin: u32, end: u32) {
#for k in ITEMS
    var x_{k} = wg_words[begin + {k}u];
#if VALUES
    var place_{k} = wg_places[begin + {k}u];
#endif
#end
    for (var round = 0u; round < ITEMS; round += 2u) {
#for odd in 2
#for k in (ITEMS - odd) / 2
        {
            let swaps = (begin + {2 * k + odd + 1}u < end) & comes_before(x_{2 * k + odd + 1}, x_{2 * k + odd});
            let x = x_{2 * k + odd};
            x_{2 * k + odd} = select(x, x_{2 * k + odd + 1}, swaps);
            x_{2 * k + odd + 1} = select(x_{2 * k + odd + 1}, x, swaps);
#if VALUES
            let place = place_{2 * k + odd};
            place_{2 * k + odd} = select(place, place_{2 * k + odd + 1}, swaps);
            place_{2 * k + odd + 1} = select(place_{2 * k + odd + 1}, place, swaps);
#endif
        }
#end
#end
    }
#for k in ITEMS
    wg_words[begin + {k}u] = x_{k};
#if VALUES
    wg_places[begin + {k}u] = place_{k};
#endif
#end
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_sort_block(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let begin = tile * TILE;
    if tile >= params.tiles || begin >= extent() { return; }
    let count = min(TILE, extent() - begin);
    for (var p = lane; p < TILE; p += WORKGROUP_SIZE) {
        wg_words[p] = key_at(begin + min(p, count - 1u));
#if VALUES
        wg_places[p] = p;
#endif
    }
#if CHECKED
    if lane == 0u { atomicStore(&wg_broken, 0u); }
#endif
    fill_beyond(lane);
    workgroupBarrier();
    sort_items(lane * ITEMS, min((lane + 1u) * ITEMS, count));
    for (var width = ITEMS; width < TILE; width *= 2u) {
        workgroupBarrier();
        let first = lane * ITEMS / (2u * width) * (2u * width);
        let len = max(min(first + 2u * width, count), first) - first;
        let merged = merge_run(first, min(width, len), len, min(lane * ITEMS - first, len));
#if VALUES
        var places = array<u32, ITEMS>();
#for k in ITEMS
        places[{k}] = wg_places[first + merged.places[{k}]];
#end
#endif
        workgroupBarrier();
        if !is_broken() {
#for k in ITEMS
            wg_words[lane * ITEMS + {k}u] = merged.elements[{k}];
#if VALUES
            wg_places[lane * ITEMS + {k}u] = places[{k}];
#endif
#end
        }
    }
    workgroupBarrier();
#if HALVES
#put store_halves(keys_out)
#endif
    for (var p = lane; p < count; p += WORKGROUP_SIZE) {
#if !HALVES
        keys_out[begin + p] = wg_words[p];
#endif
#if VALUES
#if POSITIONS
        values_out[begin + p] = begin + wg_places[p];
#else
        values_out[begin + p] = values[begin + wg_places[p]];
#endif
#endif
    }
}
#else
#if DIAGONALS
@group(0) @binding(2) var<storage, read_write> diagonals: array<u32>;
#if CHECKED
@group(0) @binding(3) var<storage, read_write> broken: array<atomic<u32>>;
#endif

// Of the first `d` elements of two merged runs, those of the first run; about its share, if the runs are alike.
fn find_begin(d: u32, runs: vec3<u32>) -> u32 {
    let share = f32(runs.x) / f32(runs.x + runs.y);
    return find_diagonal(d, runs.x, runs.y, 0u, runs.x, u32(share * f32(d)));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_sort_diagonals(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if tile >= params.tiles || tile * TILE >= extent() { return; }
    let runs = runs_of(tile);
    let begin = find_begin(runs.z, runs);
    diagonals[tile] = begin;
#if CHECKED
    let count = min(TILE, runs.x + runs.y - runs.z);
    let end = find_begin(runs.z + count, runs);
    if end < begin || end - begin > count { atomicStore(&broken[0], 1u); }
#endif
}
#else
@group(0) @binding(2) var<storage, read> diagonals: array<u32>;
@group(0) @binding(3) var<storage, read_write> keys_out: array<u32>;
#if VALUES
@group(0) @binding(4) var<storage, read> values: array<u32>;
@group(0) @binding(5) var<storage, read_write> values_out: array<u32>;
#endif
const BROKEN_BINDING: u32 = 4u;
#if CHECKED
@group(0) @binding(BROKEN_BINDING) var<storage, read> broken: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_sort_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let begin = tile * TILE;
    if tile >= params.tiles || begin >= extent() { return; }
    let runs = runs_of(tile);
    let count = min(TILE, runs.x + runs.y - runs.z);
    var a_begin = diagonals[tile];
    var a_end = runs.x;
    if runs.z + count < runs.x + runs.y { a_end = diagonals[tile + 1u]; }
#if CHECKED
    if lane == 0u { atomicStore(&wg_broken, broken[0]); }
    if broken[0] != 0u {
        a_begin = min(runs.z, runs.x);
        a_end = min(runs.z + count, runs.x);
    }
#endif
    let parts = parts_of(runs.z, count, a_begin, a_end);
    let merged = merge_items(parts, lane);
    exchange(merged.elements, lane);
#if HALVES
#put store_halves(keys_out)
#else
#for k in ITEMS
    if lane + {k}u * WORKGROUP_SIZE < count {
        keys_out[begin + lane + {k}u * WORKGROUP_SIZE] = wg_words[lane + {k}u * WORKGROUP_SIZE];
    }
#end
#endif
#if VALUES
    workgroupBarrier();
    exchange(merged.places, lane);
    for (var p = lane; p < count; p += WORKGROUP_SIZE) {
#if CHECKED
        let place = select(wg_words[p], p, is_broken());
#else
        let place = wg_words[p];
#endif
        let from_a = run_a + parts.a + place;
        values_out[begin + p] = values[select(run_b + parts.b + place - parts.of_a, from_a, place < parts.of_a)];
    }
#endif
}
#endif
#endif
