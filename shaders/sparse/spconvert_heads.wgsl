// Flags the first key of each run of equal sorted keys. One thread per key.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> keys: array<Key>;
@group(0) @binding(2) var<storage, read_write> heads: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at >= params.count {
        return;
    }
    heads[at] = 1u;
    if at > 0u {
        heads[at] = u32(any(vec2<u32>(keys[at]) != vec2<u32>(keys[at - 1u])));
    }
}
