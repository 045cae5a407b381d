// softmax(scale q k^T + mask) v with scores in registers alone (Dao, "FlashAttention-2", 2023).
//
// A workgroup takes TILE_ROWS rows of q and walks over the keys that they see, TILE_KEYS at a time. LANES invocations
// share a row. Each computes scores of THREAD_ROWS rows by fours of keys, then of as many rows of the output by fours
// of columns: the statistics of a row, and its output, stay in registers of its lanes.
//
// wg_fours holds tiles of q and k, some dimensions at a time; then, in the same place, the weights and tiles of v. Its
// fours are swizzled within a row: lanes that read the same column of several rows find them in different banks.
//
// SUBGROUPS: the lanes of a row are of one subgroup. CAREFUL: exponentials may drop NaN.
#import attention/attention_seen
#import attention/attention_mask
#import attention/attention_output
#import attention/q_f32 as queries
#import attention/kv_f32 as kv
#import element/is_nan

const TILE_ROWS: u32 = 64u;
// A multiple of 4 LANES.
const TILE_KEYS: u32 = 32u;
// A power of two.
const LANES: u32 = 8u;
// A part of TILE_ROWS, which over it is a power of two.
const THREAD_ROWS: u32 = 4u;
// Dimensions of q and k that are staged at once: 4 times a power of two.
const TILE_DIMS: u32 = 32u;
// Keys whose weights are staged at once: a power of two, a multiple of 4 LANES, a part of TILE_KEYS.
const TILE_WEIGHTS: u32 = 32u;
// Keys whose values are staged at once: a multiple of 4, a part of TILE_WEIGHTS.
const TILE_VALUES: u32 = 8u;
// Whether the next loads are on their way, to registers, while what was loaded before is used.
const AHEAD: bool = false;

// Rows of invocations.
const GROUPS: u32 = TILE_ROWS / THREAD_ROWS;
const WORKGROUP_SIZE: u32 = GROUPS * LANES;
// Fours of keys, and of columns of the output, of an invocation.
const KEY_BLOCKS: u32 = TILE_KEYS / (4u * LANES);
const WEIGHT_BLOCKS: u32 = TILE_WEIGHTS / (4u * LANES);
const COLUMN_BLOCKS: u32 = (FOURS + LANES - 1u) / LANES;
// Fours of a row of q and k that are staged at once, and of a row of weights.
const CHUNK: u32 = TILE_DIMS / 4u;
const WEIGHT_FOURS: u32 = TILE_WEIGHTS / 4u;
// How many fours of each are staged together, and where k and v begin.
const COUNT_Q: u32 = TILE_ROWS * CHUNK;
const COUNT_K: u32 = TILE_KEYS * CHUNK;
const COUNT_V: u32 = TILE_VALUES * FOURS;
const FIRST_K: u32 = COUNT_Q;
const FIRST_V: u32 = TILE_ROWS * WEIGHT_FOURS;
// Registers hold whole loads of every invocation.
const WHOLE_SCORES: bool = COUNT_Q % WORKGROUP_SIZE == 0u && COUNT_K % WORKGROUP_SIZE == 0u;
const LOADS_AHEAD: bool = AHEAD && WHOLE_SCORES && COUNT_V % WORKGROUP_SIZE == 0u;

// The column of a four is combined with (row >> SHIFT) & MASK. Eight fours are as wide as the banks. The rows of an
// invocation lie a multiple of GROUPS apart, its fours of keys a multiple of LANES: all have the same swizzle.
const SHIFT_Q: u32 = firstLeadingBit(max(min(GROUPS, 8u) / CHUNK, 1u));
const MASK_Q: u32 = min(CHUNK, min(GROUPS, 8u)) - 1u;
// By fours of keys.
const SHIFT_K: u32 = firstLeadingBit(max(min(LANES, 8u) / CHUNK, 1u));
const MASK_K: u32 = min(CHUNK, min(LANES, 8u)) - 1u;
// Of weights.
const SHIFT_P: u32 = firstLeadingBit(max(min(GROUPS, 8u) / WEIGHT_FOURS, 1u));
const MASK_P: u32 = min(WEIGHT_FOURS, min(GROUPS, 8u)) - 1u;

