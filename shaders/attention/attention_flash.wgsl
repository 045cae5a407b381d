// Computes softmax(scale q k^T + mask) v with scores in registers (Dao, "FlashAttention-2", 2023).
//
// A workgroup computes TILE_ROWS rows of q and walks over the keys that they see, TILE_KEYS at a time. LANES threads
// share a row. A thread computes vec4s of scores, then vec4s of the output, for THREAD_ROWS rows. The statistics and
// the output of a row stay in registers.
//
// wg_vec4s holds tiles of q and k, TILE_DIMS dimensions at a time; then, in the same place, weights and tiles of v. The
// vec4s of a row are swizzled, so that lanes that read one column of several rows hit different banks.
//
// SUBGROUPS: the lanes of a row lie in one subgroup. CAREFUL: exp2 may drop NaN.
#import attention/attention_visible
#import attention/attention_mask
#if CAPPED
#import attention/attention_cap
#endif
#import attention/attention_output
#import attention/attention_logsumexp
#import attention/q_f32 as queries
#import attention/kv_f32 as kv
#import element/is_nan
#import attention/across_lanes

const TILE_ROWS: u32 = 64u;
// A multiple of 4 * LANES.
const TILE_KEYS: u32 = 32u;
// A power of two.
const LANES: u32 = 8u;
// TILE_ROWS / THREAD_ROWS is a power of two.
const THREAD_ROWS: u32 = 4u;
// Dimensions of q and k staged at once: 4 times a power of two.
const TILE_DIMS: u32 = 32u;
// Keys whose weights are staged at once: a power of two, a multiple of 4 * LANES, a divisor of TILE_KEYS.
const TILE_WEIGHTS: u32 = 32u;
// Keys whose values are staged at once: a multiple of 4, a divisor of TILE_WEIGHTS.
const TILE_VALUES: u32 = 8u;
// Loads the next data to registers while the current data is used.
const AHEAD: bool = false;

// Threads in a column of the tile.
const GROUPS: u32 = TILE_ROWS / THREAD_ROWS;
const WORKGROUP_SIZE: u32 = GROUPS * LANES;
// Vec4s of keys, of weights, and of output columns of a thread.
const KEY_BLOCKS: u32 = TILE_KEYS / (4u * LANES);
const WEIGHT_BLOCKS: u32 = TILE_WEIGHTS / (4u * LANES);
const COLUMN_BLOCKS: u32 = (VALUE_VEC4S + LANES - 1u) / LANES;
// Vec4s of a row of q and k staged at once, and of a row of weights.
const CHUNK: u32 = TILE_DIMS / 4u;
const WEIGHT_VEC4S: u32 = TILE_WEIGHTS / 4u;
// Tiles of v for the weights that are staged.
const STEPS: u32 = TILE_WEIGHTS / TILE_VALUES;
// Vec4s of q, k and v staged at once, and where k and v begin.
const COUNT_Q: u32 = TILE_ROWS * CHUNK;
const COUNT_K: u32 = TILE_KEYS * CHUNK;
const COUNT_V: u32 = TILE_VALUES * VALUE_VEC4S;
const FIRST_K: u32 = COUNT_Q;
const FIRST_V: u32 = TILE_ROWS * WEIGHT_VEC4S;
// Every thread loads equally many vec4s.
const WHOLE_SCORES: bool = COUNT_Q % WORKGROUP_SIZE == 0u && COUNT_K % WORKGROUP_SIZE == 0u;
const LOADS_AHEAD: bool = AHEAD && WHOLE_SCORES && COUNT_V % WORKGROUP_SIZE == 0u;

// The swizzle: the column of a vec4 is XORed with (row >> SHIFT) & MASK. Eight vec4s are as wide as the banks. The rows
// of a thread are a multiple of GROUPS apart, its vec4s of keys a multiple of LANES, so a thread needs one swizzle.
const SHIFT_Q: u32 = firstLeadingBit(max(min(GROUPS, 8u) / CHUNK, 1u));
const MASK_Q: u32 = min(CHUNK, min(GROUPS, 8u)) - 1u;
// For rows of four keys.
const SHIFT_K: u32 = firstLeadingBit(max(min(LANES, 8u) / CHUNK, 1u));
const MASK_K: u32 = min(CHUNK, min(LANES, 8u)) - 1u;
// For weights.
const SHIFT_P: u32 = firstLeadingBit(max(min(GROUPS, 8u) / WEIGHT_VEC4S, 1u));
const MASK_P: u32 = min(WEIGHT_VEC4S, min(GROUPS, 8u)) - 1u;

