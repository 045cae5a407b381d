// Makes a product of complex matrices one of real ones.
// cgemm_expand: b, a pair x + i y, becomes the rows (x, y) and (-y, x), so that a row of pairs of A times a column of
// them is a pair of C. One thread takes one element of B.
// cgemm_scale: C = beta C, for a beta that is not real. One thread takes one element of C.
#import op/complex
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { rows: u32, columns: u32, factor_re: f32, factor_im: f32 }
@group(0) @binding(0) var<uniform> params: Params;
#if SCALE
@group(0) @binding(1) var<storage, read_write> c: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cgemm_scale(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i < params.rows * params.columns {
        c[i] = complex_product(vec2<f32>(params.factor_re, params.factor_im), c[i]);
    }
}
#else
@group(0) @binding(1) var<storage, read> b: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> expanded: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cgemm_expand(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.rows * params.columns { return; }
    let row = at / params.columns;
    let column = at % params.columns;
#if TRANS_B
    var x = b[column * params.rows + row];
#else
    var x = b[at];
#endif
#if CONJUGATED_B
    x = conjugate(x);
#endif
#if SCALED
    x = complex_product(vec2<f32>(params.factor_re, params.factor_im), x);
#endif
    var second = vec2<f32>(-x.y, x.x);
#if CONJUGATED_A
    second = -second;
#endif
    expanded[2u * row * params.columns + column] = x;
    expanded[(2u * row + 1u) * params.columns + column] = second;
}
#endif
