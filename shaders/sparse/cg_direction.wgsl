// Conjugate gradients, next direction: p = z + beta p. Also decides whether to go on.
#import sparse/solver_params
#import sparse/cg_precondition

@group(0) @binding(3) var<storage, read> r: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_direction(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts {
        return;
    }
    let sums = total_of(params.parts, lane);
    if state[BEFORE] != RUNNING {
        return;
    }
    let found = state[FOUND];
    if part == 0u && lane == 0u {
        if found == RUNNING {
            state[RZ] = bitcast<u32>(sums.y);
            judge(sums.x, bitcast<f32>(state[THRESHOLD]));
        } else {
            state[STATUS] = found;
        }
    }
    if found != RUNNING {
        return;
    }
    let beta = sums.y / bitcast<f32>(state[RZ_BEFORE]);
    for (var i = part * WORKGROUP_SIZE + lane; i < params.n; i += params.parts * WORKGROUP_SIZE) {
        p[i] = preconditioned(r[i], i) + beta * p[i];
    }
}
