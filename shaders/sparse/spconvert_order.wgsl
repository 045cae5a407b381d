// Keys that sort rows by falling length within windows; rows of equal length keep their order. One thread per row.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read_write> keys: array<Key>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_order(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = item(group, lane);
    if row >= params.count {
        return;
    }
    let length = min(row_ptrs[row + 1u] - row_ptrs[row], params.longest);
    keys[row] = pack(row / params.window, params.longest - length);
    order[row] = row;
}
