// The row order, padded after the last row, and the longest row of each slice; `widths` is 0 before. One thread per
// position.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read> sorted: array<u32>;
@group(0) @binding(3) var<storage, read_write> row_order: array<u32>;
@group(0) @binding(4) var<storage, read_write> widths: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_slices(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = item(group, lane);
    if place >= params.count {
        return;
    }
    var row = PADDING;
    if place < params.rows {
        row = min(sorted[place], params.rows - 1u);
        atomicMax(&widths[place / params.width], row_ptrs[row + 1u] - row_ptrs[row]);
    }
    row_order[place] = row;
}
