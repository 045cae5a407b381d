// Conjugate gradients, step along p: x += alpha p, r -= alpha q with q = A p; partial sums of r r and r z. Skipped if p
// q is not positive: the matrix is then not positive definite, or numbers have left the range of f32.
#import sparse/solver_params
#import sparse/cg_precondition

@group(0) @binding(3) var<storage, read> p: array<f32>;
@group(0) @binding(4) var<storage, read> q: array<f32>;
@group(0) @binding(5) var<storage, read_write> x: array<f32>;
@group(0) @binding(6) var<storage, read_write> r: array<f32>;

// The terms of smaller sums have too few digits.
const SMALLEST: f32 = 1e-30;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_update(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts {
        return;
    }
    let pq = total_of(0u, lane).y;
    let running = state[BEFORE] == RUNNING;
    var found = RUNNING;
    if !is_finite(pq) {
        found = NOT_FINITE;
    } else if pq <= 0.0 {
        found = NOT_POSITIVE;
    } else if pq < SMALLEST {
        found = TOO_SMALL;
    }
    if part == 0u && lane == 0u && running {
        state[FOUND] = found;
        state[VALUE] = bitcast<u32>(pq);
    }
    var end = 0u;
    var alpha = 0.0;
    if running && found == RUNNING {
        end = params.n;
        alpha = bitcast<f32>(state[RZ_BEFORE]) / pq;
    }
    var sums = op_identity();
    for (var i = part * WORKGROUP_SIZE + lane; i < end; i += params.parts * WORKGROUP_SIZE) {
        x[i] += alpha * p[i];
        let residual = r[i] - alpha * q[i];
        r[i] = residual;
        sums += vec4<f32>(residual * residual, residual * preconditioned(residual, i), 0.0, 0.0);
    }
    let total = workgroup_reduce(sums, lane);
    if lane == 0u {
        partials[params.parts + part] = total;
    }
}
