// a = alpha x x^T + a in one triangle, or with SECOND alpha (x y^T + y x^T) + a. A thread updates an element.
#import dense/band_matrix
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

@group(0) @binding(1) var<storage, read> x: array<f32>;
#if SECOND
@group(0) @binding(2) var<storage, read> y: array<f32>;

fn product(i: u32, j: u32) -> f32 { return x[i] * y[j] + y[i] * x[j]; }
#else

fn product(i: u32, j: u32) -> f32 { return x[i] * x[j]; }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn syr(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let i = index / params.outputs;
    let j = index % params.outputs;
    let off = i32(j) - i32(i);
    if i >= params.outputs || off < params.row_begin || off > params.row_end { return; }
    a[at(i, j)] += params.alpha * product(i, j);
}
