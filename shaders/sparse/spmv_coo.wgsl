// y += alpha A x, A in COO sorted by row, without atomics: segmented sums (G. Blelloch et al. 1993). A tile of
// WORKGROUP_SIZE x ITEMS_PER_THREAD products is loaded side by side and summed by lanes, which pass on their unfinished
// row. That of a tile is a carry (row, sum) for the next dispatch, whose terms are carries (PRODUCTS: without columns).
// A single tile carries nothing. With ORDERED, `order` gives the index of each value.
#import sparse/spmv_params
#import sparse/spmv_values

// The sum of each lane's unfinished row. Rows are sorted.
var<workgroup> wg_rows: array<u32, WORKGROUP_SIZE>;
var<workgroup> wg_tails: array<f32, WORKGROUP_SIZE>;

// Makes each tail the sum over all lanes up to this one with the same unfinished row: a segmented scan (P. Kogge and
// H. Stone 1973), always in the same order.
fn scan_tails(lane: u32, row: u32, tail: f32) -> f32 {
    var sum = tail;
    wg_rows[lane] = row;
    wg_tails[lane] = sum;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride && wg_rows[lane - stride] == row {
            sum = wg_tails[lane - stride] + sum;
        }
        workgroupBarrier();
        wg_tails[lane] = sum;
    }
    workgroupBarrier();
    return sum;
}

// The sum that earlier lanes pass on to `row`, after the scan.
fn carried_into(lane: u32, row: u32) -> f32 {
    if lane > 0u && wg_rows[lane - 1u] == row {
        return wg_tails[lane - 1u];
    }
    return 0.0;
}

#import sparse/spmv_result
#if !PRODUCTS
#import sparse/spmv_vector
#endif

const ITEMS_PER_THREAD: u32 = 5u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;
// The row of terms beyond the end.
const NO_ROW: u32 = 0xffffffffu;
const CARRY_ROWS_BINDING: u32 = 6u;
const CARRY_SUMS_BINDING: u32 = 7u;

@group(0) @binding(1) var<storage, read> row_idxs: array<u32>;
#if !PRODUCTS
@group(0) @binding(2) var<storage, read> col_idxs: array<u32>;
#endif
#if ORDERED
@group(0) @binding(6) var<storage, read> order: array<u32>;
#endif
#if CARRIES
@group(0) @binding(CARRY_ROWS_BINDING) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(CARRY_SUMS_BINDING) var<storage, read_write> carry_sums: array<f32>;
#endif

var<workgroup> wg_item_rows: array<u32, TILE>;
var<workgroup> wg_items: array<f32, TILE>;

fn add(row: u32, sum: f32) {
    if row < params.rows {
        y[row] += params.alpha * sum;
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_coo(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.parts {
        return;
    }
    // Beyond the end, the last entry is loaded again, so that no load waits for a test.
    for (var i = lane; i < TILE; i += WORKGROUP_SIZE) {
        let at = min(tile * TILE + i, params.entries - 1u);
        let inside = tile * TILE + i < params.entries;
#if PRODUCTS
        let term = value(at);
#else
#if ORDERED
        let term = product(value(min(order[at], params.entries - 1u)), col_idxs[at]);
#else
        let term = product(value(at), col_idxs[at]);
#endif
#endif
        wg_item_rows[i] = select(NO_ROW, row_idxs[at], inside);
        wg_items[i] = select(0.0, term, inside);
    }
    workgroupBarrier();
    let first = lane * ITEMS_PER_THREAD;
    var row = wg_item_rows[first];
    var sum = 0.0;
    // The lane's first row, if it ends here.
    var head_row = NO_ROW;
    var head = 0.0;
    var heads = 0u;
    for (var i = first; i < first + ITEMS_PER_THREAD; i++) {
        let next = wg_item_rows[i];
        if next != row {
            if heads == 0u {
                head_row = row;
                head = sum;
            } else {
                add(row, sum);
            }
            heads++;
            row = next;
            sum = 0.0;
        }
        sum += wg_items[i];
    }
    let tail = scan_tails(lane, row, sum);
    if heads > 0u {
        add(head_row, carried_into(lane, head_row) + head);
    }
    if lane + 1u < WORKGROUP_SIZE {
        // The last lane of a row writes it.
        if wg_item_rows[first + ITEMS_PER_THREAD] != row {
            add(row, tail);
        }
        return;
    }
#if CARRIES
    carry_rows[tile] = row;
    carry_sums[tile] = tail;
#else
    add(row, tail);
#endif
}
