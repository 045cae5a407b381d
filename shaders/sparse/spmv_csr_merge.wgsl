// y = alpha A x + beta y, A in CSR, shared evenly whatever the row lengths: row ends and entries are merged (D.
// Merrill, M. Garland 2016), and a workgroup takes a tile of TILE steps of the merge. Products go to workgroup memory,
// where teams of lanes sum rows: larger teams for longer rows, by shuffles with SUBGROUPS, else by a tree. The
// unfinished row of a tile is a carry (row, sum) for spmv_csr_merge_join.
#import sparse/spmv_params
#import sparse/spmv_rows
#import sparse/spmv_vector
#import sparse/spmv_result
#if SUBGROUPS
#import sparse/spmv_join_shuffle
#else
#import sparse/spmv_join_tree
#endif

const ITEMS_PER_THREAD: u32 = 8u;
// Maximum lanes of a team: a subgroup, or a workgroup.
const MAX_LANES: u32 = 32u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;

@group(0) @binding(6) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(7) var<storage, read_write> carry_sums: array<f32>;
// Rows that have ended before each tile, and at the end.
@group(0) @binding(8) var<storage, read> bounds: array<u32>;

// Row ends of the tile, then bits of its products.
var<workgroup> wg_items: array<u32, TILE>;

// Stored after the ends of `rows` rows; skipped beyond the end.
fn keep(entry: u32, term: f32, rows: u32, entries: u32) {
    if entry < entries {
        wg_items[rows + entry] = bitcast<u32>(term);
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_merge(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
#endif
) {
    let tile = workgroup_index(group);
    if tile >= params.parts {
        return;
    }
    let steps = params.rows + params.entries;
    let begin = tile * TILE;
    let count = min(TILE, steps - begin);
    let first_row = bounds[tile];
    let rows = min(max(bounds[tile + 1u], first_row) - first_row, count);
    let first_entry = begin - first_row;
    let entries = count - rows;
#if SUBGROUPS
    let invocation = sub_id * sub_size + sub_lane;
#else
    let invocation = lane;
#endif
    // Loads do not wait for tests: beyond the end, the last entry is loaded again and dropped.
    let first_end = row_ptrs[min(first_row + lane + 1u, params.rows)];
    let last = min(first_entry + max(entries, 1u), params.entries) - 1u;
    for (var i = lane; i < TILE; i += 4u * WORKGROUP_SIZE) {
        let places = i + WORKGROUP_SIZE * vec4<u32>(0u, 1u, 2u, 3u);
        let at = min(first_entry + places, vec4<u32>(last));
        let cols = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        let terms = terms4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        keep(places.x, terms.x, rows, entries);
        keep(places.y, terms.y, rows, entries);
        keep(places.z, terms.z, rows, entries);
        keep(places.w, terms.w, rows, entries);
    }
    for (var i = lane; i < rows; i += WORKGROUP_SIZE) {
        var end = first_end;
        if i > lane {
            end = row_ptrs[first_row + i + 1u];
        }
        wg_items[i] = max(end, first_entry) - first_entry;
    }
    workgroupBarrier();
    // A lane for every four to eight entries of the mean row. On an H100 two to four take 10 % longer for rows of 16
    // entries, 25 % for 64. The unfinished row counts as one more.
    let mean = entries / (rows + 1u);
    var bits = 0u;
    while (1u << bits) < MAX_LANES && (4u << bits) <= mean {
        bits++;
    }
    let lanes = 1u << bits;
    let member = invocation & (lanes - 1u);
    for (var base = 0u; base <= rows; base += WORKGROUP_SIZE >> bits) {
        let row = base + (invocation >> bits);
        var sum = 0.0;
        if row <= rows {
            var start = 0u;
            if row > 0u {
                start = wg_items[row - 1u];
            }
            var end = entries;
            if row < rows {
                end = min(wg_items[row], entries);
            }
            for (var i = start + member; i < end; i += lanes) {
                sum += bitcast<f32>(wg_items[rows + i]);
            }
        }
        let total = join_lanes(sum, invocation, lanes);
        if member == 0u && row < rows {
            put(first_row + row, total);
        }
        if member == 0u && row == rows {
            carry_rows[tile] = first_row + rows;
            carry_sums[tile] = total;
        }
    }
}
