// Computes softmax(scale q k^T + mask) v over a part of the keys: the largest score, the sum of weights and the
// weighted sum of values (Dao et al., "Flash-Decoding", 2023). attention_merge merges the parts.
// A workgroup reads keys and values of one kv head once, for ROWS rows of q of all heads that share it. A team of LANES
// threads takes 4 KEY_BLOCKS keys at a time; a lane has eight elements of a head, and scores are summed over the team.
// SUBGROUPS: a team lies in one subgroup. SINGLE: there is one query. CAREFUL: exp2 may drop NaN.
#import attention/attention_visible
#import attention/attention_mask
#if CAPPED
#import attention/attention_cap
#endif
#import attention/q_f32 as queries
#import attention/kv_f32 as kv
#import element/is_nan

const WORKGROUP_SIZE: u32 = 64u;
// Lanes of a team: a power of two, at least VECTOR and VALUE_VECTOR.
const LANES: u32 = 8u;
const TEAMS: u32 = WORKGROUP_SIZE / LANES;
const ROWS: u32 = 4u;
const KEY_BLOCKS: u32 = 1u;
const TEAM_KEYS: u32 = 4u * KEY_BLOCKS;
// Groups of eight elements of q and k, and of v; the last may be partial.
const VECTOR: u32 = (VEC4S + 1u) / 2u;
const VALUE_VECTOR: u32 = (VALUE_VEC4S + 1u) / 2u;
const PARTIALS_BINDING: u32 = 4u;

// For each part of each row: VALUE_VEC4S vec4s of the weighted sum of values, then the largest score and the sum of
// weights.
@group(0) @binding(PARTIALS_BINDING) var<storage, read_write> partials: array<vec4<f32>>;

var<workgroup> wg_sums: array<vec4<f32>, 2u * WORKGROUP_SIZE>;
var<workgroup> wg_largest: array<vec2<f32>, TEAMS>;
#if SUBGROUPS
enable subgroups;
#else
var<workgroup> wg_scores: array<vec4<f32>, WORKGROUP_SIZE * ROWS * KEY_BLOCKS>;
#endif

#if VEC4S % 2 > 0
#put ragged_eight(query, VEC4S)
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id);
    if index >= params.rows {
        return;
    }
    // Workgroups that read the same keys are neighbours.
    let row_tile = index % params.row_tiles;
    let part = index / params.row_tiles % params.parts;
    let pair = params.first_pair + index / params.row_tiles / params.parts;
    let rows_of_pair = params.heads / params.kv_heads * params.queries;
    let len = length_of(pair / params.kv_heads);
    let begin = visible_to(0u, len).x + part * params.part_keys;
    let end = min(begin + params.part_keys, visible_to(params.queries - 1u, len).y);
    let lane = local % LANES;
    let team = local / LANES;
    // Lanes past the end of a head read its last elements again.
    let eight = min(lane, VECTOR - 1u);
#if VALUE_VECTOR == VECTOR
    let eight_of_v = eight;
#else
    let eight_of_v = min(lane, VALUE_VECTOR - 1u);
#endif
#if CAPPED
    let factor = params.scale;
#else
    // Exponentials are in base 2.
    let factor = params.scale * 1.4426950408889634;
#endif
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);
#for r in ROWS
    let row_{r} = min(row_tile * ROWS + {r}u, rows_of_pair - 1u);
    let at_{r} = pair * rows_of_pair + row_{r};
    let query_{r} = row_{r} % params.queries;
#if VEC4S % 2 > 0
    let q_{r} = query_eight(at_{r}, eight);
    let qa_{r} = q_{r}.a * factor;
    let qb_{r} = q_{r}.b * factor;
#else
    let qa_{r} = query_vec4(at_{r}, 2u * eight) * factor;
    let qb_{r} = query_vec4(at_{r}, 2u * eight + 1u) * factor;
#endif
#if !SINGLE
    let visible_{r} = visible_to(query_{r}, len);
#endif
#if MASKED
    let mask_{r} = mask_row(pair, at_{r} / params.queries % params.heads, query_{r});
#endif
    var largest_{r} = minus_infinity;
    var sum_{r} = 0.0;
    var oa_{r} = vec4<f32>();
    var ob_{r} = vec4<f32>();