#if SUBGROUPS
enable subgroups;
#else
var<workgroup> wg_rows: array<f32, WORKGROUP_SIZE * THREAD_ROWS>;
#endif
var<workgroup> wg_vec4s: array<vec4<f32>, max(COUNT_Q + COUNT_K, FIRST_V + COUNT_V)>;

// Loads `x`, vec4 i of the staged q; a row begins at column `begin`.
#block load_Q(key, begin)
            let at = head * params.queries + min(first_query + i / CHUNK, last_query);
            var x = vec4<f32>();
#if VEC4S % CHUNK == 0
            x = query_vec4(at, {begin} + i % CHUNK);
#else
            if {begin} + i % CHUNK < VEC4S {
                x = query_vec4(at, {begin} + i % CHUNK);
            }
#endif
#end

// Loads `x`, vec4 i of the staged k; rows begin at `key`, columns at `begin`.
#block load_K(key, begin)
            let at = row_of(pair, min({key} + i / CHUNK, end_key - 1u));
            var x = vec4<f32>();
#if PAGED
            if at != NO_ROW {
#endif
#if VEC4S % CHUNK == 0
            x = key_vec4(at, {begin} + i % CHUNK);
#else
            if {begin} + i % CHUNK < VEC4S {
                x = key_vec4(at, {begin} + i % CHUNK);
            }
#endif
#if PAGED
            }
#endif
#end

// Loads `x`, vec4 i of the staged v; rows begin at `key`. HIDES_ENDS: all rows see the same keys, and the last tile may
// hold hidden ones. Their values become 0, since an infinite or NaN value times a weight of 0 is NaN. If rows see
// different keys, the vote below checks the values.
#block load_V(key, begin)
            let at = row_of(pair, min({key} + i / VALUE_VEC4S, end_key - 1u));
            var x = vec4<f32>();
#if PAGED
            if at != NO_ROW {
#endif
#if HIDES_ENDS
            if {key} + i / VALUE_VEC4S < end_key {
                x = value_vec4(at, i % VALUE_VEC4S);
            }
#else
            x = value_vec4(at, i % VALUE_VEC4S);
#endif
#if PAGED
            }
#endif
#end

// Stores vec4 i in wg_vec4s.
#block store_Q()
            wg_vec4s[i / CHUNK * CHUNK + ((i % CHUNK) ^ (((i / CHUNK) >> SHIFT_Q) & MASK_Q))] = x;
#end
#block store_K()
            wg_vec4s[FIRST_K + i / CHUNK * CHUNK + ((i % CHUNK) ^ ((((i / CHUNK) >> 2u) >> SHIFT_K) & MASK_K))] = x;
#end
#block store_V()
            wg_vec4s[FIRST_V + i] = x;
#end

// Loads vec4s of Q, K or V ahead, to registers.
#block ahead(of, key, begin)
#for n in COUNT_{of} / WORKGROUP_SIZE
        {
            let i = local + {n}u * WORKGROUP_SIZE;
#put load_{of}({key}, {begin})
            ahead_{of}_{n} = x;
        }
#end
#end

// Once the scores of a tile are known: loads the values after its first `done` keys, or q and k of the next tile.
#block ahead_after(done)
#if LOADS_AHEAD
#if done < TILE_KEYS
#put ahead(V, key + {done}u, 0u)
#else
#put ahead(Q, key + TILE_KEYS, 0u)
#put ahead(K, key + TILE_KEYS, 0u)
#endif
#endif
#end

