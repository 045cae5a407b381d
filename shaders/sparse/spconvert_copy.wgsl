// Copies a list. One thread per word.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> from_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at < params.count {
        words[at] = from_words[at];
    }
}
