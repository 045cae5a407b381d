// y = alpha A x + beta y, A in CSR, shared evenly whatever the row lengths: row ends and entries are merged (D.
// Merrill, M. Garland 2016), and a workgroup takes a tile of TILE steps of the merge. Products go to workgroup memory,
// each thread sums neighbouring ones up to row ends, and a segmented scan (G. Blelloch et al. 1993) joins rows of
// several threads. The unfinished row of a tile is a carry (row, sum) for spmv_csr_merge_join.
#import sparse/spmv_params
#import sparse/spmv_rows
#import sparse/spmv_vector
#import sparse/spmv_result
#if SUBGROUPS
#import workgroup/scan_shuffle
#else
#import workgroup/scan_kogge_stone
#endif

// A divisor of 32, and at least 4.
const ITEMS_PER_THREAD: u32 = 8u;
const VEC4S: u32 = ITEMS_PER_THREAD / 4u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;
const WORDS: u32 = (TILE + 31u) / 32u;

@group(0) @binding(6) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(7) var<storage, read_write> carry_sums: array<f32>;
// Rows that have ended before each tile, and at the end.
@group(0) @binding(8) var<storage, read> bounds: array<u32>;

// Passed on by neighbours: the sum after their last row end, and whether there is a row end.
struct Item {
    value: f32,
    head: u32,
}

struct Span {
    before: Item,
    all: Item,
}

fn nothing() -> Item {
    return Item(0.0, 0u);
}

fn join(a: Item, b: Item) -> Item {
    return Item(select(a.value + b.value, b.value, b.head != 0u), a.head | b.head);
}

// Products; then the last product of each row holds the row's sum.
var<workgroup> wg_terms: array<vec4<f32>, TILE / 4u>;
// A bit for each product: whether it is the last of its row.
var<workgroup> wg_ends: array<atomic<u32>, WORDS>;

fn store(at: u32, term: f32) {
    wg_terms[at / 4u][at % 4u] = term;
}

// A thread's sum after its last row end, its sum up to the first, and the position of the first.
var<private> sum: f32;
var<private> head: f32;
var<private> head_at: u32;

fn take(term: f32, at: u32, ends: bool) {
    sum += term;
    if ends {
        if head_at == TILE {
            head = sum;
            head_at = at;
        } else {
            store(at, sum);
        }
        sum = 0.0;
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_segmented(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
    @builtin(num_subgroups) sub_count: u32,
#endif
) {
    let tile = workgroup_index(group);
    if tile >= params.parts {
        return;
    }
#if SUBGROUPS
    let lane = sub_id * sub_size + sub_lane;
#else
    let lane = index;
#endif
    let step = tile * TILE;
    let count = min(TILE, params.rows + params.entries - step);
    let first_row = bounds[tile];
    let rows = min(max(bounds[tile + 1u], first_row) - first_row, count);
    let first = step - first_row;
    let entries = count - rows;
    for (var i = lane; i < WORDS; i += WORKGROUP_SIZE) {
        atomicStore(&wg_ends[i], 0u);
    }
    workgroupBarrier();
    // Loads do not wait for tests: beyond the end, the last entry is loaded again and ignored.
    let first_end = row_ptrs[min(first_row + lane + 1u, params.rows)];
    let last = min(first + max(entries, 1u), params.entries) - 1u;
    for (var i = 0u; i < TILE; i += 4u * WORKGROUP_SIZE) {
        let places = i + lane + WORKGROUP_SIZE * vec4<u32>(0u, 1u, 2u, 3u);
        let at = min(first + places, vec4<u32>(last));
        let cols = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        let all = terms4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        let terms = select(vec4<f32>(), all, places < vec4<u32>(entries));
        store(places.x, terms.x);
        store(places.y, terms.y);
        store(places.z, terms.z);
        store(places.w, terms.w);
    }
    for (var i = lane; i < rows; i += WORKGROUP_SIZE) {
        var end = first_end;
        if i > lane {
            end = row_ptrs[first_row + i + 1u];
        }
        if end > first {
            let at = min(end - first, TILE) - 1u;
            atomicOr(&wg_ends[at / 32u], 1u << (at % 32u));
        }
    }
    workgroupBarrier();
    let at = lane * ITEMS_PER_THREAD;
    let marks = atomicLoad(&wg_ends[at / 32u]) >> (at % 32u);
    sum = 0.0;
    head_at = TILE;
    for (var i = 0u; i < VEC4S; i++) {
        let terms = wg_terms[lane * VEC4S + i];
        let ending = (vec4<u32>(marks >> (4u * i)) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
        take(terms.x, at + 4u * i, ending.x);
        take(terms.y, at + 4u * i + 1u, ending.y);
        take(terms.z, at + 4u * i + 2u, ending.z);
        take(terms.w, at + 4u * i + 3u, ending.w);
    }
    let item = Item(sum, select(1u, 0u, head_at == TILE));
#if SUBGROUPS
    let span = workgroup_scan(item, sub_lane, sub_size, sub_id, sub_count);
#else
    let span = workgroup_scan(item, lane);
#endif
    if head_at < TILE {
        store(head_at, span.before.value + head);
    }
    workgroupBarrier();
    for (var i = lane; i < rows; i += WORKGROUP_SIZE) {
        let row = first_row + i;
        let end = row_ptrs[row + 1u];
        var total = 0.0;
        // Rows with entries in this tile.
        if end > max(row_ptrs[row], first) {
            let at = min(end - first, TILE) - 1u;
            total = wg_terms[at / 4u][at % 4u];
        }
        put(row, total);
    }
    if lane == 0u {
        carry_rows[tile] = first_row + rows;
        carry_sums[tile] = span.all.value;
    }
}
