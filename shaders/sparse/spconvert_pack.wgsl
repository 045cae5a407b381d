// Sort keys from lists of indices. With SEGMENTS one index is the segment of the entry, the major one with
// SEGMENTS_ABOVE. A workgroup makes a tile of keys.
#import sparse/spconvert_params
#import sparse/spconvert_key
#import sparse/spconvert_segment

@group(0) @binding(2) var<storage, read> idxs: array<u32>;
@group(0) @binding(3) var<storage, read_write> keys: array<Key>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_pack(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let begin = workgroup_index(group) * TILE;
    if begin >= params.count {
        return;
    }
#if SEGMENTS
    find_bounds(lane, begin);
#endif
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = begin + i * WORKGROUP_SIZE + lane;
        if at < params.count {
#if SEGMENTS
            let other = segment_of(at);
#else
            let other = ptrs[at];
#endif
#if ABOVE
            keys[at] = pack(other, idxs[at]);
#else
            keys[at] = pack(idxs[at], other);
#endif
        }
    }
}
