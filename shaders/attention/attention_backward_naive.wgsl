// Computes the gradients of attention row by row: scores are computed again, no tiles are reused.
// A workgroup computes the gradient of one row: with QUERIES of a query, otherwise of a key. Its threads compute the
// weights of WORKGROUP_SIZE walked rows, then each adds the words of its columns.
#import attention/attention_backward_params
#import element/exp4
#import workgroup/reduce_rows

alias Words = u32;

const WORKGROUP_SIZE: u32 = 64u;
const LANES: u32 = 64u;
const WORDS: u32 = HEAD / PACK;

// For walked rows: the gradient of the score, and the weight.
var<workgroup> wg_terms: array<vec2<f32>, WORKGROUP_SIZE>;

// Returns the score of a query and a key, and the product of the output's gradient and the value.
fn products(query: u32, key: u32) -> vec2<f32> {
    let q_at = (params.base_q + query * HEAD) / PACK;
    let k_at = (params.base_k + key * HEAD) / PACK;
    var both = vec2<f32>();
    for (var word = 0u; word < WORDS; word++) {
        let words = vec4(q[q_at + word], k[k_at + word], dy[q_at + word], v[k_at + word]);
#for i in PACK
        both += vec2(decode(words.x, {i}u), decode(words.z, {i}u)) * vec2(decode(words.y, {i}u), decode(words.w, {i}u));
#end
    }
    return both * vec2(params.scale, 1.0);
}

// Returns the gradient of the score and the weight of a query and a key.
fn terms_of(query: u32, key: u32, of_query: vec2<f32>) -> vec2<f32> {
    let both = products(query, key);
    let weight = exp4(vec4(both.x - of_query.x)).x;
    return vec2(weight * (both.y - of_query.y), weight);
}

#if QUERIES
@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_naive_queries(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let query = workgroup_index(id);
    if query >= params.workgroups {
        return;
    }
    let first_key = query / (params.queries * params.group) * params.keys;
    let visible = visible_to(query % params.queries);
#if STATISTICS
    var infinity_bits = 0xff800000u;
    var largest = bitcast<f32>(infinity_bits);
    for (var key = visible.x + local; key < visible.y; key += WORKGROUP_SIZE) {
        largest = max(largest, products(query, first_key + key).x);
    }
    let center = anchor(row_total(vec4(largest), true, 0u, local, 1u));
    var sums = vec2<f32>();
    for (var key = visible.x + local; key < visible.y; key += WORKGROUP_SIZE) {
        let both = products(query, first_key + key);
        sums += exp4(vec4(both.x - center)).x * vec2(1.0, both.y);
    }
    let total = row_total(vec4(sums.x, 0.0, 0.0, 0.0), false, 1u, local, 1u);
    let weighted = row_total(vec4(sums.y, 0.0, 0.0, 0.0), false, 2u, local, 1u);
    // Without weights the logarithm is infinite, so that later exponentials are 0.
    let logarithm = select(log(total), total, is_nan4(vec4(total)).x);
    let of_query = select(vec2(center + logarithm, weighted / total), vec2(-bitcast<f32>(infinity_bits), 0.0), total == 0.0);
    if local == 0u {
        statistics[query] = of_query;
    }
#else
    let of_query = statistics[query];
#endif
    for (var first_word = 0u; first_word < WORDS; first_word += WORKGROUP_SIZE) {
        let column = first_word + local;
        var sum = vec2<f32>();
        for (var first = visible.x; first < visible.y; first += WORKGROUP_SIZE) {
            let count = min(WORKGROUP_SIZE, visible.y - first);
            if local < count {
                wg_terms[local] = terms_of(query, first_key + first + local, of_query);
            }
            workgroupBarrier();
            if column < WORDS {
                var part = vec2<f32>();
                for (var i = 0u; i < count; i++) {
                    let word = k[(params.base_k + (first_key + first + i) * HEAD) / PACK + column];
                    part += wg_terms[i].x * vec2(decode(word, 0u), decode(word, PACK - 1u));
                }
                sum += part;
            }
            workgroupBarrier();
        }
        if column < WORDS {
            sum *= params.scale;
            dq[(params.base_q + query * HEAD) / PACK + column] = encode(sum.x, sum.y);
        }
    }
}
#else
@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_naive_keys(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let key = workgroup_index(id);
    if key >= params.workgroups {
        return;
    }
    let visible = visible_to(key % params.keys);
    let first_head = key / params.keys * params.group;
    for (var first_word = 0u; first_word < WORDS; first_word += WORKGROUP_SIZE) {
        let column = first_word + local;
        var sum = vec4<f32>();
        for (var head = first_head; head < first_head + params.group; head++) {
            for (var first = visible.x; first < visible.y; first += WORKGROUP_SIZE) {
                let count = min(WORKGROUP_SIZE, visible.y - first);
                let first_query = head * params.queries + first;
                if local < count {
                    wg_terms[local] = terms_of(first_query + local, key, statistics[first_query + local]);
                }
                workgroupBarrier();
                if column < WORDS {
                    var part = vec4<f32>();
                    for (var i = 0u; i < count; i++) {
                        let at = (params.base_q + (first_query + i) * HEAD) / PACK + column;
                        let words = vec2(q[at], dy[at]);
                        part += wg_terms[i].xxyy * vec4(
                            decode(words.x, 0u), decode(words.x, PACK - 1u),
                            decode(words.y, 0u), decode(words.y, PACK - 1u),
                        );
                    }
                    sum += part;
                }
                workgroupBarrier();
            }
        }
        if column < WORDS {
            let at = (params.base_k + key * HEAD) / PACK + column;
            dk[at] = encode(sum.x * params.scale, sum.y * params.scale);
            dv[at] = encode(sum.z, sum.w);
        }
    }
}
#endif
