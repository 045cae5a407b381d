// Merges two sorted arrays, and values with them.
// merge_diagonals: one thread bisects for the begin of one tile, between the begins of the workgroup's first tile and of
// the next workgroup's.
// merge_tiles: one workgroup merges a tile.
// With COUNTED the device knows the length of b; the first kernel writes that of the result.
// With VECTORS the length of the result is a multiple of 4.
// With PART the inputs begin inside of their operands.
#import primitives/merge_path
#import primitives/sort_key as order

#if PART
struct Params { a_len: u32, b_len: u32, tiles: u32, a_begin: u32, b_begin: u32 }
#else
struct Params { a_len: u32, b_len: u32, tiles: u32 }
#endif
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<u32>;

#if PART
fn a_at(i: u32) -> u32 { return a[params.a_begin + i]; }
fn b_at(j: u32) -> u32 { return b[params.b_begin + j]; }
#else
fn a_at(i: u32) -> u32 { return a[i]; }
fn b_at(j: u32) -> u32 { return b[j]; }
#endif
fn comes_before(x: u32, y: u32) -> bool { return order(x) < order(y); }

#if COUNTED
@group(0) @binding(4) var<storage, read> b_count: array<u32>;

fn b_len() -> u32 { return min(params.b_len, b_count[0]); }
#else
fn b_len() -> u32 { return params.b_len; }
#endif

#if DIAGONALS
@group(0) @binding(3) var<storage, read_write> diagonals: array<u32>;
#if COUNTED
@group(0) @binding(5) var<storage, read_write> total: array<u32>;
#endif

var<workgroup> wg_ends: array<u32, 2>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_diagonals(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE;
    let tile = first + lane;
    let of_b = b_len();
    let len = params.a_len + of_b;
#if COUNTED
    if tile == 0u { total[0] = len; }
#endif
    if first >= params.tiles { return; }
    if lane < 2u {
        let d = min(min(first + lane * WORKGROUP_SIZE, params.tiles) * TILE, len);
        wg_ends[lane] = find_diagonal(d, params.a_len, of_b, 0u, params.a_len);
    }
    workgroupBarrier();
    if tile < params.tiles {
        diagonals[tile] = find_diagonal(min(tile * TILE, len), params.a_len, of_b, wg_ends[0], wg_ends[1]);
    }
}
#else
@group(0) @binding(3) var<storage, read> diagonals: array<u32>;
const OUTPUT_BINDING: u32 = 4u;
#if VECTORS
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<u32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;
#endif
#if VALUES
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read> a_values: array<u32>;
@group(0) @binding(OUTPUT_BINDING + 2u) var<storage, read> b_values: array<u32>;
@group(0) @binding(OUTPUT_BINDING + 3u) var<storage, read_write> values_out: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn merge_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let begin = tile * TILE;
    let len = params.a_len + b_len();
    if tile >= params.tiles || begin >= len { return; }
    let count = min(TILE, len - begin);
    var a_end = params.a_len;
    if begin + count < len { a_end = diagonals[tile + 1u]; }
    let parts = parts_of(begin, count, diagonals[tile], a_end);
    let merged = merge_items(parts, lane);
    exchange(merged.elements, lane);
#if VECTORS
#for k in (ITEMS + 3) / 4
    let q_{k} = lane + {k}u * WORKGROUP_SIZE;
    if 4u * q_{k} < count {
        output[begin / 4u + q_{k}] = vec4<u32>(
#for c in 4
            wg_words[4u * q_{k} + {c}u],
#end
        );
    }
#end
#else
#for k in ITEMS
    if lane + {k}u * WORKGROUP_SIZE < count {
        output[begin + lane + {k}u * WORKGROUP_SIZE] = wg_words[lane + {k}u * WORKGROUP_SIZE];
    }
#end
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
