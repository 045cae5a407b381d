// Computes the gradients of attention on cooperative matrices of f16 with f32 sums (Dao, "FlashAttention-2", 2023).
//
// A workgroup owns OWN rows and walks over those that they see or are seen by, WALK at a time. A pair of subgroups owns
// PAIR_ROWS rows: one side multiplies q and k for scores, the other dy and v. No thread can reach an element of a
// matrix, so both products go through workgroup memory, and come back as slopes and weights of f16. Then one side adds
// to dk and the other to dv; for dq each adds to half of the rows, or with SPLIT_DIMS to half of the elements. STORED:
// slopes also go to memory, for attention_backward_slopes.
#import attention/attention_backward_params
enable f16;
enable wgpu_cooperative_matrix;

const PAIRS: u32 = 2u;
const PAIR_ROWS: u32 = 32u; // a multiple of 16, of queries of 32
const WALK: u32 = 16u; // 16 or 32; 16 if STORED
// Tiles of walked rows in workgroup memory: of 2, one is filled while the other is multiplied.
const BUFFERS: u32 = 2u;

alias Words = vec4<f16>;

const LANES: u32 = 32u; // threads in a subgroup
const THREADS: u32 = 2u * PAIRS * LANES;
const OWN: u32 = PAIRS * PAIR_ROWS;
const COLUMNS: u32 = WALK / 4u; // vec4s in a row of scores
const ITEMS: u32 = PAIR_ROWS * COLUMNS / (2u * LANES); // vec4s of scores of a thread

// Rows and columns of a matrix.
const SIDE: u32 = 16u;
const ROW_BLOCKS: u32 = PAIR_ROWS / SIDE;
const WALK_BLOCKS: u32 = WALK / SIDE;
const DIM_BLOCKS: u32 = HEAD / SIDE;
const VEC4S: u32 = HEAD / 4u;
// Blocks of rows and of elements for which a side adds up results.
#if QUERIES && !SPLIT_DIMS
const SUM_BLOCKS: u32 = ROW_BLOCKS / 2u;
#else
const SUM_BLOCKS: u32 = ROW_BLOCKS;
#endif
#if SPLIT_DIMS
const SUM_DIMS: u32 = DIM_BLOCKS / 2u;
#else
const SUM_DIMS: u32 = DIM_BLOCKS;
#endif

// Vec4s that a thread loads for a tile of walked rows; the last may lie beyond the tile.
const LOADS: u32 = (WALK * VEC4S + THREADS - 1u) / THREADS;

// Row pitch in workgroup memory, in elements: padded, to spread rows over the banks.
const G_PITCH: u32 = WALK + 8u;
const X_PITCH: u32 = HEAD + 8u;
const S_PITCH: u32 = WALK + 8u;
// Vec4s of a side.
const G_SIZE: u32 = OWN * G_PITCH / 4u;
const X_SIZE: u32 = WALK * X_PITCH / 4u;
const S_SIZE: u32 = OWN * S_PITCH / 4u;

// Strips of own rows and of results, and vec4s in a row of each; the last may be narrower.
const STRIPS: u32 = (DIM_BLOCKS + WALK_BLOCKS - 1u) / WALK_BLOCKS;
#for strip in STRIPS
const WIDTH_{strip}: u32 = min(COLUMNS, VEC4S - {strip}u * COLUMNS);
#end

const LOG2_E: f32 = 1.4426950408889634;

// First strips of own rows of both sides, then slopes and weights.
var<workgroup> wg_g: array<vec4<f16>, 2u * G_SIZE>;
// Tiles of walked rows of both sides: k and v, or q and dy.
var<workgroup> wg_x: array<vec4<f16>, 2u * BUFFERS * X_SIZE>;
// Scores, and products of dy and v; or a strip of results.
var<workgroup> wg_s: array<vec4<f32>, 2u * S_SIZE>;
#if !QUERIES
// The statistics of walked queries: logarithms, and means.
var<workgroup> wg_logarithms: array<vec4<f32>, BUFFERS * WALK / 4u>;
var<workgroup> wg_means: array<vec4<f32>, BUFFERS * WALK / 4u>;
#endif

// Loads own rows of two lists to matrices own_r_d, strip by strip.
#block own(x, y, base)
#for strip in STRIPS
    for (var i = local; i < OWN * width_{strip}; i += THREADS) {
        let to = i / width_{strip} * (G_PITCH / 4u) + i % width_{strip};
        let source = min(first_own + i / width_{strip}, last_own) * VEC4S + {strip}u * COLUMNS + i % width_{strip};
        wg_g[to] = {x}[source + {base} / 4u];
        wg_g[G_SIZE + to] = {y}[source + {base} / 4u];
    }
    workgroupBarrier();
