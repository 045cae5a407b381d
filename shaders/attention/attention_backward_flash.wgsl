// Computes the gradients of attention tile by tile, with scores in registers (Dao, "FlashAttention-2", 2023).
//
// A workgroup owns OWN rows and walks over those that they see or are seen by, WALK at a time. LANES threads share an
// own row; a thread has THREAD_ROWS of them. It computes vec4s of scores and of products of dy and v, turns them into
// weights and slopes, and adds to vec4s of two results.
//
// STATISTICS: those of queries follow from an online softmax; with weights w, dq is the difference of sums of w (dy
// v^T) k and of delta w k. wg_vec4s holds two tiles, TILE_DIMS dimensions at a time; then, in the same place, weights
// and TILE_VALUES walked rows. Rows are padded by a vec4, so that lanes hit different banks.
//
// SUBGROUPS: the lanes of a row lie in one subgroup. CAREFUL: exp2 and log2 may drop NaN.
#import attention/attention_backward_params
#import element/exp4
#import attention/across_lanes

const OWN: u32 = 32u;
// A multiple of 4 * LANES.
const WALK: u32 = 32u;
// A power of two.
const LANES: u32 = 8u;
// OWN / THREAD_ROWS is a power of two.
const THREAD_ROWS: u32 = 4u;
// Dimensions staged at once: a multiple of 4.
const TILE_DIMS: u32 = 32u;
// Walked rows staged at once: 4 times a divisor of LANES.
const TILE_VALUES: u32 = 32u;

const VEC4S: u32 = HEAD / 4u;
// Threads in a column of the tile.
const GROUPS: u32 = OWN / THREAD_ROWS;
const WORKGROUP_SIZE: u32 = GROUPS * LANES;
// Vec4s of walked rows, and of columns of a result, of a thread.
const BLOCKS: u32 = WALK / (4u * LANES);
const COLUMNS: u32 = (VEC4S + LANES - 1u) / LANES;
const CHUNK: u32 = TILE_DIMS / 4u;
const PITCH: u32 = CHUNK + 1u;
const WEIGHTS_PITCH: u32 = WALK / 4u + 1u;
const FIRST_WALKED: u32 = OWN * PITCH;
const FIRST_VALUE: u32 = OWN * WEIGHTS_PITCH;
// Lanes whose walked rows are staged at once.
const SHARE: u32 = TILE_VALUES / 4u;

const LOG2_E: f32 = 1.4426950408889634;

#if SUBGROUPS
enable subgroups;
#else
var<workgroup> wg_rows: array<f32, WORKGROUP_SIZE * THREAD_ROWS>;
#endif
var<workgroup> wg_vec4s: array<vec4<f32>, max((OWN + WALK) * PITCH, FIRST_VALUE + TILE_VALUES * VEC4S)>;

#if HALVES
alias Words = vec2<u32>;
fn widened(words: Words) -> vec4<f32> { return vec4(unpack2x16float(words.x), unpack2x16float(words.y)); }
fn narrowed(x: vec4<f32>) -> Words { return vec2(encode(x.x, x.y), encode(x.z, x.w)); }
#else
alias Words = vec4<u32>;
fn widened(words: Words) -> vec4<f32> { return bitcast<vec4<f32>>(words); }
fn narrowed(x: vec4<f32>) -> Words { return bitcast<vec4<u32>>(x); }
#endif

#for name in q, dy
fn load_{name}(row: u32, column: u32) -> vec4<f32> {
    return widened({name}[row * VEC4S + column + params.base_q / 4u]);
}
#end
#for name in k, v
fn load_{name}(row: u32, column: u32) -> vec4<f32> {
    return widened({name}[row * VEC4S + column + params.base_k / 4u]);
}
#end

fn power(x: vec4<f32>) -> vec4<f32> {
#if CAREFUL
    return select(exp2(x), x, is_nan4(x));
#else
    return exp2(x);
#endif
}

fn logarithm(x: f32) -> f32 {
#if CAREFUL
    return select(log2(x), x, is_nan4(vec4(x)).x);
#else
    return log2(x);
#endif
}

// Threads copy `count` vec4s: `put` loads vec4 i and stores it. The loop is unrolled, so that all loads are in flight
// together.
#block copies(put, count, list, at, last)
#for n in ({count} + WORKGROUP_SIZE - 1) / WORKGROUP_SIZE
        {
            let i = local + {n}u * WORKGROUP_SIZE;
#if {count} % WORKGROUP_SIZE != 0
            if i < {count} {
#endif
#put {put}({list}, {at}, {last})
#if {count} % WORKGROUP_SIZE != 0
            }
#endif
        }
#end
#end

// Puts a vec4 of a chunk of rows, from row `at` on, into wg_vec4s; rows after `last` repeat it.
#block put_chunk(list, at, last)
            var x = vec4<f32>();
#if VEC4S % CHUNK != 0
            if column + i % CHUNK < VEC4S {
#endif
            x = load_{list}(min({at} + i / CHUNK, {last}), column + i % CHUNK);
#if VEC4S % CHUNK != 0
            }
