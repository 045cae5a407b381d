// Sums of products of complex numbers: a workgroup adds up every `parts`-th step of 256 products, those of conjugates
// of x with CONJUGATED. With FINISH one workgroup adds up such sums.
#import op/complex
#import workgroup/index
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = vec2<f32>;

fn op_combine(a: Acc, b: Acc) -> Acc { return a + b; }

struct Params { n: u32, parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
#if FINISH
@group(0) @binding(1) var<storage, read> sums: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> output: array<vec2<f32>>;

fn term(at: u32) -> Acc { return sums[at]; }
#else
@group(0) @binding(1) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> y: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> output: array<vec2<f32>>;

fn term(at: u32) -> Acc {
#if CONJUGATED
    return complex_product(conjugate(x[at]), y[at]);
#else
    return complex_product(x[at], y[at]);
#endif
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn cdot(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts { return; }
    var sum = vec2<f32>(0.0);
    for (var at = part * WORKGROUP_SIZE + lane; at < params.n; at += params.parts * WORKGROUP_SIZE) { sum += term(at); }
    let total = workgroup_reduce(sum, lane);
    if lane == 0u { output[part] = total; }
}
