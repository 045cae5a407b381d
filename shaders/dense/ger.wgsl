// output[i, j] = alpha x[i] y[j] + output[i, j], or without UPDATES only the product. A thread makes the PACK elements
// of a word; a word that the matrix fills only in part keeps the rest.
#import element/f32 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { m: u32, n: u32, alpha: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
@group(0) @binding(3) var<storage, read_write> a: array<u32>;

fn product(at: u32) -> f32 {
    let i = at / params.n;
    let j = at % params.n;
    return params.alpha * decode(x[i / PACK], i % PACK) * decode(y[j / PACK], j % PACK);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn ger(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let total = params.m * params.n;
    if word >= (total - 1u) / PACK + 1u { return; }
    let first = word * PACK;
    let last = min(first + PACK, total) - 1u;
    var low = product(first);
    var high = product(last);
#if UPDATES
    low += decode(a[word], 0u);
    high += decode(a[word], PACK - 1u);
#endif
    if last - first + 1u < PACK {
        a[word] = insertBits(a[word], encode(low, low), 0u, 32u / PACK);
    } else {
        a[word] = encode(low, high);
    }
}