#endif
            wg_vec4s[base + i / CHUNK * PITCH + i % CHUNK] = x;
#end

// The same for a vec4 of the rows of SHARE lanes.
#block put_values(list, at, last)
            let row = {at} + i / VEC4S % 4u * LANES + i / (4u * VEC4S);
            wg_vec4s[FIRST_VALUE + i] = load_{list}(min(row, {last}), i % VEC4S);
#end

// Computes the products of own and walked rows: `to`_r_b, four walked rows LANES apart.
#block products(to, own, walked)
#for r in THREAD_ROWS
#for b in BLOCKS
        var {to}_{r}_{b} = vec4<f32>();
#end
#end
        for (var column = 0u; column < VEC4S; column += CHUNK) {
            // All threads have read the previous contents.
            workgroupBarrier();
            {
                let base = 0u;
#put copies(put_chunk, OWN * CHUNK, {own}, first_own, last_own)
            }
            {
                let base = FIRST_WALKED;
#put copies(put_chunk, WALK * CHUNK, {walked}, first_walked + walk, last_walked)
            }
            workgroupBarrier();
            for (var c = 0u; c < CHUNK; c++) {
#for r in THREAD_ROWS
                let x_{r} = wg_vec4s[(group_row + {r}u * GROUPS) * PITCH + c];
#end
#for b in BLOCKS
#for n in 4
                let y_{b}_{n} = wg_vec4s[FIRST_WALKED + (lane + {4 * b + n}u * LANES) * PITCH + c];
#end
#for x in x, y, z, w
                let y_{b}{x} = vec4(y_{b}_0.{x}, y_{b}_1.{x}, y_{b}_2.{x}, y_{b}_3.{x});
#for r in THREAD_ROWS
                {to}_{r}_{b} += x_{r}.{x} * y_{b}{x};
#end
#end
#end
            }
        }
#end

// Adds the walked rows of `list`, each times its weight `by`_r_b, to the result `to`_r_c.
#block add(to, by, list)
        // All threads have read the previous contents.
        workgroupBarrier();
#for r in THREAD_ROWS
#for b in BLOCKS
        wg_vec4s[(group_row + {r}u * GROUPS) * WEIGHTS_PITCH + {b}u * LANES + lane] = {by}_{r}_{b};
#end
#end
#for b in BLOCKS
#for part in LANES / SHARE
#if b + part > 0
        workgroupBarrier();
#endif
#put copies(put_values, TILE_VALUES * VEC4S, {list}, first_walked + walk + {b}u * 4u * LANES + {part}u * SHARE, last_walked)
        workgroupBarrier();
        for (var j = 0u; j < SHARE; j++) {
#for r in THREAD_ROWS
            let w_{r} = wg_vec4s[(group_row + {r}u * GROUPS) * WEIGHTS_PITCH + {b}u * LANES + {part}u * SHARE + j];
#end
#for n in 4
#for c in COLUMNS
#if (c + 1) * LANES > VEC4S
            // Columns past the end read the last vec4.
            let y_{c}_{n} = wg_vec4s[FIRST_VALUE + (4u * j + {n}u) * VEC4S + min(lane + {c}u * LANES, VEC4S - 1u)];
#else
            let y_{c}_{n} = wg_vec4s[FIRST_VALUE + (4u * j + {n}u) * VEC4S + lane + {c}u * LANES];
#endif
#for r in THREAD_ROWS
            {to}_{r}_{c} += w_{r}[{n}] * y_{c}_{n};
#end
#end
#end
        }
#end
#end
#end

// Stores a result, row by row, with the `value` of vec4 c of own row r.
#block store(list, base, value)
#for r in THREAD_ROWS
    if group_row + {r}u * GROUPS <= last_own - first_own {
#for c in COLUMNS
#if (c + 1) * LANES > VEC4S
        if lane + {c}u * LANES < VEC4S {
#endif
        {list}[(first_own + group_row + {r}u * GROUPS) * VEC4S + lane + {c}u * LANES + {base} / 4u] =
            narrowed({value}_{r}_{c});
#if (c + 1) * LANES > VEC4S
        }
#endif
#end
    }
#end
#end

