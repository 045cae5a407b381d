// Swaps two vectors. A thread swaps a word; one that they fill only in part keeps the rest.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn swap(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if word >= (params.n - 1u) / PACK + 1u { return; }
    let a = x[word];
    let b = y[word];
    let bits = min(PACK, params.n - word * PACK) * (32u / PACK);
    x[word] = insertBits(a, b, 0u, bits);
    y[word] = insertBits(b, a, 0u, bits);
}
