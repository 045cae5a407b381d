// Marks the element at each offset as the head of a segment: bit i % 32 of word i / 32. One thread marks one; offsets
// outside are skipped. The words begin as 0.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read_write> heads: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scan_offsets_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let offset = offsets[at];
    if offset < params.n { atomicOr(&heads[offset / 32u], 1u << (offset % 32u)); }
}
