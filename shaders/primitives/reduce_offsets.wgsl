// The result of each segment: the last of its prefixes, or the identity if it is empty. One thread copies one word.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    segments: u32,
    each: u32, // words of a result
    n: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read> prefixes: array<u32>;
@group(0) @binding(3) var<storage, read> identity: array<u32>;
@group(0) @binding(4) var<storage, read_write> results: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_offsets(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let segment = at / params.each;
    if segment >= params.segments { return; }
    let word = at % params.each;
    let end = min(offsets[segment + 1u], params.n);
    if offsets[segment] < end {
        results[at] = prefixes[(end - 1u) * params.each + word];
    } else {
        results[at] = identity[word];
    }
}
