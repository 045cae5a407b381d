// y = alpha op(A) x + beta y, for complex numbers.
// cgemv_sums: LANES neighbouring threads walk along a row, or with TRANS along LANES columns, and others beside them;
// a slice has `share` terms of each sum. cgemv_finish: a thread adds up the slices of one sum.
#import op/complex
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 64u;
const TEAMS: u32 = WORKGROUP_SIZE / LANES;

struct Params {
    outputs: u32,
    terms: u32,
    pitch: u32,  // of A, in elements
    slices: u32, // 0 if the product is not added
    share: u32,
    workgroups: u32, // of cgemv_sums
    alpha_re: f32,
    alpha_im: f32,
    beta_re: f32,
    beta_im: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

#if FINISH
@group(0) @binding(1) var<storage, read> sums: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cgemv_finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.outputs { return; }
    var sum = vec2<f32>(0.0);
    for (var slice = 0u; slice < params.slices; slice++) { sum += sums[slice * params.outputs + i]; }
    var result = complex_product(vec2<f32>(params.alpha_re, params.alpha_im), sum);
    // With a beta of 0 the old y does not reach the result.
    if params.beta_re != 0.0 || params.beta_im != 0.0 {
        result += complex_product(vec2<f32>(params.beta_re, params.beta_im), y[i]);
    }
    y[i] = result;
}
#else
@group(0) @binding(1) var<storage, read> a: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> sums: array<vec2<f32>>;

var<workgroup> wg_sums: array<vec2<f32>, WORKGROUP_SIZE>;

fn product(at: u32, term: u32) -> vec2<f32> {
#if CONJUGATED
    return complex_product(conjugate(a[at]), x[term]);
#else
    return complex_product(a[at], x[term]);
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn cgemv_sums(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    if index >= params.workgroups { return; }
    let slice = index % params.slices;
    let block = index / params.slices;
    let begin = slice * params.share;
    let end = min(begin + params.share, params.terms);
    var sum = vec2<f32>(0.0);
#if TRANS
    let i = block * LANES + lane % LANES;
    if i < params.outputs {
        for (var term = begin + lane / LANES; term < end; term += TEAMS) { sum += product(term * params.pitch + i, term); }
    }
    wg_sums[lane] = sum;
    for (var stride = WORKGROUP_SIZE / 2u; stride >= LANES; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_sums[lane] += wg_sums[lane + stride]; }
    }
    if lane < LANES && i < params.outputs { sums[slice * params.outputs + i] = wg_sums[lane]; }
#else
    let i = block * TEAMS + lane / LANES;
    if i < params.outputs {
        for (var term = begin + lane % LANES; term < end; term += LANES) { sum += product(i * params.pitch + term, term); }
    }
    wg_sums[lane] = sum;
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane % LANES < stride { wg_sums[lane] += wg_sums[lane + stride]; }
    }
    if lane % LANES == 0u && i < params.outputs { sums[slice * params.outputs + i] = wg_sums[lane]; }
#endif
}
#endif
