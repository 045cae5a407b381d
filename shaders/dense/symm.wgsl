// Writes a whole symmetric matrix from the triangle that is stored. A thread writes an element of the result.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, lda: u32, upper: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> whole: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn symm(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup) * WORKGROUP_SIZE + local;
    if index >= params.n * params.n { return; }
    let row = index / params.n;
    let column = index % params.n;
    let stored = select(row >= column, row <= column, params.upper == 1u);
    whole[index] = a[select(column * params.lda + row, row * params.lda + column, stored)];
}
