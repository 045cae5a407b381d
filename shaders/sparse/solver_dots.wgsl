// Partial sums of y y, x y, y and x x, with y = A x: the first kernel of an iteration after the product. It also saves
// the result of the last iteration, which later kernels read and replace.
#import sparse/solver_params

@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> y: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn solver_dots(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts {
        return;
    }
    let status = state[STATUS];
    if part == 0u && lane == 0u {
        state[BEFORE] = status;
        state[RZ_BEFORE] = state[RZ];
        state[FOUND] = RUNNING;
    }
    let end = select(0u, params.n, status == RUNNING);
    var sums = op_identity();
    for (var i = part * WORKGROUP_SIZE + lane; i < end; i += params.parts * WORKGROUP_SIZE) {
        sums += vec4<f32>(y[i] * y[i], x[i] * y[i], y[i], x[i] * x[i]);
    }
    let total = workgroup_reduce(sums, lane);
    if lane == 0u {
        partials[part] = total;
    }
}