#end
    for (var first = begin; first < end; first += TEAMS * TEAM_KEYS) {
#for x in TEAM_KEYS
        let key_{x} = first + team * TEAM_KEYS + {x}u;
        let found_{x} = row_of(pair, min(key_{x}, end - 1u));
#if PAGED
        let k_{x} = key_eight(select(found_{x}, 0u, found_{x} == NO_ROW), eight);
        let v_{x} = value_eight(select(found_{x}, 0u, found_{x} == NO_ROW), eight_of_v);
#else
        let k_{x} = key_eight(found_{x}, eight);
        let v_{x} = value_eight(found_{x}, eight_of_v);
#endif
#end

        // Scores: partial sums of each lane, then sums over the team.
#for r in ROWS
#for b in KEY_BLOCKS
#if LANES == VECTOR
        var s_{r}_{b} = vec4(
#else
        var s_{r}_{b} = select(vec4<f32>(), vec4(
#endif
#for n in 4
            dot(qa_{r}, k_{4 * b + n}.a) + dot(qb_{r}, k_{4 * b + n}.b),
#end
#if LANES == VECTOR
        );
#else
        ), lane < VECTOR);
#endif
#end
#end
#if SUBGROUPS
        // Lanes LANES / 2, LANES / 4, ..., 1 apart exchange their sums; LANES is at most 32.
#for step in 1..6
#if LANES >> step > 0
#for r in ROWS
#for b in KEY_BLOCKS
        s_{r}_{b} += subgroupShuffleXor(s_{r}_{b}, LANES >> {step}u);
#end
#end
#endif
#end
#else
        workgroupBarrier();
#for r in ROWS
#for b in KEY_BLOCKS
        wg_scores[local * (ROWS * KEY_BLOCKS) + {r * KEY_BLOCKS + b}u] = s_{r}_{b};
        s_{r}_{b} = vec4<f32>();
#end
#end
        workgroupBarrier();
        for (var l = 0u; l < LANES; l++) {
#for r in ROWS
#for b in KEY_BLOCKS
            s_{r}_{b} += wg_scores[(team * LANES + l) * (ROWS * KEY_BLOCKS) + {r * KEY_BLOCKS + b}u];
#end
#end
        }
#endif

#if CAPPED
#for r in ROWS
#for b in KEY_BLOCKS
        s_{r}_{b} = 1.4426950408889634 * capped(s_{r}_{b});
#end
#end
#endif

        // Hides keys.
#for b in KEY_BLOCKS
        let keys_{b} = vec4(key_{4 * b}, key_{4 * b + 1}, key_{4 * b + 2}, key_{4 * b + 3});
        let hidden_{b} = (keys_{b} >= vec4(end))
#if PAGED
            | vec4(
#for n in 4
                found_{4 * b + n} == NO_ROW,
#end
            )
#endif
        ;
#if MASKED
        let near_{b} = min(keys_{b}, vec4(end - 1u));
#endif
#end

#for r in ROWS
#for b in KEY_BLOCKS
#if MASKED
        s_{r}_{b} += 1.4426950408889634 * vec4(
#for x in x, y, z, w
            mask[mask_{r} + near_{b}.{x}],
#end
        );
#endif
#if SINGLE
        let hidden_{r}_{b} = hidden_{b};
#else
        let hidden_{r}_{b} = hidden_{b} | (keys_{b} >= vec4(visible_{r}.y)) | (keys_{b} < vec4(visible_{r}.x));
#endif
        s_{r}_{b} = select(s_{r}_{b}, vec4(minus_infinity), hidden_{r}_{b});
#end
        let tops_{r}_0 = s_{r}_0;
#for b in 1..KEY_BLOCKS
        let tops_{r}_{b} = max(tops_{r}_{b - 1}, s_{r}_{b});
#end
        let tops_{r} = tops_{r}_{KEY_BLOCKS - 1};
        let now_{r} = max(largest_{r}, max(max(tops_{r}.x, tops_{r}.y), max(tops_{r}.z, tops_{r}.w)));
        // While a row has seen no key, any finite center will do.
        let center_{r} = select(now_{r}, 0.0, now_{r} == minus_infinity);
        let fade_{r} = exp2(largest_{r} - center_{r});
        largest_{r} = now_{r};
        sum_{r} *= fade_{r};
        oa_{r} *= fade_{r};
        ob_{r} *= fade_{r};
#for b in KEY_BLOCKS
        let d_{r}_{b} = s_{r}_{b} - center_{r};
#if CAREFUL
        let p_{r}_{b} = select(exp2(d_{r}_{b}), d_{r}_{b}, vec4(
#for x in x, y, z, w
            is_nan(d_{r}_{b}.{x}),
#end
        ));
#else
        let p_{r}_{b} = exp2(d_{r}_{b});
#endif
        sum_{r} += p_{r}_{b}.x + p_{r}_{b}.y + p_{r}_{b}.z + p_{r}_{b}.w;
        // 0 times an infinite or NaN value is NaN, so hidden values are dropped.
        if any(hidden_{r}_{b}) {
#for n in 4
            oa_{r} += select(p_{r}_{b}[{n}] * v_{4 * b + n}.a, vec4<f32>(), hidden_{r}_{b}[{n}]);
            ob_{r} += select(p_{r}_{b}[{n}] * v_{4 * b + n}.b, vec4<f32>(), hidden_{r}_{b}[{n}]);
#end
        } else {
#for n in 4
            oa_{r} += p_{r}_{b}[{n}] * v_{4 * b + n}.a;
            ob_{r} += p_{r}_{b}[{n}] * v_{4 * b + n}.b;
#end
        }
#end
#end
    }

    // Merges the teams, row by row.
    let slot = (part + params.parts * (pair - params.first_pair) * rows_of_pair) * (VALUE_VEC4S + 1u);
#for r in ROWS
    workgroupBarrier();
    wg_sums[2u * local] = oa_{r};
    wg_sums[2u * local + 1u] = ob_{r};
    if lane == 0u {
        wg_largest[team] = vec2(largest_{r}, sum_{r});
    }
    workgroupBarrier();
    if row_tile * ROWS + {r}u < rows_of_pair {
        var largest = minus_infinity;
        for (var t = 0u; t < TEAMS; t++) {
            largest = max(largest, wg_largest[t].x);
        }
        let center = select(largest, 0.0, largest == minus_infinity);
        let base = slot + row_{r} * params.parts * (VALUE_VEC4S + 1u);
        for (var column = local; column <= VALUE_VEC4S; column += WORKGROUP_SIZE) {
            var total = 0.0;
            var sum = vec4<f32>();
            for (var t = 0u; t < TEAMS; t++) {
                let weight = exp2(wg_largest[t].x - center);
                total += weight * wg_largest[t].y;
                sum += weight * wg_sums[2u * t * LANES + min(column, VALUE_VEC4S - 1u)];
            }
            partials[base + column] = select(sum, vec4(largest, total, 0.0, 0.0), column == VALUE_VEC4S);
        }
    }
#end
}
