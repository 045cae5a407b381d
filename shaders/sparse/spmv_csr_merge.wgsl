// y = alpha A x + beta y, A by compressed rows, work shared evenly whatever the rows are: the ends of rows and
// the entries are merged (D. Merrill, M. Garland 2016), and each tile of TILE steps of that merge is a
// workgroup's, each ITEMS_PER_THREAD of them an invocation's. Lanes hand the row that they end in on; the last
// row of a tile is a carry (row and sum) that spmv_coo adds.
#import sparse/spmv_params
#import sparse/spmv_rows
#import sparse/spmv_carry
#import sparse/spmv_vector
#import sparse/spmv_result

const ITEMS_PER_THREAD: u32 = 7u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;

@group(0) @binding(6) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(7) var<storage, read_write> carry_sums: array<f32>;
// Rows that have ended before each tile, and before the end.
@group(0) @binding(8) var<storage, read> bounds: array<u32>;

// Ends of the tile's rows, then bits of its products.
var<workgroup> wg_items: array<u32, TILE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_merge(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
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
    // As often for every tile, and what is behind the last entry loaded again, so that no load waits for a test.
    for (var i = lane; i < TILE; i += WORKGROUP_SIZE) {
        let at = min(first_entry + i, params.entries - 1u);
        let term = product(value(at), col_idxs[at]);
        if i < entries {
            wg_items[rows + i] = bitcast<u32>(term);
        }
    }
    for (var i = lane; i < rows; i += WORKGROUP_SIZE) {
        wg_items[i] = max(row_ptrs[first_row + i + 1u], first_entry) - first_entry;
    }
    workgroupBarrier();
    let start = min(lane * ITEMS_PER_THREAD, count);
    var low = max(start, entries) - entries;
    var high = min(start, rows);
    while low < high {
        let middle = low + (high - low) / 2u;
        if wg_items[middle] <= start - 1u - middle {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    let head_row = low;
    var row = low;
    var entry = start - low;
    var sum = 0.0;
    var head = 0.0;
    for (var i = start; i < min(start + ITEMS_PER_THREAD, count); i++) {
        // Where entries are at their end, only ends of rows are left, and the other way round.
        if row < rows && (entry >= entries || wg_items[row] <= entry) {
            if row == head_row {
                head = sum;
            } else {
                put(first_row + row, sum);
            }
            row++;
            sum = 0.0;
        } else {
            sum += bitcast<f32>(wg_items[rows + entry]);
            entry++;
        }
    }
    let tail = scan_tails(lane, row, sum);
    if row > head_row {
        put(first_row + head_row, carried_into(lane, head_row) + head);
    }
    if lane + 1u == WORKGROUP_SIZE {
        carry_rows[tile] = first_row + row;
        carry_sums[tile] = tail;
    }
}
