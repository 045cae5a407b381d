// Conjugate gradients on shards: step lengths from the sums of r r and w r of all ranks, w = A r (A. T. Chronopoulos and
// C. W. Gear, 1989). One thread. From the first curvature that is not positive or not finite, alpha stays 0.
struct Params { slots: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;

// Numbers that kernels read, and the host where an iteration fails.
const ALPHA: u32 = 0u;
const BETA: u32 = 1u;
const BEFORE: u32 = 2u;    // r r of the iteration before
const STARTED: u32 = 3u;
const FAILED: u32 = 4u;
const CURVATURE: u32 = 5u;
const ITERATIONS: u32 = 6u;
const HISTORY: u32 = 8u;   // r r of the last `slots` iterations

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

@compute @workgroup_size(1)
fn cg_shard_scalars() {
    let square = sums[0];
    var beta = 0.0;
    var curvature = sums[1];
    if state[STARTED] > 0.0 {
        beta = square / state[BEFORE];
        curvature -= beta * square / state[ALPHA];
    }
    let iteration = bitcast<u32>(state[ITERATIONS]);
    state[HISTORY + iteration % params.slots] = square;
    state[ITERATIONS] = bitcast<f32>(iteration + 1u);
    if state[FAILED] > 0.0 || !is_finite(curvature) || !is_finite(square) || curvature <= 0.0 {
        if state[FAILED] == 0.0 { state[CURVATURE] = curvature; }
        state[FAILED] = 1.0;
        state[ALPHA] = 0.0;
        state[BETA] = 0.0;
        return;
    }
    state[ALPHA] = square / curvature;
    state[BETA] = beta;
    state[BEFORE] = square;
    state[STARTED] = 1.0;
}
