// output = alpha x + output, for complex numbers. A thread makes one.
#import op/complex
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, alpha_re: f32, alpha_im: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> output: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn caxpy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i < params.n { output[i] += complex_product(vec2<f32>(params.alpha_re, params.alpha_im), x[i]); }
}
