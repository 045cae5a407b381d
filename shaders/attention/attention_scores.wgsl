// Computes the scores of some rows of q: scale q k^T, capped, + mask, or -infinity for hidden keys. STAGE: the scores
// of all keys after that step are a result, 1 before the cap, 2 after it, 3 with the mask and hidden keys.
// A thread computes one score, a workgroup WORKGROUP_SIZE.
#import attention/attention_visible
#import attention/attention_mask
#if CAPPED
#import attention/attention_cap
#endif
#import attention/q_f32 as queries
#import attention/kv_f32 as kv

const WORKGROUP_SIZE: u32 = 256u;
const SCORES_BINDING: u32 = 3u;
const STAGE: u32 = 0u;

@group(0) @binding(SCORES_BINDING) var<storage, read_write> scores: array<f32>;
#if STAGE > 0
@group(0) @binding(SCORES_BINDING + 1u) var<storage, read_write> result: array<f32>;
#endif

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
    let visible = visible_to(query, length_of(pair / params.kv_heads));
    let at = row_of(pair, key);
    // Some compilers reject a constant bitcast to infinity.
    var infinity_bits = 0xff800000u;
    var score = bitcast<f32>(infinity_bits);
#if STAGE > 0
    var staged = score;
    if key < length_of(pair / params.kv_heads) && at != NO_ROW {
#else
    if key >= visible.x && key < visible.y && at != NO_ROW {
#endif
        var sum = vec4<f32>();
        for (var column = 0u; column < VEC4S; column++) {
            sum += query_vec4(row, column) * key_vec4(at, column);
        }
        score = (sum.x + sum.y + sum.z + sum.w) * params.scale;
#if STAGE == 1
        staged = score;
#endif
#if CAPPED
        score = capped(vec4(score)).x;
#endif
#if STAGE == 2
        staged = score;
#endif
#if MASKED
        score += mask[mask_row(pair, head % params.heads, query) + key];
#endif
#if STAGE > 0
        score = select(bitcast<f32>(infinity_bits), score, key >= visible.x && key < visible.y);
#endif
    }
#if STAGE == 3
    staged = score;
#endif
#if STAGE > 0
    result[row * params.keys + key] = staged;
#endif
    scores[index] = score;
}
