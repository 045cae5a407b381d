// C[b] = alpha * op(A[b]) op(B[b]) + beta * C[b], as the definition says it.
// One invocation computes one element and reads its row of op(A[b]) and its column of op(B[b]) from storage;
// a workgroup computes WORKGROUP_SIZE elements that follow each other through the matrices of the batch.
// Requires f16 where T is f16.
#import dense/gemm_batched_params

const WORKGROUP_SIZE: u32 = 256u;

@group(0) @binding(1) var<storage, read> a: array<T>;
@group(0) @binding(2) var<storage, read> b: array<T>;
@group(0) @binding(3) var<storage, read_write> c: array<T>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_batched_naive(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.workgroups {
        return;
    }
    let element = (params.first + index) * WORKGROUP_SIZE + local;
    let size = params.m * params.n;
    let matrix = element / size;
    if matrix >= params.batch {
        return;
    }
    let row = element % size / params.n;
    let col = element % size % params.n;
#if TRANS_A
    var at_a = matrix * params.stride_a + row;
    let step_a = params.m;
#else
    var at_a = matrix * params.stride_a + row * params.k;
    let step_a = 1u;
#endif
#if TRANS_B
    var at_b = matrix * params.stride_b + col * params.k;
    let step_b = 1u;
#else
    var at_b = matrix * params.stride_b + col;
    let step_b = params.n;
#endif
    var sum = 0.0;
    for (var i = 0u; i < params.k; i++) {
        sum += f32(a[at_a]) * f32(b[at_b]);
        at_a += step_a;
        at_b += step_b;
    }
    let at = matrix * params.stride_c + element % size;
    var value = params.alpha * sum;
    if params.read_c != 0u {
        value += params.beta * f32(c[at]);
    }
    c[at] = T(value);
}