// Fills wg_vec4s with vec4s of Q, K or V, from registers or memory. If every thread has equally many, the loads are
// unrolled, so that all are in flight together.
#block stage(of, key, begin)
#for n in select(1, COUNT_{of} / WORKGROUP_SIZE, COUNT_{of} % WORKGROUP_SIZE == 0)
#if COUNT_{of} % WORKGROUP_SIZE == 0
        {
            let i = local + {n}u * WORKGROUP_SIZE;
#else
        for (var i = local; i < COUNT_{of}; i += WORKGROUP_SIZE) {
#endif
#if LOADS_AHEAD
            let x = ahead_{of}_{n};
#else
#put load_{of}({key}, {begin})
#endif
#put store_{of}()
        }
#end
#end

// Adds the staged values, those of a step, times their weights to the output.
#block add_values(step)
    for (var j = 0u; j < TILE_VALUES / 4u; j++) {
        let p_at = group_row * WEIGHT_VEC4S + (({step} * (TILE_VALUES / 4u) + j) ^ swizzle_p);
        let v_at = FIRST_V + j * (4u * VALUE_VEC4S);
#for r in THREAD_ROWS
        let p_{r} = wg_vec4s[p_at + {r}u * GROUPS * WEIGHT_VEC4S];
#end
#for n in 4
#for c in COLUMN_BLOCKS
#if (c + 1) * LANES > VALUE_VEC4S
        // Columns past the end read the last vec4.
        let v_{c}_{n} = wg_vec4s[v_at + {n}u * VALUE_VEC4S + min(lane + {c}u * LANES, VALUE_VEC4S - 1u)];
#else
        let v_{c}_{n} = wg_vec4s[v_at + {n}u * VALUE_VEC4S + lane + {c}u * LANES];
#endif
#for r in THREAD_ROWS
        o_{r}_{c} += p_{r}[{n}] * v_{c}_{n};
#end
#end
#end
    }
#end

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_flash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id);
    if index >= params.rows {
        return;
    }
#put tile_of_queries(TILE_ROWS)
    let lane = local % LANES;
    let group_row = local / LANES;
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);
#for r in THREAD_ROWS
    let query_{r} = min(first_query + group_row + {r}u * GROUPS, last_query);
#if CAUSAL || WINDOWED
    let visible_{r} = visible_to(query_{r}, len);
#endif
#if MASKED
    let mask_{r} = mask_row(pair, head % params.heads, query_{r});
#endif
    var largest_{r} = minus_infinity;
    var sum_{r} = 0.0;
#for c in COLUMN_BLOCKS
    var o_{r}_{c} = vec4<f32>();
#end
#end
    // Exponentials are in base 2.
    let factor = params.scale * 1.4426950408889634;
    let swizzle_q = (group_row >> SHIFT_Q) & MASK_Q;
    let swizzle_k = (lane >> SHIFT_K) & MASK_K;
    let swizzle_p = (group_row >> SHIFT_P) & MASK_P;
#if LOADS_AHEAD
#for of in Q, K, V
#for n in COUNT_{of} / WORKGROUP_SIZE
    var ahead_{of}_{n} = vec4<f32>();
#end
#end
    if visible_to_first.x < end_key {
#put ahead(Q, visible_to_first.x, 0u)
#put ahead(K, visible_to_first.x, 0u)
    }
