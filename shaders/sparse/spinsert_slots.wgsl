// Puts entries, sorted by row, into the free slots of their rows, unless slots are missing. One thread per entry.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> keys: array<Key>;
@group(0) @binding(2) var<storage, read> from_values: array<Value>;
@group(0) @binding(3) var<storage, read> ptrs: array<u32>;
@group(0) @binding(4) var<storage, read> lengths: array<u32>;
@group(0) @binding(5) var<storage, read> missing: array<u32>;
@group(0) @binding(6) var<storage, read_write> idxs: array<u32>;
@group(0) @binding(7) var<storage, read_write> values: array<Value>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spinsert_slots(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at >= params.count || missing[0] > 0u {
        return;
    }
    let row = min(major_of(keys[at]), params.rows - 1u);
    let place = lengths[row] + (at - ptrs[row]);
    if place < params.width {
        idxs[place * params.rows + row] = minor_of(keys[at]);
        values[place * params.rows + row] = from_values[at];
    }
}
