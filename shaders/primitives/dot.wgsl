// Partial sums of products: a workgroup walks every `parts`-th step of 256 vec4s of both vectors (VECTORS), the first
// also the rest. FINAL stores the one sum as an element.
#import dispatch/extent
#import element/f32 as element
#import op/add as op
#import workgroup/index
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = T;

struct Params {
    n: u32,
    parts: u32,
    first: u32,  // parts of earlier dispatches
    before: u32, // elements of these
}
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.n, params.before)
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
#if FINAL
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

fn store(at: u32, total: T) { output[0] = insertBits(output[0], encode(total, total), 0u, 32u / PACK); }
#else
@group(0) @binding(3) var<storage, read_write> output: array<T>;

fn store(at: u32, total: T) { output[at] = total; }
#endif

fn product(at: u32) -> T {
    return decode(x[at / PACK], at % PACK) * decode(y[at / PACK], at % PACK);
}

#if VECTORS
@group(0) @binding(4) var<storage, read> xs: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> ys: array<vec4<u32>>;

fn word_product(a: u32, b: u32) -> T {
    var sum = decode(a, 0u) * decode(b, 0u);
    for (var i = 1u; i < PACK; i++) { sum += decode(a, i) * decode(b, i); }
    return sum;
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn dot(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts { return; }
    var sum = T(0);
    var rest = 0u;
#if VECTORS
    let vectors = extent() / (4u * PACK);
    for (var v = part * WORKGROUP_SIZE + lane; v < vectors; v += params.parts * WORKGROUP_SIZE) {
        let a = xs[v];
        let b = ys[v];
        sum += (word_product(a.x, b.x) + word_product(a.y, b.y)) + (word_product(a.z, b.z) + word_product(a.w, b.w));
    }
    rest = vectors * 4u * PACK;
#endif
    if part == 0u {
        for (var at = rest + lane; at < extent(); at += WORKGROUP_SIZE) { sum += product(at); }
    }
    let total = workgroup_reduce(sum, lane);
    if lane == 0u { store(params.first + part, total); }
}
