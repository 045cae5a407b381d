// Rows of probabilities times the values.
// One invocation computes four elements of the result. Workgroups of WORKGROUP_SIZE.
#import attention/attention_seen
#import attention/kv_f32 as kv
#import attention/attention_output

const WORKGROUP_SIZE: u32 = 256u;
const SCORES_BINDING: u32 = 3u;

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
    var sum = vec4<f32>();
    for (var key = seen.x; key < seen.y; key++) {
        let at = row_of(pair, key);
        if at != NO_ROW {
            sum += scores[row * params.keys + key] * value_four(at, four);
        }
    }
    store_four(of_all, four, sum);
}