#endif
    for (var key = visible_to_first.x; key < end_key; key += TILE_KEYS) {
#if CAUSAL || WINDOWED
        // Only tiles at an edge of the visible keys hide keys.
        let edge = key + TILE_KEYS > visible_to_first.y || key < visible_to_last.x;
#endif

        // Scores: q k^T.
#for r in THREAD_ROWS
#for b in KEY_BLOCKS
        var s_{r}_{b} = vec4<f32>();
#end
#end
        for (var begin = 0u; begin < VEC4S; begin += CHUNK) {
            // All threads have read the previous contents.
            workgroupBarrier();
#put stage(Q, key, begin)
#put stage(K, key, begin)
            workgroupBarrier();
#if LOADS_AHEAD && VEC4S > CHUNK
            if begin + CHUNK < VEC4S {
#put ahead(Q, key, begin + CHUNK)
#put ahead(K, key, begin + CHUNK)
            }
#endif
            for (var column = 0u; column < CHUNK; column++) {
                let q_at = group_row * CHUNK + (column ^ swizzle_q);
                let k_at = FIRST_K + lane * (4u * CHUNK) + (column ^ swizzle_k);
#for r in THREAD_ROWS
                let q_{r} = wg_vec4s[q_at + {r}u * GROUPS * CHUNK];
#end
#for b in KEY_BLOCKS
#for n in 4
                let k_{b}_{n} = wg_vec4s[k_at + ({b}u * LANES * 4u + {n}u) * CHUNK];
#end
#for x in x, y, z, w
                let k_{b}{x} = vec4(k_{b}_0.{x}, k_{b}_1.{x}, k_{b}_2.{x}, k_{b}_3.{x});
#for r in THREAD_ROWS
                s_{r}_{b} += q_{r}.{x} * k_{b}{x};
#end
#end
#end
            }
        }
#put ahead_after(0)

        // From scores to weights: hides keys, finds the largest score of each row, takes exponentials.
#for r in THREAD_ROWS
#for b in KEY_BLOCKS
#if CAPPED
        s_{r}_{b} = 1.4426950408889634 * capped(s_{r}_{b} * params.scale);
#else
        s_{r}_{b} *= factor;
#endif
#end
#end
#if MASKED
#for b in KEY_BLOCKS
        {
            let at = key + 4u * lane + vec4(0u, 1u, 2u, 3u) + vec4({b}u * 4u * LANES);
            let near = min(at, vec4(end_key - 1u));
#for r in THREAD_ROWS
            s_{r}_{b} += 1.4426950408889634 * vec4(
#for x in x, y, z, w
                mask[mask_{r} + near.{x}],
#end
            );
#end
        }
#end
#endif
#if PAGED
        // Pages may be missing anywhere.
        {
#else
#if CAUSAL || WINDOWED
        if edge {
#else
        if key + TILE_KEYS > visible_to_first.y || key < visible_to_last.x {
#endif
#endif
#for b in KEY_BLOCKS
            let at_{b} = key + 4u * lane + {b}u * 4u * LANES + vec4(0u, 1u, 2u, 3u);
#if PAGED
            let missing_{b} = vec4(
#for x in x, y, z, w
                row_of(pair, min(at_{b}.{x}, end_key - 1u)) == NO_ROW,
#end
            );
#endif
#for r in THREAD_ROWS
            s_{r}_{b} = select(s_{r}_{b}, vec4(minus_infinity), (at_{b} >= vec4(end_key))
#if PAGED
                | missing_{b}
#endif
#if CAUSAL || WINDOWED
                | (at_{b} >= vec4(visible_{r}.y))
#endif
#if WINDOWED
                | (at_{b} < vec4(visible_{r}.x))
#endif
            );
#end
#end
        }
#for r in THREAD_ROWS
        let tops_{r}_0 = s_{r}_0;
#for b in 1..KEY_BLOCKS
        let tops_{r}_{b} = max(tops_{r}_{b - 1}, s_{r}_{b});
#end
        let tops_{r} = tops_{r}_{KEY_BLOCKS - 1};
        var top_{r} = max(max(tops_{r}.x, tops_{r}.y), max(tops_{r}.z, tops_{r}.w));
#end
#put across(top, true)
#for r in THREAD_ROWS
        let now_{r} = max(largest_{r}, top_{r});
        // While a row has seen no key, any finite center will do.
        let center_{r} = select(now_{r}, 0.0, now_{r} == minus_infinity);
        let fade_{r} = exp2(largest_{r} - center_{r});
        largest_{r} = now_{r};
        sum_{r} *= fade_{r};
#for b in KEY_BLOCKS
#if CAREFUL
        {
            let x = s_{r}_{b} - center_{r};
            s_{r}_{b} = select(exp2(x), x, vec4(is_nan(x.x), is_nan(x.y), is_nan(x.z), is_nan(x.w)));
        }
#else
        s_{r}_{b} = exp2(s_{r}_{b} - center_{r});
#endif
        sum_{r} += s_{r}_{b}.x + s_{r}_{b}.y + s_{r}_{b}.z + s_{r}_{b}.w;
#end
#for c in COLUMN_BLOCKS
        o_{r}_{c} *= fade_{r};
#end
#end

#if CAUSAL || WINDOWED
        // A tile is spoiled if it hides keys from some rows and holds an infinite or NaN value, whose product with a
        // weight of 0 is NaN.
        var spoiled = false;
        if edge {
            // Bits without signs.
            var largest = vec4<u32>();
            for (var i = local; i < TILE_KEYS * VALUE_VEC4S; i += WORKGROUP_SIZE) {
                let at = row_of(pair, min(key + i / VALUE_VEC4S, end_key - 1u));
#if PAGED
                if at != NO_ROW {
#endif
                largest = max(largest, bitcast<vec4<u32>>(value_vec4(at, i % VALUE_VEC4S)) & vec4(0x7fffffffu));
#if PAGED
                }
#endif
            }
            // All threads have read the previous contents.
            workgroupBarrier();
            wg_vec4s[local] = vec4(select(0.0, 1.0, any(largest >= vec4(0x7f800000u))));
            for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
                workgroupBarrier();
                if local < stride {
                    wg_vec4s[local] += wg_vec4s[local + stride];
                }
            }
            spoiled = workgroupUniformLoad(&wg_vec4s[0]).x > 0.0;
        }
#endif

        // The output: weights times values.
#for part in TILE_KEYS / TILE_WEIGHTS
        // All threads have read the previous contents.
        workgroupBarrier();
#for b in WEIGHT_BLOCKS
#for r in THREAD_ROWS
        wg_vec4s[(group_row + {r}u * GROUPS) * WEIGHT_VEC4S + ((lane + {b}u * LANES) ^ swizzle_p)] =
            s_{r}_{part * WEIGHT_BLOCKS + b};
#end
#end
#if CAUSAL || WINDOWED
        if spoiled {
            // Key by key: each row adds the values that it sees.
            workgroupBarrier();
            for (var j = 0u; j < TILE_WEIGHTS; j++) {
                let at_key = key + {part}u * TILE_WEIGHTS + j;
                let at = row_of(pair, min(at_key, end_key - 1u));
#if PAGED
                if at_key < end_key && at != NO_ROW {
#else
                if at_key < end_key {
#endif
#for c in COLUMN_BLOCKS
#if (c + 1) * LANES > VALUE_VEC4S
                    let v_{c} = value_vec4(at, min(lane + {c}u * LANES, VALUE_VEC4S - 1u));
#else
                    let v_{c} = value_vec4(at, lane + {c}u * LANES);
#endif
#end
#for r in THREAD_ROWS
                    if at_key >= visible_{r}.x && at_key < visible_{r}.y {
                        let weights = wg_vec4s[(group_row + {r}u * GROUPS) * WEIGHT_VEC4S + ((j / 4u) ^ swizzle_p)];
                        let low = select(weights.x, weights.y, j % 4u == 1u);
                        let high = select(weights.z, weights.w, j % 4u == 3u);
                        let p = select(low, high, j % 4u >= 2u);
#for c in COLUMN_BLOCKS
                        o_{r}_{c} += p * v_{c};
#end
                    }
#end
                }
            }
#put ahead_after({(part + 1) * TILE_WEIGHTS})
        } else {
#endif
#if (CAUSAL || WINDOWED) && LOADS_AHEAD && STEPS > 1
        // Not unrolled: this kernel is long, and would take twice the time to compile.
        for (var step = 0u; step < STEPS; step++) {
            if step > 0u {
                workgroupBarrier();
            }
#put stage(V, key + {part * TILE_WEIGHTS}u + step * TILE_VALUES, 0u)
            workgroupBarrier();
            if step + 1u < STEPS {
#put ahead(V, key + {part * TILE_WEIGHTS}u + (step + 1u) * TILE_VALUES, 0u)
            } else {
#put ahead_after({(part + 1) * TILE_WEIGHTS})
            }
#put add_values(step)
        }
#else
#for step in STEPS
#if step > 0
        workgroupBarrier();
#endif
#put stage(V, key + {part * TILE_WEIGHTS + step * TILE_VALUES}u, 0u)
        workgroupBarrier();
#put ahead_after({part * TILE_WEIGHTS + (step + 1) * TILE_VALUES})
#put add_values({step}u)
#end
#endif
#if CAUSAL || WINDOWED
        }
#endif
#end
    }

    // Adds the sums of the lanes, divides, stores.
#put across(sum, false)
#for r in THREAD_ROWS
    if first_query + group_row + {r}u * GROUPS <= last_query {
        let by = select(1.0 / sum_{r}, 0.0, sum_{r} == 0.0);
#if LOGSUMEXP
        if lane == 0u {
            store_logsumexp(head * params.queries + query_{r}, largest_{r}, sum_{r});
        }
#endif
#for c in COLUMN_BLOCKS
#if (c + 1) * LANES > VALUE_VEC4S
        if lane + {c}u * LANES < VALUE_VEC4S {
            store_vec4(head * params.queries + query_{r}, lane + {c}u * LANES, o_{r}_{c} * by);
        }
#else
        store_vec4(head * params.queries + query_{r}, lane + {c}u * LANES, o_{r}_{c} * by);
#endif
#end
    }
#end
}
