// Moves entries: each finds its segment, and `source` returns the index it comes from, or none. A workgroup writes a
// tile of entries, neighbouring threads neighbouring ones.
#import sparse/spconvert_params
#import sparse/spconvert_segment
#import sparse/spconvert_as_they_are as source

@group(0) @binding(2) var<storage, read> from_idxs: array<u32>;
@group(0) @binding(3) var<storage, read> from_values: array<Value>;
@group(0) @binding(4) var<storage, read_write> idxs: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<Value>;
#if ROWS
@group(0) @binding(6) var<storage, read_write> row_idxs: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let begin = workgroup_index(group) * TILE;
    if begin >= params.count {
        return;
    }
    find_bounds(lane, begin);
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = begin + i * WORKGROUP_SIZE + lane;
        if at < params.count {
            let segment = segment_of(at);
            let place = source(segment, at - min(ptrs[segment], at));
            var idx = PADDING;
            var value = Value();
            if place < params.sources {
                idx = from_idxs[place];
                value = from_values[place];
            }
#if LIST
            else if place != PADDING && place - params.sources < params.end {
                idx = list_idxs[place - params.sources];
                value = list_values[place - params.sources];
            }
#endif
            idxs[at] = idx;
            values[at] = value;
#if ROWS
            row_idxs[at] = segment;
#endif
        }
    }
}