@compute @workgroup_size(WORKGROUP_SIZE)
#if QUERIES
fn attention_backward_flash_queries(
#else
fn attention_backward_flash_keys(
#endif
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(id);
    if index >= params.workgroups {
        return;
    }
#put own_tile()
    let lane = local % LANES;
    let group_row = local / LANES;
    let factor = params.scale * LOG2_E;
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);
#for r in THREAD_ROWS
    let visible_{r} = visible_to(min(first + group_row + {r}u * GROUPS, last));
#for c in COLUMNS
    var slopes_{r}_{c} = vec4<f32>();
#if !QUERIES || STATISTICS
    var values_{r}_{c} = vec4<f32>();
#endif
#end
#if QUERIES && !STATISTICS
    let of_row_{r} = statistics[min(first_own + group_row + {r}u * GROUPS, last_own)];
#endif
#if STATISTICS
    var largest_{r} = minus_infinity;
    var sum_{r} = 0.0;
    var weighted_{r} = 0.0;
#endif
#end
#if QUERIES
    let first_walked = own_head / params.group * params.keys;
    {
#else
    for (var head = own_head * params.group; head < (own_head + 1u) * params.group; head++) {
    let first_walked = head * params.queries;
#endif
    let last_walked = first_walked + max(visible_to_last.y, 1u) - 1u;
    for (var walk = visible_to_first.x; walk < visible_to_last.y; walk += WALK) {
#if QUERIES
#put products(s, q, k)
#put products(d, dy, v)
#else
#put products(s, k, q)
#put products(d, v, dy)
#endif
        // Only tiles at an edge hide rows.
        let edge = walk + WALK > visible_to_first.y || walk < visible_to_last.x;
#for b in BLOCKS
        let at_{b} = vec4(walk + lane + {b}u * 4u * LANES) + vec4(0u, 1u, 2u, 3u) * LANES;
#for r in THREAD_ROWS
        s_{r}_{b} *= factor;
        if edge {
            let hidden = (at_{b} < vec4(visible_{r}.x)) | (at_{b} >= vec4(visible_{r}.y));
            s_{r}_{b} = select(s_{r}_{b}, vec4(minus_infinity), hidden);
        }
#end
#end
#if STATISTICS
#for r in THREAD_ROWS
        let tops_{r}_0 = s_{r}_0;
#for b in 1..BLOCKS
        let tops_{r}_{b} = max(tops_{r}_{b - 1}, s_{r}_{b});
#end
        let tops_{r} = tops_{r}_{BLOCKS - 1};
        var top_{r} = max(max(tops_{r}.x, tops_{r}.y), max(tops_{r}.z, tops_{r}.w));
#end
#put across(top, true)
#for r in THREAD_ROWS
        let now_{r} = max(largest_{r}, top_{r});
        // While a row has seen no key, any finite center will do.
        let center_{r} = select(now_{r}, 0.0, now_{r} == minus_infinity);
        let fade_{r} = power(vec4(largest_{r} - center_{r})).x;
        largest_{r} = now_{r};
        sum_{r} *= fade_{r};
        weighted_{r} *= fade_{r};
#for c in COLUMNS
        slopes_{r}_{c} *= fade_{r};
        values_{r}_{c} *= fade_{r};
#end
#for b in BLOCKS
        s_{r}_{b} = power(s_{r}_{b} - center_{r});
        d_{r}_{b} *= s_{r}_{b};
        sum_{r} += s_{r}_{b}.x + s_{r}_{b}.y + s_{r}_{b}.z + s_{r}_{b}.w;
        weighted_{r} += d_{r}_{b}.x + d_{r}_{b}.y + d_{r}_{b}.z + d_{r}_{b}.w;
#end
#end
#put add(slopes, d, k)
#put add(values, s, k)
#else
#if QUERIES
#for r in THREAD_ROWS
#for b in BLOCKS
        s_{r}_{b} = power(s_{r}_{b} - of_row_{r}.x);
        d_{r}_{b} = s_{r}_{b} * (d_{r}_{b} - of_row_{r}.y);
#end
#end
#put add(slopes, d, k)
#else
#for b in BLOCKS
#for n in 4
        let query_{b}_{n} = statistics[min(first_walked + at_{b}[{n}], last_walked)];
#end
        let sums_{b} = vec4(query_{b}_0.x, query_{b}_1.x, query_{b}_2.x, query_{b}_3.x);
        let deltas_{b} = vec4(query_{b}_0.y, query_{b}_1.y, query_{b}_2.y, query_{b}_3.y);
#for r in THREAD_ROWS
        s_{r}_{b} = power(s_{r}_{b} - sums_{b});
        d_{r}_{b} = s_{r}_{b} * (d_{r}_{b} - deltas_{b});
#end
#end
#put add(slopes, d, q)
#put add(values, s, dy)
#endif
#endif
    }
    }

#if STATISTICS
    // Adds the sums of the lanes. A query that sees nothing has an infinite logarithm, so that later weights are 0.
#put across(sum, false)
#put across(weighted, false)
#for r in THREAD_ROWS
    let is_empty_{r} = sum_{r} == 0.0;
    let by_{r} = select(1.0 / sum_{r}, 0.0, is_empty_{r});
    let delta_{r} = weighted_{r} * by_{r};
    if lane == 0u && group_row + {r}u * GROUPS <= last_own - first_own {
        let sum = select(largest_{r} + logarithm(sum_{r}), -minus_infinity, is_empty_{r});
        statistics[first_own + group_row + {r}u * GROUPS] = vec2(sum, delta_{r});
    }
#for c in COLUMNS
    slopes_{r}_{c} = (slopes_{r}_{c} - delta_{r} * values_{r}_{c}) * (by_{r} * params.scale);
#end
#end
#else
#for r in THREAD_ROWS
#for c in COLUMNS
    slopes_{r}_{c} *= params.scale;
#end
#end
#endif
#if QUERIES
#put store(dq, params.base_q, slopes)
#else
#put store(dk, params.base_k, slopes)
#put store(dv, params.base_k, values)
#endif
}
