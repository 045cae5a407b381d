// Replaces rows of scores with their softmax, or with zeros if all scores are -infinity.
// A workgroup computes one row. RESULT: the weights are a result, too.
#import attention/attention_params
#import attention/attention_logsumexp
#import element/exp4
#import workgroup/reduce_rows

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u;
const SCORES_BINDING: u32 = 1u;
// Keys that a thread sums separately, since rounding errors grow with the terms of a sum.
const RUN: u32 = 256u;

@group(0) @binding(SCORES_BINDING) var<storage, read_write> scores: array<f32>;
#if RESULT
@group(0) @binding(SCORES_BINDING + 1u) var<storage, read_write> result: array<f32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_softmax(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = workgroup_index(id);
    if row >= params.rows {
        return;
    }
    let base = row * params.keys;
    var largest_bits = 0xff800000u;
    let least = bitcast<f32>(largest_bits);
    var largest = least;
    for (var key = local; key < params.keys; key += WORKGROUP_SIZE) {
        largest = max(largest, scores[base + key]);
    }
    let center = anchor(row_total(vec4(largest), true, 0u, local, 1u));
    var sum = 0.0;
    for (var first = local; first < params.keys; first += RUN * WORKGROUP_SIZE) {
        let end = min(first + RUN * WORKGROUP_SIZE, params.keys);
        var part = 0.0;
        for (var key = first; key < end; key += WORKGROUP_SIZE) {
            let x = exp4(vec4(scores[base + key] - center)).x;
            scores[base + key] = x;
            part += x;
        }
        sum += part;
    }
    let total = row_total(vec4(sum, 0.0, 0.0, 0.0), false, 1u, local, 1u);
    let factor = select(1.0 / total, 0.0, total == 0.0);
#if LOGSUMEXP
    if local == 0u {
        store_logsumexp(params.first_row + row, center / LN_2, total);
    }
#endif
    for (var key = local; key < params.keys; key += WORKGROUP_SIZE) {
        scores[base + key] *= factor;
#if RESULT
        result[(params.first_row + row) * params.keys + key] = scores[base + key];
#endif
    }
}