#if SUBGROUPS
enable subgroups;
#else
var<workgroup> wg_rows: array<f32, WORKGROUP_SIZE * THREAD_ROWS>;
#endif
var<workgroup> wg_fours: array<vec4<f32>, max(COUNT_Q + COUNT_K, FIRST_V + COUNT_V)>;

// `x`, number i of the fours of q: from the four `begin` of a row on.
#block load_Q(key, begin)
            let at = head * params.queries + min(first_query + i / CHUNK, last_query);
            var x = vec4<f32>();
#if FOURS % CHUNK == 0
            x = query_four(at, {begin} + i % CHUNK);
#else
            if {begin} + i % CHUNK < FOURS {
                x = query_four(at, {begin} + i % CHUNK);
            }
#endif
#end

// `x`, number i of the fours of k: from `key` on, and from the four `begin` of a row on.
#block load_K(key, begin)
            let at = row_of(pair, min({key} + i / CHUNK, end_key - 1u));
            var x = vec4<f32>();
#if PAGED
            if at != NO_ROW {
#endif
#if FOURS % CHUNK == 0
            x = key_four(at, {begin} + i % CHUNK);
#else
            if {begin} + i % CHUNK < FOURS {
                x = key_four(at, {begin} + i % CHUNK);
            }
#endif
#if PAGED
            }
#endif
#end

// `x`, number i of the fours of v: from `key` on, whole rows. HIDES_ENDS: all rows see the same keys, and tiles may
// hold others behind them. Values of those are 0 here, since one that is infinite or NaN, times their weight of 0,
// would be NaN. Where rows see different keys, the vote below looks at values.
#block load_V(key, begin)
            let at = row_of(pair, min({key} + i / FOURS, end_key - 1u));
            var x = vec4<f32>();
#if PAGED
            if at != NO_ROW {
#endif
#if HIDES_ENDS
            if {key} + i / FOURS < end_key {
                x = value_four(at, i % FOURS);
            }
#else
            x = value_four(at, i % FOURS);
#endif
#if PAGED
            }
#endif
#end

// To its place in wg_fours.
#block store_Q()
            wg_fours[i / CHUNK * CHUNK + ((i % CHUNK) ^ (((i / CHUNK) >> SHIFT_Q) & MASK_Q))] = x;
#end
#block store_K()
            wg_fours[FIRST_K + i / CHUNK * CHUNK + ((i % CHUNK) ^ ((((i / CHUNK) >> 2u) >> SHIFT_K) & MASK_K))] = x;
#end
#block store_V()
            wg_fours[FIRST_V + i] = x;
#end

// Loads fours of Q, K or V ahead, to registers.
#block ahead(of, key, begin)
#for n in COUNT_{of} / WORKGROUP_SIZE
        {
            let i = local + {n}u * WORKGROUP_SIZE;
#put load_{of}({key}, {begin})
            ahead_{of}_{n} = x;
        }
#end
#end

// Loads what follows the first `done` keys of a tile whose scores are known: their values, then the next tile.
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

// Fills wg_fours with fours of Q, K or V: those in registers, or loaded now. Where every invocation has as many, loads
// are written out: all are on their way together.
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

// Joins `name` over the lanes of each row: the largest, or the sum. Lanes meet those that are LANES / 2, LANES / 4, ...
// 1 apart, from at most 1024 LANES on.
#block across(name, is_largest)
#if SUBGROUPS
#for step in 1..11
#if LANES >> step > 0
#for r in THREAD_ROWS
#if is_largest
        {name}_{r} = max({name}_{r}, subgroupShuffleXor({name}_{r}, LANES >> {step}u));
#else
        {name}_{r} = {name}_{r} + subgroupShuffleXor({name}_{r}, LANES >> {step}u);
#endif
#end
#endif
#end
#else
        workgroupBarrier();
#for r in THREAD_ROWS
        wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + lane] = {name}_{r};
#end
        workgroupBarrier();
#for r in THREAD_ROWS
        {name}_{r} = wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES];
#for l in 1..LANES
#if is_largest
        {name}_{r} = max({name}_{r}, wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + {l}u]);
