// Moves keys, and with VALUES their values, to the places that their sorted positions give. One thread moves one.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> keys_out: array<u32>;
#if VALUES
@group(0) @binding(4) var<storage, read> values: array<u32>;
@group(0) @binding(5) var<storage, read_write> values_out: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_move(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let position = positions[at];
    keys_out[at] = keys[position];
#if VALUES
    values_out[at] = values[position];
#endif
}
