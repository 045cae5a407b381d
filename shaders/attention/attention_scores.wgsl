// All scores of some rows of q: scale q k^T + mask, -infinity for keys that are not seen.
// One invocation computes one score. Workgroups of WORKGROUP_SIZE.
#import attention/attention_seen
#import attention/attention_mask
#import attention/q_f32 as queries
#import attention/kv_f32 as kv

const WORKGROUP_SIZE: u32 = 256u;
const SCORES_BINDING: u32 = 3u;

@group(0) @binding(SCORES_BINDING) var<storage, read_write> scores: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_scores(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * WORKGROUP_SIZE + local;
    if index >= params.rows * params.keys {
        return;
    }
    let row = params.first_row + index / params.keys;
    let key = index % params.keys;
    let query = row % params.queries;
    let head = row / params.queries;
    let pair = head / (params.heads / params.kv_heads);
    let seen = seen_by(query, length_of(pair / params.kv_heads));
    let at = row_of(pair, key);
    // Made of bits that are no constant, which some compilers refuse.
    var infinity_bits = 0xff800000u;
    var score = bitcast<f32>(infinity_bits);
    if key >= seen.x && key < seen.y && at != NO_ROW {
        var sum = vec4<f32>();
        for (var four = 0u; four < FOURS; four++) {
            sum += query_four(row, four) * key_four(at, four);
        }
        score = (sum.x + sum.y + sum.z + sum.w) * params.scale;
#if MASKED
        score += mask[mask_row(pair, head % params.heads, query) + key];
#endif
    }
    scores[index] = score;
}