#else
        {name}_{r} = {name}_{r} + wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + {l}u];
#endif
#end
#end
#endif
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
    let nothing = bitcast<f32>(infinity_bits);
#for r in THREAD_ROWS
    let query_{r} = min(first_query + group_row + {r}u * GROUPS, last_query);
#if CAUSAL || WINDOWED
    let seen_{r} = seen_by(query_{r}, len);
#endif
#if MASKED
    let mask_{r} = mask_row(pair, head % params.heads, query_{r});
#endif
    var most_{r} = nothing;
    var sum_{r} = 0.0;
#for c in COLUMN_BLOCKS
    var o_{r}_{c} = vec4<f32>();
#end
#end
    // Exponentials are of base 2.
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
    if seen_by_first.x < end_key {
#put ahead(Q, seen_by_first.x, 0u)
#put ahead(K, seen_by_first.x, 0u)
    }
#endif
    for (var key = seen_by_first.x; key < end_key; key += TILE_KEYS) {
#if CAUSAL || WINDOWED
        // Only tiles at an end of what some row sees hide anything from one.
        let edge = key + TILE_KEYS > seen_by_first.y || key < seen_by_last.x;
#endif

        // Scores: q k^T.
#for r in THREAD_ROWS
#for b in KEY_BLOCKS
        var s_{r}_{b} = vec4<f32>();
#end
#end
        for (var begin = 0u; begin < FOURS; begin += CHUNK) {
            // All are done with what the tile before left there.
            workgroupBarrier();
#put stage(Q, key, begin)
#put stage(K, key, begin)
            workgroupBarrier();
#if LOADS_AHEAD && FOURS > CHUNK
            if begin + CHUNK < FOURS {
#put ahead(Q, key, begin + CHUNK)
#put ahead(K, key, begin + CHUNK)
            }
#endif
            for (var four = 0u; four < CHUNK; four++) {
                let q_at = group_row * CHUNK + (four ^ swizzle_q);
                let k_at = FIRST_K + lane * (4u * CHUNK) + (four ^ swizzle_k);
#for r in THREAD_ROWS
                let q_{r} = wg_fours[q_at + {r}u * GROUPS * CHUNK];
#end
#for b in KEY_BLOCKS
#for n in 4
                let k_{b}_{n} = wg_fours[k_at + ({b}u * LANES * 4u + {n}u) * CHUNK];
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

        // From scores to weights: hidden keys, the largest score of each row, exponentials.
#for r in THREAD_ROWS
#for b in KEY_BLOCKS
        s_{r}_{b} *= factor;
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
        if key + TILE_KEYS > seen_by_first.y || key < seen_by_last.x {
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
            s_{r}_{b} = select(s_{r}_{b}, vec4(nothing), (at_{b} >= vec4(end_key))
#if PAGED
                | missing_{b}
#endif
#if CAUSAL || WINDOWED
                | (at_{b} >= vec4(seen_{r}.y))
#endif
#if WINDOWED
                | (at_{b} < vec4(seen_{r}.x))
#endif
            );
#end
#end
        }
#for r in THREAD_ROWS
        let four_{r}_0 = s_{r}_0;
#for b in 1..KEY_BLOCKS
        let four_{r}_{b} = max(four_{r}_{b - 1}, s_{r}_{b});
#end
        let four_{r} = four_{r}_{KEY_BLOCKS - 1};
        var top_{r} = max(max(four_{r}.x, four_{r}.y), max(four_{r}.z, four_{r}.w));
#end
#put across(top, true)
#for r in THREAD_ROWS
        let now_{r} = max(most_{r}, top_{r});
        // A row that has seen nothing yet has no largest: any number will do.
        let center_{r} = select(now_{r}, 0.0, now_{r} == nothing);
        let fade_{r} = exp2(most_{r} - center_{r});
        most_{r} = now_{r};
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
        // Whether the tile is spoiled: it hides keys from some rows, and holds a value that is infinite or NaN, whose
        // product with a weight of 0 is NaN. Only tiles at an edge look at their values.
        var spoiled = false;
        if edge {
            // Bits without their signs.
            var largest = vec4<u32>();
            for (var i = local; i < TILE_KEYS * FOURS; i += WORKGROUP_SIZE) {
                let at = row_of(pair, min(key + i / FOURS, end_key - 1u));
#if PAGED
                if at != NO_ROW {
#endif
                largest = max(largest, bitcast<vec4<u32>>(value_four(at, i % FOURS)) & vec4(0x7fffffffu));
#if PAGED
                }
#endif
            }
            // All are done with what is there.
            workgroupBarrier();
            wg_fours[local] = vec4(select(0.0, 1.0, any(largest >= vec4(0x7f800000u))));
            for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
                workgroupBarrier();
                if local < stride {
                    wg_fours[local] += wg_fours[local + stride];
                }
            }
            spoiled = workgroupUniformLoad(&wg_fours[0]).x > 0.0;
        }
#endif

        // The output: weights times values.
#for part in TILE_KEYS / TILE_WEIGHTS
        // All are done with what is there.
        workgroupBarrier();
#for b in WEIGHT_BLOCKS
#for r in THREAD_ROWS
        wg_fours[(group_row + {r}u * GROUPS) * WEIGHT_FOURS + ((lane + {b}u * LANES) ^ swizzle_p)] =
            s_{r}_{part * WEIGHT_BLOCKS + b};
#end
#end
#if CAUSAL || WINDOWED
        if spoiled {
            // One key after another: a row adds what it sees.
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
#if (c + 1) * LANES > FOURS
                    let v_{c} = value_four(at, min(lane + {c}u * LANES, FOURS - 1u));
#else
                    let v_{c} = value_four(at, lane + {c}u * LANES);
#endif
#end
#for r in THREAD_ROWS
                    if at_key >= seen_{r}.x && at_key < seen_{r}.y {
                        let four = wg_fours[(group_row + {r}u * GROUPS) * WEIGHT_FOURS + ((j / 4u) ^ swizzle_p)];
                        let low = select(four.x, four.y, j % 4u == 1u);
                        let high = select(four.z, four.w, j % 4u == 3u);
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
#for step in TILE_WEIGHTS / TILE_VALUES
#if step > 0
        workgroupBarrier();
#endif
#put stage(V, key + {part * TILE_WEIGHTS + step * TILE_VALUES}u, 0u)
        workgroupBarrier();
#put ahead_after({part * TILE_WEIGHTS + (step + 1) * TILE_VALUES})
        for (var j = 0u; j < TILE_VALUES / 4u; j++) {
            let p_at = group_row * WEIGHT_FOURS + (({step * TILE_VALUES / 4}u + j) ^ swizzle_p);
            let v_at = FIRST_V + j * (4u * FOURS);
#for r in THREAD_ROWS
            let p_{r} = wg_fours[p_at + {r}u * GROUPS * WEIGHT_FOURS];
#end
#for n in 4
#for c in COLUMN_BLOCKS
#if (c + 1) * LANES > FOURS
            // A four of columns that does not exist reads the last.
            let v_{c}_{n} = wg_fours[v_at + {n}u * FOURS + min(lane + {c}u * LANES, FOURS - 1u)];
#else
            let v_{c}_{n} = wg_fours[v_at + {n}u * FOURS + lane + {c}u * LANES];
#endif
#for r in THREAD_ROWS
            o_{r}_{c} += p_{r}[{n}] * v_{c}_{n};
#end
#end
#end
        }
#end
#if CAUSAL || WINDOWED
        }
#endif
#end
    }

    // Joins the sums of lanes, divides, stores.
#put across(sum, false)
#for r in THREAD_ROWS
    if first_query + group_row + {r}u * GROUPS <= last_query {
        let by = select(1.0 / sum_{r}, 0.0, sum_{r} == 0.0);
#for c in COLUMN_BLOCKS
#if (c + 1) * LANES > FOURS
        if lane + {c}u * LANES < FOURS {
            store_four(head * params.queries + query_{r}, lane + {c}u * LANES, o_{r}_{c} * by);
        }
#else
        store_four(head * params.queries + query_{r}, lane + {c}u * LANES, o_{r}_{c} * by);
#endif
#end
    }
#end
}
