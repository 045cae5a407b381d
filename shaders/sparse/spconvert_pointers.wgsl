// The start of each segment among `sources` sorted indices (with KEYS, sorted keys), by binary search. With RANKED a
// pointer is the rank of what was found. One thread per pointer.
#import sparse/spconvert_params
#if KEYS
#import sparse/spconvert_key
#endif

#if KEYS
@group(0) @binding(1) var<storage, read> keys: array<Key>;
#else
@group(0) @binding(1) var<storage, read> keys: array<u32>;

fn major_of(key: u32) -> u32 { return key; }
#endif
@group(0) @binding(2) var<storage, read_write> ptrs: array<u32>;
#if RANKED
@group(0) @binding(3) var<storage, read> ranks: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_pointers(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let segment = item(group, lane);
    if segment >= params.count {
        return;
    }
    var low = 0u;
    var high = params.sources;
    while low < high {
        let middle = low + (high - low) / 2u;
        if major_of(keys[middle]) < segment {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
#if RANKED
    ptrs[segment] = ranks[low];
#else
    ptrs[segment] = low;
#endif
}