#for r in ROW_BLOCKS
#for d in strip * WALK_BLOCKS..min((strip + 1) * WALK_BLOCKS, DIM_BLOCKS)
    let own_{r}_{d} = coopLoadT<coop_mat16x16<f16, A>>(
        &wg_g[side * G_SIZE + ((first_row + {SIDE * r}u) * G_PITCH + {SIDE * (d % WALK_BLOCKS)}u) / 4u], G_PITCH / 4u);
#end
#end
    workgroupBarrier();
#end
#end

// Loads walked rows from `at` on to registers. Past the end the last row repeats.
#block load(x, y, base, at)
#for j in LOADS
    x_next_{j} = {x}[min({at} + line_{j}, last_walked) * VEC4S + column_{j} + {base} / 4u];
    y_next_{j} = {y}[min({at} + line_{j}, last_walked) * VEC4S + column_{j} + {base} / 4u];
#end
#if !QUERIES
    if local < WALK {
        statistics_next = statistics[min({at} + local, last_walked)];
    }
#endif
#end

// Moves them to tile `tile` of workgroup memory.
#block stage(tile)
#for j in LOADS
#if (j + 1) * THREADS > WALK * VEC4S
    if local + {j * THREADS}u < WALK * VEC4S {
#else
    {
#endif
        let to = {tile} * (2u * X_SIZE) + line_{j} * (X_PITCH / 4u) + column_{j};
        wg_x[to] = x_next_{j};
        wg_x[X_SIZE + to] = y_next_{j};
    }
#end
#if !QUERIES
    if local < WALK {
        wg_logarithms[{tile} * COLUMNS + local / 4u][local % 4u] = statistics_next.x;
        wg_means[{tile} * COLUMNS + local / 4u][local % 4u] = statistics_next.y;
    }
#endif
#end

// Stores a strip of the results of a side, times `factor`, as rows of `list` from vec4 `column` on.
#block results(list, base, strip, first_value, factor, column)
    for (var i = local; i < OWN * width_{strip}; i += THREADS) {
        let line = i / width_{strip};
        let at = i % width_{strip};
        if first_own + line <= last_own {
            {list}[(first_own + line) * VEC4S + {strip}u * COLUMNS + {column} + at + {base} / 4u] =
                vec4<f16>(wg_s[{first_value} + line * (S_PITCH / 4u) + at] * {factor});
        }
    }
#end

@compute @workgroup_size(THREADS)
#if STATISTICS_ALONE
fn attention_backward_coop_statistics(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
#else
#if QUERIES
fn attention_backward_coop_queries(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
#else
fn attention_backward_coop_keys(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
#endif
#endif
    // workgroup_index, inlined: naga treats the result of a function as non-uniform, and would reject matrix operations
    // after the return below.
    let index = id.x + FOLD * (id.y + FOLD * id.z);
    if index >= params.workgroups {
        return;
    }
#put own_tile()
    let first_row = local / (2u * LANES) * PAIR_ROWS;
    let side = local / LANES % 2u;
    let lane = local % LANES;
    // The vec4s of this thread: one column, in half of the rows of the pair. Lanes that access memory together take
    // rows in different banks, as S_PITCH and G_PITCH place them (S_PITCH of WALK + 4: 15 % slower on an H100).
    let column = lane % COLUMNS;
    let row_0 = first_row + side * (PAIR_ROWS / 2u) + lane / COLUMNS % (16u / COLUMNS) * (COLUMNS / 2u) + lane / 16u;
#for j in 1..ITEMS
    let row_{j} = row_0 + {j / (COLUMNS / 4) * 8 + j % (COLUMNS / 4) * 2}u;
#end
#for j in ITEMS
    let visible_{j} = visible_to(min(first + row_{j}, last));
#end
    let factor = params.scale * LOG2_E;
#if STORED
    let padded_keys = (params.keys + KEY_TILE - 1u) / KEY_TILE * KEY_TILE;
#endif
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);

    // The vec4s of a strip; no constants, so that no driver unrolls all rounds.
#for strip in STRIPS
    let width_{strip} = select(WIDTH_{strip}, 0u, params.workgroups == 0u);
#end
#if QUERIES
#put own(q, dy, params.base_q)
#else
#put own(k, v, params.base_k)
#endif
#if STATISTICS_ALONE
#for j in ITEMS
    var largest_{j} = minus_infinity;
    var sum_{j} = 0.0;
    var weighted_{j} = 0.0;
#end
#else
#if QUERIES
#for j in ITEMS
    let of_row_{j} = statistics[min(first_own + row_{j}, last_own)];
#end
#endif
#for r in SUM_BLOCKS
#for d in SUM_DIMS
    var sums_{r}_{d} = coop_mat16x16<f32, C>();
#end
#end
#endif
#for j in LOADS
    let line_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) / VEC4S;
    let column_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) % VEC4S;
    var x_next_{j}: vec4<f16>;
    var y_next_{j}: vec4<f16>;
#end
#if !STATISTICS_ALONE
    // The vec4s at which the factors of this side's results begin.
#if SPLIT_DIMS
    let first_slope = first_row * (G_PITCH / 4u);
    let first_term = side * (VEC4S / 2u);
#else
#if QUERIES
    let first_slope = (first_row + side * (PAIR_ROWS / 2u)) * (G_PITCH / 4u);
    let first_term = 0u;
#else
    let first_slope = side * G_SIZE + first_row * (G_PITCH / 4u);
    let first_term = side * X_SIZE;
#endif
#endif
#endif
#if BUFFERS == 2
    var tile_now = 0u;
#else
    let tile_now = 0u;
#endif
#if QUERIES
    let first_walked = own_head / params.group * params.keys;
    {
#else
    var statistics_next: vec2<f32>;
    for (var head = own_head * params.group; head < (own_head + 1u) * params.group; head++) {
    let first_walked = head * params.queries;
#if STORED
    let first_block = head * ((params.queries + SIDE - 1u) / SIDE);
    let of_slopes = (first_block * padded_keys + first) * (SIDE / 4u) + column;
#endif
#endif
    let last_walked = first_walked + max(visible_to_last.y, 1u) - 1u;
#if STORED
    // Whole blocks of queries.
    let first_walk = visible_to_first.x / SIDE * SIDE;
#else
    let first_walk = visible_to_first.x;
#endif
#if QUERIES
#put load(k, v, params.base_k, first_walked + first_walk)
#else
#put load(q, dy, params.base_q, first_walked + first_walk)
#endif
#put stage(tile_now)
#if QUERIES
#put load(k, v, params.base_k, first_walked + first_walk + WALK)
#else
#put load(q, dy, params.base_q, first_walked + first_walk + WALK)
#endif
    workgroupBarrier();
    for (var walk = first_walk; walk < visible_to_last.y; walk += WALK) {
        // naga requires named arguments of coopStoreT.
        let filled = tile_now * (2u * X_SIZE);
#for c in WALK_BLOCKS
        {
#for r in ROW_BLOCKS
            var s_{r} = coop_mat16x16<f32, C>();
#end
#for d in DIM_BLOCKS
            let x_{d} = coopLoad<coop_mat16x16<f16, B>>(
                &wg_x[filled + side * X_SIZE + ({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
#for r in ROW_BLOCKS
            s_{r} = coopMultiplyAdd(own_{r}_{d}, x_{d}, s_{r});
#end
#end
#for r in ROW_BLOCKS
            {
                let value = s_{r};
                let to = side * S_SIZE + ((first_row + {SIDE * r}u) * S_PITCH + {SIDE * c}u) / 4u;
                let stride = S_PITCH / 4u;
                coopStoreT(value, &wg_s[to], stride);
            }
#end
        }
#end
        workgroupBarrier();

        // Logarithms of weights.
#if !STATISTICS_ALONE && !QUERIES
        let logarithms = wg_logarithms[tile_now * COLUMNS + column];
        let means = wg_means[tile_now * COLUMNS + column];
#endif
#for j in ITEMS
#if STATISTICS_ALONE
        var s_{j} = wg_s[row_{j} * (S_PITCH / 4u) + column] * factor;
#else
#if QUERIES
        var s_{j} = wg_s[row_{j} * (S_PITCH / 4u) + column] * factor - of_row_{j}.x;
#else
        var s_{j} = wg_s[row_{j} * (S_PITCH / 4u) + column] * factor - logarithms;
#endif
#endif
        let d_{j} = wg_s[S_SIZE + row_{j} * (S_PITCH / 4u) + column];
#end
        // Only tiles at an edge hide rows.
        if walk + WALK > visible_to_first.y || walk < visible_to_last.x {
            let at = vec4(walk + 4u * column) + vec4(0u, 1u, 2u, 3u);
#for j in ITEMS
            s_{j} = select(s_{j}, vec4(minus_infinity), (at >= vec4(visible_{j}.y)) | (at < vec4(visible_{j}.x)));
#end
        }
#if STATISTICS_ALONE
#for j in ITEMS
        {
            let top = max(max(s_{j}.x, s_{j}.y), max(s_{j}.z, s_{j}.w));
            if top > largest_{j} {
                let fade = exp2(largest_{j} - top);
                largest_{j} = top;
                sum_{j} *= fade;
                weighted_{j} *= fade;
            }
            // While a row has seen no key, any finite center will do.
            let center = select(largest_{j}, 0.0, largest_{j} == minus_infinity);
            s_{j} = exp2(s_{j} - center);
            sum_{j} += (s_{j}.x + s_{j}.y) + (s_{j}.z + s_{j}.w);
            weighted_{j} += dot(s_{j}, d_{j});
        }
#end
#else
#if QUERIES
#for j in ITEMS
        s_{j} = exp2(s_{j});
        wg_g[row_{j} * (G_PITCH / 4u) + column] = vec4<f16>(s_{j} * (d_{j} - of_row_{j}.y));
#end
#else
#for j in ITEMS
        s_{j} = exp2(s_{j});
        let g_{j} = vec4<f16>(s_{j} * (d_{j} - means));
        wg_g[row_{j} * (G_PITCH / 4u) + column] = g_{j};
        wg_g[G_SIZE + row_{j} * (G_PITCH / 4u) + column] = vec4<f16>(s_{j});
#if STORED
        slopes[of_slopes + (walk / SIDE * padded_keys + row_{j}) * (SIDE / 4u)] = g_{j};
#endif
#end
#endif
#endif
        // The tile after the next waits in registers meanwhile.
#if BUFFERS == 2
        tile_now = 1u - tile_now;
#put stage(tile_now)
#if QUERIES
#put load(k, v, params.base_k, first_walked + walk + 2u * WALK)
#else
#put load(q, dy, params.base_q, first_walked + walk + 2u * WALK)
#endif
#endif
        workgroupBarrier();
#if !STATISTICS_ALONE

        // Adds slopes times k; or slopes times q, and weights times dy.
#for r in SUM_BLOCKS
#for c in WALK_BLOCKS
        let g_{r}_{c} = coopLoadT<coop_mat16x16<f16, A>>(
            &wg_g[first_slope + ({SIDE * r}u * G_PITCH + {SIDE * c}u) / 4u], G_PITCH / 4u);
#end
#end
#for d in SUM_DIMS
#for c in WALK_BLOCKS
        let x_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
            &wg_x[filled + first_term + ({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
#for r in SUM_BLOCKS
        sums_{r}_{d} = coopMultiplyAdd(g_{r}_{c}, x_{d}_{c}, sums_{r}_{d});
#end
#end
#end
#endif
#if BUFFERS == 1
        workgroupBarrier();
#put stage(tile_now)
#if QUERIES
#put load(k, v, params.base_k, first_walked + walk + 2u * WALK)
#else
#put load(q, dy, params.base_q, first_walked + walk + 2u * WALK)
#endif
        workgroupBarrier();
#endif
    }
    }

#if STATISTICS_ALONE
    // Joins what the threads of a row have seen.
#for j in ITEMS
    wg_s[row_{j} * (S_PITCH / 4u) + column] = vec4(largest_{j}, sum_{j}, weighted_{j}, 0.0);
#end
    workgroupBarrier();
    if local < OWN && first_own + local <= last_own {
        let of_row = local * (S_PITCH / 4u);
        var largest = minus_infinity;
        for (var i = 0u; i < COLUMNS; i++) {
            largest = max(largest, wg_s[of_row + i].x);
        }
        var sum = 0.0;
        var weighted = 0.0;
        for (var i = 0u; i < COLUMNS; i++) {
            let part = wg_s[of_row + i];
            let fade = exp2(part.x - select(largest, 0.0, largest == minus_infinity));
            sum += part.y * fade;
            weighted += part.z * fade;
        }
        // A query that sees nothing has an infinite logarithm, so that later weights are 0.
        let is_empty = sum == 0.0;
        let logarithm = select(largest + log2(sum), -minus_infinity, is_empty);
        statistics[first_own + local] = vec2(logarithm, select(weighted / sum, 0.0, is_empty));
    }
#else
#for strip in (SUM_DIMS + WALK_BLOCKS - 1) / WALK_BLOCKS
#for d in strip * WALK_BLOCKS..min((strip + 1) * WALK_BLOCKS, SUM_DIMS)
#for r in SUM_BLOCKS
    {
        let value = sums_{r}_{d};
#if QUERIES && !SPLIT_DIMS
        let to = ((first_row + side * (PAIR_ROWS / 2u) + {SIDE * r}u) * S_PITCH + {SIDE * (d % WALK_BLOCKS)}u) / 4u;
#else
        let to = side * S_SIZE + ((first_row + {SIDE * r}u) * S_PITCH + {SIDE * (d % WALK_BLOCKS)}u) / 4u;
#endif
        let stride = S_PITCH / 4u;
        coopStoreT(value, &wg_s[to], stride);
    }
#end
#end
    workgroupBarrier();
#if QUERIES
#put results(dq, params.base_q, {strip}, 0u, params.scale, 0u)
#if SPLIT_DIMS
#put results(dq, params.base_q, {strip}, S_SIZE, params.scale, VEC4S / 2u)
#endif
#else
#put results(dk, params.base_k, {strip}, 0u, params.scale, 0u)
#put results(dv, params.base_k, {strip}, S_SIZE, 1.0, 0u)
#endif
    workgroupBarrier();
#end
#endif
}
