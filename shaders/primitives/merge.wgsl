// Merges two sorted arrays, and values with them.
// merge_diagonals: one thread searches for the begin of one tile, between the begins of the workgroup's first tile and
// of the next workgroup's, for which half of the workgroup searches. merge_tiles: one workgroup merges a tile. With
// COUNTED the device knows the length of b, and with COUNTED_A that of a; the first kernel writes that of the result,
// and both behind the diagonals. With HALVES elements are 16 bits wide, two in a word. With VECTORS length and begin of
// the result are multiples of 4. With PART inputs and result begin inside of their operands.
#import primitives/merge_path
#import primitives/sort_key as order

#if PART
struct Params { a_len: u32, b_len: u32, tiles: u32, a_begin: u32, b_begin: u32, begin: u32 }
#else
struct Params { a_len: u32, b_len: u32, tiles: u32 }
#endif
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<u32>;

#if HALVES
#import primitives/half_words

fn a_at(i: u32) -> u32 { return half_of(a[i / 2u], i); }
fn b_at(j: u32) -> u32 { return half_of(b[j / 2u], j); }
#else
#if PART
fn a_at(i: u32) -> u32 { return a[params.a_begin + i]; }
fn b_at(j: u32) -> u32 { return b[params.b_begin + j]; }
#else
fn a_at(i: u32) -> u32 { return a[i]; }
fn b_at(j: u32) -> u32 { return b[j]; }
#endif
#endif
#if PART
fn first_place() -> u32 { return params.begin; }
#else
fn first_place() -> u32 { return 0u; }
#endif
fn comes_before(x: u32, y: u32) -> bool { return order(x) < order(y); }

#if DIAGONALS
@group(0) @binding(3) var<storage, read_write> diagonals: array<u32>;
#if COUNTED
@group(0) @binding(4) var<storage, read> b_count: array<u32>;
@group(0) @binding(5) var<storage, read_write> total: array<u32>;

fn b_len() -> u32 { return min(params.b_len, b_count[0]); }
#else
fn b_len() -> u32 { return params.b_len; }
#endif
#if COUNTED_A
@group(0) @binding(6) var<storage, read> a_count: array<u32>;

fn a_len() -> u32 { return min(params.a_len, a_count[0]); }
#else
fn a_len() -> u32 { return params.a_len; }
#endif

// Threads that search for the begin of one tile.
const PROBES: u32 = WORKGROUP_SIZE / 2u;

// Of each half of the threads: how many did not find the begin.
var<workgroup> wg_below: array<atomic<u32>, 2>;
// The begins of the workgroup's first tile and of the next workgroup's.
var<workgroup> wg_ends: array<u32, 2>;

// The begin of the tile at `d`: each half of the workgroup searches for its own, and each thread looks at one place.
// All threads of the workgroup call it.
fn find_ends(d: u32, of_a: u32, of_b: u32, lane: u32) {
    let half = lane / PROBES;
    var begin = max(d, of_b) - of_b;
    var end = min(d, of_a);
    for (var left = params.a_len; left > 0u; left /= PROBES) {
        if lane % PROBES == 0u { atomicStore(&wg_below[half], 0u); }
        workgroupBarrier();
        // The last places of PROBES parts.
        let step = max((end - begin + PROBES - 1u) / PROBES, 1u);
        let at = begin + lane % PROBES * step + step - 1u;
        if at < end {
            if !is_beyond(d, at) { atomicAdd(&wg_below[half], 1u); }
        }
        workgroupBarrier();
        begin = min(begin + atomicLoad(&wg_below[half]) * step, end);
        end = min(begin + step - 1u, end);
        workgroupBarrier();
    }
    if lane % PROBES == 0u { wg_ends[half] = begin; }
    workgroupBarrier();
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_diagonals(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE;
    let tile = first + lane;
    let of_a = a_len();
    let of_b = b_len();
    let len = of_a + of_b;
#if COUNTED
    if tile == 0u {
        total[0] = len;
        diagonals[params.tiles] = of_a;
        diagonals[params.tiles + 1u] = of_b;
    }
#endif
    if first >= params.tiles { return; }
    find_ends(min(min(first + lane / PROBES * WORKGROUP_SIZE, params.tiles) * TILE, len), of_a, of_b, lane);
    if tile < params.tiles {
        // Tiles lie evenly, if the arrays are alike.
        let part = f32(lane) / f32(min(WORKGROUP_SIZE, params.tiles - first));
        let guess = wg_ends[0] + u32(part * f32(wg_ends[1] - min(wg_ends[0], wg_ends[1])));
        diagonals[tile] = find_diagonal(min(tile * TILE, len), of_a, of_b, wg_ends[0], wg_ends[1], guess);
    }
}
#else
@group(0) @binding(3) var<storage, read> diagonals: array<u32>;
#if VECTORS
@group(0) @binding(4) var<storage, read_write> output: array<vec4<u32>>;
#else
@group(0) @binding(4) var<storage, read_write> output: array<u32>;
#endif
#if VALUES
@group(0) @binding(5) var<storage, read> a_values: array<u32>;
@group(0) @binding(6) var<storage, read> b_values: array<u32>;
@group(0) @binding(7) var<storage, read_write> values_out: array<u32>;
#endif

#if COUNTED
fn a_len() -> u32 { return diagonals[params.tiles]; }
fn b_len() -> u32 { return diagonals[params.tiles + 1u]; }
#else
fn a_len() -> u32 { return params.a_len; }
fn b_len() -> u32 { return params.b_len; }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let begin = tile * TILE;
    let of_a = a_len();
    let len = of_a + b_len();
    if tile >= params.tiles || begin >= len { return; }
    let count = min(TILE, len - begin);
    var a_end = of_a;
    if begin + count < len { a_end = diagonals[tile + 1u]; }
    let parts = parts_of(begin, count, diagonals[tile], a_end);
    let merged = merge_items(parts, lane);
    exchange(merged.elements, lane);
#if HALVES
#put store_halves(output)
#else
#if VECTORS
#for k in (ITEMS + 3) / 4
    let q_{k} = lane + {k}u * WORKGROUP_SIZE;
    if 4u * q_{k} < count {
        output[(first_place() + begin) / 4u + q_{k}] = vec4<u32>(
#for c in 4
            wg_words[4u * q_{k} + {c}u],
#end
        );
    }
#end
#else
#for k in ITEMS
    if lane + {k}u * WORKGROUP_SIZE < count {
        output[first_place() + begin + lane + {k}u * WORKGROUP_SIZE] = wg_words[lane + {k}u * WORKGROUP_SIZE];
    }
#end
#endif
#endif
#if VALUES
    workgroupBarrier();
    exchange(merged.places, lane);
#for k in ITEMS
    let p_{k} = lane + {k}u * WORKGROUP_SIZE;
    var value_{k} = 0u;
    if p_{k} < count {
        let place = wg_words[p_{k}];
        if place < parts.of_a {
            value_{k} = a_values[parts.a + place];
        } else {
            value_{k} = b_values[parts.b + place - parts.of_a];
        }
    }
#end
#for k in ITEMS
    if p_{k} < count { values_out[begin + p_{k}] = value_{k}; }
#end
#endif
}
#endif
