// Writes the factors of syr2k side by side: A before B, and B before A. A thread copies an element of each.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32, columns: u32, lda: u32, ldb: u32,
    pitch: u32,  // elements from one row of the results to the next
    second: u32, // where the second factor begins in a result
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> left: array<f32>;
@group(0) @binding(4) var<storage, read_write> right: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn syr2k(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup) * WORKGROUP_SIZE + local;
    let row = index / params.columns;
    let column = index % params.columns;
    if row >= params.rows { return; }
    let x = a[row * params.lda + column];
    let y = b[row * params.ldb + column];
    let at = row * params.pitch + column;
    left[at] = x;
    left[at + params.second] = y;
    right[at] = y;
    right[at + params.second] = x;
}
