// Power iteration, from q = A x. Without RANK: x = q / |q|, and the distance of x from an eigenvector. With RANK: x =
// damping q + rest, the rest spread evenly or as `start` says (PERSONAL), and the change of x.
#import sparse/solver_params

const X_BINDING: u32 = 4u;
@group(0) @binding(X_BINDING) var<storage, read_write> x: array<f32>;
#if PERSONAL
const START_BINDING: u32 = 5u;
@group(0) @binding(START_BINDING) var<storage, read> start: array<f32>;

fn share(i: u32) -> f32 { return start[i]; }
#else
fn share(i: u32) -> f32 { return 1.0 / f32(params.n); }
#endif

#if BEGIN
// x = the restart distribution.
@compute @workgroup_size(WORKGROUP_SIZE)
fn power_step_start(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i < params.n {
        x[i] = share(i);
    }
}
#else
@group(0) @binding(3) var<storage, read> q: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn power_step(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts {
        return;
    }
    let dots = total_of(0u, lane);
#if RANK
    let rest = 1.0 - params.damping * dots.z;
    let usable = is_finite(dots.z);
#else
    let value = dots.y / dots.w;
    let scale = inverseSqrt(dots.x);
    let usable = dots.x > 0.0 && is_finite(dots.x) && dots.w > 0.0;
#endif
    let end = select(0u, params.n, usable && state[BEFORE] == RUNNING);
    var sums = op_identity();
    for (var i = part * WORKGROUP_SIZE + lane; i < end; i += params.parts * WORKGROUP_SIZE) {
#if RANK
        let next = params.damping * q[i] + rest * share(i);
        sums.x += abs(next - x[i]);
#else
        let apart = q[i] - value * x[i];
        let next = scale * q[i];
        sums.x += apart * apart;
#endif
        x[i] = next;
    }
    let total = workgroup_reduce(sums, lane);
    if lane == 0u {
        partials[params.parts + part] = total;
    }
}

// One workgroup: decides whether to go on.
@compute @workgroup_size(WORKGROUP_SIZE)
fn power_step_judge(@builtin(local_invocation_index) lane: u32) {
    let dots = total_of(0u, lane);
    let sums = total_of(params.parts, lane);
    if lane > 0u || state[BEFORE] != RUNNING {
        return;
    }
#if RANK
    if !is_finite(dots.z) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    judge(sums.x, params.absolute);
#else
    if !is_finite(dots.x) || !is_finite(dots.w) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    if !(dots.x > 0.0) || !(dots.w > 0.0) {
        state[STATUS] = VANISHED;
        state[VALUE] = bitcast<u32>(0.0);
        return;
    }
    let value = dots.y / dots.w;
    state[VALUE] = bitcast<u32>(value);
    judge(sqrt(sums.x / dots.w) / sqrt(dots.x / dots.w), params.relative);
#endif
}
#endif
