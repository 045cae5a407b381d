// Conjugate gradients, start: r = b - A x and p = M^-1 r, from q = A x; partial sums of r r, r z and b b.
#import sparse/solver_params
#import sparse/cg_precondition

@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> q: array<f32>;
@group(0) @binding(4) var<storage, read_write> r: array<f32>;
@group(0) @binding(5) var<storage, read_write> p: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_start(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts {
        return;
    }
    var sums = op_identity();
    for (var i = part * WORKGROUP_SIZE + lane; i < params.n; i += params.parts * WORKGROUP_SIZE) {
        let residual = b[i] - q[i];
        let z = preconditioned(residual, i);
        r[i] = residual;
        p[i] = z;
        sums += vec4<f32>(residual * residual, residual * z, b[i] * b[i], 0.0);
    }
    let total = workgroup_reduce(sums, lane);
    if lane == 0u {
        partials[params.parts + part] = total;
    }
}

// One workgroup: the initial state, from the partial sums of all.
@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_start_state(@builtin(local_invocation_index) lane: u32) {
    let sums = total_of(params.parts, lane);
    if lane > 0u {
        return;
    }
    // The terms of smaller sums have too few digits.
    let threshold = max(max(params.relative * sums.z, params.absolute), 1e-30);
    state[THRESHOLD] = bitcast<u32>(threshold);
    state[SCALE] = bitcast<u32>(sums.z);
    state[RESIDUAL] = bitcast<u32>(sums.x);
    state[RZ] = bitcast<u32>(sums.y);
    var status = select(RUNNING, LIMIT, state[ITERATIONS] >= params.limit);
    if state[ROW] != 0u {
        status = DIAGONAL;
    } else if !is_finite(sums.x) || !is_finite(sums.y) || !is_finite(sums.z) {
        status = NOT_FINITE;
    } else if sums.x <= threshold {
        status = CONVERGED;
    }
    state[STATUS] = status;
}
