// Sets the posts of a look-back scan to not ready, one word a thread.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { words: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> posts: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scan_clear(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.words { posts[at] = 0u; }
}
