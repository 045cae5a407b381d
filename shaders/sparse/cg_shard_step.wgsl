// Conjugate gradients on shards: one workgroup adds up the partial sums of the only rank, and finds the lengths of the
// next step (A. T. Chronopoulos and C. W. Gear, 1989).
#import op/add as op
#import sparse/cg_shard_state
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = vec2<f32>;

struct Params { parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> state: array<u32>;

fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }

fn advance(square: f32, along: f32) {
    let count = state[COUNT];
    state[HISTORY + count % HISTORY_LEN] = bitcast<u32>(square);
    state[COUNT] = count + 1u;
    if !is_finite(square) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    if square <= bitcast<f32>(state[THRESHOLD]) {
        state[STATUS] = CONVERGED;
        return;
    }
    if state[LEFT] == 0u {
        state[STATUS] = LIMIT;
        return;
    }
    var beta = 0.0;
    var curvature = along;
    if count > 0u {
        beta = square / bitcast<f32>(state[OLD]);
        curvature -= beta * (square / bitcast<f32>(state[ALPHA]));
    }
    state[CURVATURE] = bitcast<u32>(curvature);
    if !is_finite(curvature) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    if curvature <= 0.0 {
        state[STATUS] = NOT_POSITIVE;
        return;
    }
    state[ALPHA] = bitcast<u32>(square / curvature);
    state[BETA] = bitcast<u32>(beta);
    state[OLD] = bitcast<u32>(square);
    state[LEFT] -= 1u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_step(@builtin(local_invocation_index) lane: u32) {
    var sum = op_identity();
    for (var i = lane; i < params.parts; i += WORKGROUP_SIZE) { sum += partials[i]; }
    let total = workgroup_reduce(sum, lane);
    if lane == 0u && state[STATUS] == GOING { advance(total.x, total.y); }
}
