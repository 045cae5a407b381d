// The state of a part of a channel, and how two are joined: number of elements, mean, and sum of squared differences
// from the mean (T. Chan, G. Golub, R. LeVeque 1979). With GRADIENTS the sums of dy and of dy times the normalised x.
#import nn/batch_norm_train_params

var<workgroup> wg_states: array<vec4<f32>, WORKGROUP_SIZE>;

fn joined(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
#if GRADIENTS
    return a + b;
#else
    if a.x == 0.0 {
        return b;
    }
    if b.x == 0.0 {
        return a;
    }
    let n = a.x + b.x;
    let apart = b.y - a.y;
    let share = b.x / n;
    return vec4(n, a.y + apart * share, a.z + b.z + apart * apart * (a.x * share), 0.0);
#endif
}

// Joins the states of all threads; the first one gets the result.
fn join_states(lane: u32, own: vec4<f32>) -> vec4<f32> {
    var state = own;
    wg_states[lane] = own;
    for (var half = WORKGROUP_SIZE / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if lane < half {
            state = joined(state, wg_states[lane + half]);
            wg_states[lane] = state;
        }
    }
    return state;
}
