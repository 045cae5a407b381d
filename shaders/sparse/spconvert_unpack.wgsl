// Indices from sorted keys: the minor one, and with MAJORS the major one. One thread per key.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> keys: array<Key>;
@group(0) @binding(2) var<storage, read_write> minors: array<u32>;
#if MAJORS
@group(0) @binding(3) var<storage, read_write> majors: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_unpack(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at >= params.count {
        return;
    }
    let key = keys[at];
    minors[at] = minor_of(key);
#if MAJORS
    majors[at] = major_of(key);
#endif
}
