// Rows of probabilities times the values.
// One invocation computes four elements of the result. Workgroups of WORKGROUP_SIZE.
#import attention/attention_seen
#import attention/kv_f32 as kv
#import attention/attention_output

const WORKGROUP_SIZE: u32 = 256u;
const SCORES_BINDING: u32 = 3u;
// Keys that are summed on their own: errors grow with the terms of a sum.
const RUN: u32 = 1024u;

@group(0) @binding(SCORES_BINDING) var<storage, read> scores: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_values(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * WORKGROUP_SIZE + local;
    if index >= params.rows * FOURS {
        return;
    }
    let row = index / FOURS;
    let four = index % FOURS;
    let of_all = params.first_row + row;
    let pair = of_all / params.queries / (params.heads / params.kv_heads);
    let seen = seen_by(of_all % params.queries, length_of(pair / params.kv_heads));
    var total = vec4<f32>();
    for (var first = seen.x; first < seen.y; first += RUN) {
        let end = min(first + RUN, seen.y);
        var sum = vec4<f32>();
        for (var key = first; key < end; key++) {
            let at = row_of(pair, key);
            if at != NO_ROW {
                sum += scores[row * params.keys + key] * value_four(at, four);
            }
        }
        total += sum;
    }
    store_four(of_all, four, total);
}
