// Fills the slots of rows from compressed rows. One thread fills some slots of a row; neighbouring threads store
// neighbouring slots.
#import sparse/spconvert_params

const PLACES: u32 = 16u; // of a thread

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read> from_idxs: array<u32>;
@group(0) @binding(3) var<storage, read> from_values: array<Value>;
@group(0) @binding(4) var<storage, read_write> idxs: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<Value>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_ell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // The first `segments` workgroups cover all rows, the next ones the next slots.
    let index = workgroup_index(group);
    let row = index % params.segments * WORKGROUP_SIZE + lane;
    let begin = index / params.segments * PLACES;
    if row >= params.rows {
        return;
    }
    let first = min(row_ptrs[row], params.sources);
    let length = min(row_ptrs[row + 1u], params.sources) - first;
    for (var k = begin; k < min(begin + PLACES, params.width); k++) {
        var idx = PADDING;
        var value = Value();
        if k < length {
            idx = from_idxs[first + k];
            value = from_values[first + k];
        }
        idxs[k * params.rows + row] = idx;
        values[k * params.rows + row] = value;
    }
}
