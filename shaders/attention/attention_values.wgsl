// Multiplies rows of probabilities by the values.
// A thread computes four elements of the output.
#import attention/attention_visible
#import attention/kv_f32 as kv
#import attention/attention_output

const WORKGROUP_SIZE: u32 = 256u;
const SCORES_BINDING: u32 = 3u;
// Keys summed separately, since rounding errors grow with the terms of a sum.
const RUN: u32 = 1024u;

@group(0) @binding(SCORES_BINDING) var<storage, read> scores: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_values(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * WORKGROUP_SIZE + local;
    if index >= params.rows * VALUE_VEC4S {
        return;
    }
    let row = index / VALUE_VEC4S;
    let column = index % VALUE_VEC4S;
    let of_all = params.first_row + row;
    let pair = of_all / params.queries / (params.heads / params.kv_heads);
    let visible = visible_to(of_all % params.queries, length_of(pair / params.kv_heads));
    var total = vec4<f32>();
    for (var first = visible.x; first < visible.y; first += RUN) {
        let end = min(first + RUN, visible.y);
        var sum = vec4<f32>();
        for (var key = first; key < end; key++) {
            let at = row_of(pair, key);
            if at != NO_ROW {
                sum += scores[row * params.keys + key] * value_vec4(at, column);
            }
        }
        total += sum;
    }
    store_vec4(of_all, column, total);
}
