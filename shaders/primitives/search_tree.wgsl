// Writes the levels of a search tree over sorted elements, one behind the other: the last key of each 8 elements, of
// each 64, and so on. One thread writes one key.
#import element/f32 as element
#import primitives/search_key
#import primitives/search_levels
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read_write> tree: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn search_tree(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    var i = at;
    var level = 1u;
    while level < params.levels && i >= level_len(level) {
        i -= level_len(level);
        level += 1u;
    }
    if i >= level_len(level) { return; }
    let last = min(((i + 1u) << (3u * level)) - 1u, sorted_len() - 1u);
    tree[at] = search_key(decode(sorted[last / PACK], last % PACK));
}
