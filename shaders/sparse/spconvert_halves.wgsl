// Widens f16 values, two in a word, to a word each; with NARROW the reverse. One thread per two values.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> from_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let pair = item(group, lane);
    let first = 2u * pair;
    if first >= params.count {
        return;
    }
#if NARROW
    // What lies behind the last value keeps its bits.
    var second = words[pair] & 0xffff0000u;
    if first + 1u < params.count {
        second = from_words[first + 1u] << 16u;
    }
    words[pair] = (from_words[first] & 0xffffu) | second;
#else
    let both = from_words[pair];
    words[first] = both & 0xffffu;
    if first + 1u < params.count {
        words[first + 1u] = both >> 16u;
    }
#endif
}
