// Counts of 64 bits from counts of 32: two words each, the lower first. With ACCUMULATED they are added to those that
// are there. One thread makes one count.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { bins: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<vec2<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_wide(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let bin = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if bin >= params.bins { return; }
    let count = counts[bin];
#if ACCUMULATED
    let old = output[bin];
    let low = old.x + count;
    output[bin] = vec2<u32>(low, old.y + select(0u, 1u, low < count));
#else
    output[bin] = vec2<u32>(count, 0u);
#endif
}
