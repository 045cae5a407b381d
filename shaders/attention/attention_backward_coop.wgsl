// Computes the gradients of attention on cooperative matrices of f16 with f32 sums (Dao, "FlashAttention-2", 2023).
//
// A workgroup owns OWN rows, TEAM_ROWS for each subgroup (a team), and walks over those that they see or are seen by,
// WALK at a time. Own rows and results stay in matrices; tiles of walked rows are staged in workgroup memory. The
// elements of a matrix cannot be accessed, so scores, and products of dy and v, go through workgroup memory, where one
// or two threads own a row, and come back as slopes and weights of f16.
#import attention/attention_backward_params
enable f16;
enable wgpu_cooperative_matrix;

const TEAMS: u32 = 4u;
const TEAM_ROWS: u32 = 32u; // 16 or 32
const WALK: u32 = 16u; // a multiple of 16

alias Words = vec4<f16>;

const LANES: u32 = 32u; // threads in a team
const THREADS: u32 = TEAMS * LANES;
const OWN: u32 = TEAMS * TEAM_ROWS;
const SHARERS: u32 = LANES / TEAM_ROWS; // threads that share an own row
const SHARE: u32 = WALK / 4u / SHARERS; // vec4s of scores of a thread

// Rows and columns of a matrix.
const SIDE: u32 = 16u;
const ROW_BLOCKS: u32 = TEAM_ROWS / SIDE;
const WALK_BLOCKS: u32 = WALK / SIDE;
const DIM_BLOCKS: u32 = HEAD / SIDE;
const VEC4S: u32 = HEAD / 4u;

// Vec4s that a thread loads for a tile of walked rows; the last may lie beyond the tile.
const LOADS: u32 = (WALK * VEC4S + THREADS - 1u) / THREADS;

// Row pitch in workgroup memory, in elements: padded, to spread rows over the banks.
const G_PITCH: u32 = WALK + 8u;
const X_PITCH: u32 = HEAD + 8u;
const S_PITCH: u32 = WALK + 4u;

// Strips of own rows and of results, and vec4s in a row of each; the last may be narrower.
const STRIPS: u32 = (DIM_BLOCKS + WALK_BLOCKS - 1u) / WALK_BLOCKS;
#for strip in STRIPS
const WIDTH_{strip}: u32 = min(WALK / 4u, VEC4S - {strip}u * WALK / 4u);
#end

const LOG2_E: f32 = 1.4426950408889634;

// First strips of own rows, then slopes.
var<workgroup> wg_g: array<vec4<f16>, OWN * G_PITCH / 4u>;
// Walked rows: k and v, or q and dy.
var<workgroup> wg_x: array<vec4<f16>, WALK * X_PITCH / 4u>;
var<workgroup> wg_y: array<vec4<f16>, WALK * X_PITCH / 4u>;
// Scores, or a strip of a result; and products of dy and v.
var<workgroup> wg_s: array<vec4<f32>, OWN * S_PITCH / 4u>;
var<workgroup> wg_d: array<vec4<f32>, OWN * S_PITCH / 4u>;
#if !QUERIES
// Weights, and the statistics of walked queries.
var<workgroup> wg_w: array<vec4<f16>, OWN * G_PITCH / 4u>;
var<workgroup> wg_statistics: array<vec2<f32>, WALK>;
#endif

// Loads own rows of `list` to matrices own_`to`_r_d, strip by strip.
#block own(list, base, to)
#for strip in STRIPS
    for (var i = local; i < OWN * width_{strip}; i += THREADS) {
        let source = min(first_own + i / width_{strip}, last_own);
        wg_g[i / width_{strip} * (G_PITCH / 4u) + i % width_{strip}] =
            {list}[source * VEC4S + {strip * WALK / 4}u + i % width_{strip} + {base} / 4u];
    }
    workgroupBarrier();
#for r in ROW_BLOCKS
#for d in strip * WALK_BLOCKS..min((strip + 1) * WALK_BLOCKS, DIM_BLOCKS)
    let own_{to}_{r}_{d} = coopLoadT<coop_mat16x16<f16, A>>(
        &wg_g[((team * TEAM_ROWS + {SIDE * r}u) * G_PITCH + {SIDE * (d % WALK_BLOCKS)}u) / 4u], G_PITCH / 4u);
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

// Moves them to workgroup memory.
#block stage()
#for j in LOADS
#if (j + 1) * THREADS > WALK * VEC4S
    if local + {j * THREADS}u < WALK * VEC4S {
#else
    {
#endif
        wg_x[line_{j} * (X_PITCH / 4u) + column_{j}] = x_next_{j};
        wg_y[line_{j} * (X_PITCH / 4u) + column_{j}] = y_next_{j};
    }
#end
#if !QUERIES
    if local < WALK {
        wg_statistics[local] = statistics_next;
    }
#endif
    workgroupBarrier();
#end

// Stores matrices `value`_r_d, times `factor`, as rows of `list`.
#block results(list, base, value, factor)
#for strip in STRIPS
#for d in strip * WALK_BLOCKS..min((strip + 1) * WALK_BLOCKS, DIM_BLOCKS)
#for r in ROW_BLOCKS
    {
        let value = {value}_{r}_{d};
        let to = ((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * (d % WALK_BLOCKS)}u) / 4u;
        let stride = S_PITCH / 4u;
        coopStoreT(value, &wg_s[to], stride);
    }
#end
#end
    workgroupBarrier();
    if first_own + row <= last_own {
        for (var i = part; i < width_{strip}; i += SHARERS) {
            {list}[(first_own + row) * VEC4S + {strip * WALK / 4}u + i + {base} / 4u] =
                vec4<f16>(wg_s[row * (S_PITCH / 4u) + i] * {factor});
        }
    }
    workgroupBarrier();
#end
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
    let team = local / LANES;
    let lane = local % LANES;
    // The own row of this thread, or the part of one.
    let row = team * TEAM_ROWS + lane % TEAM_ROWS;
    let part = lane / TEAM_ROWS;
    let row_at = row * (S_PITCH / 4u) + part * SHARE;
    let visible = visible_to(min(first + row, last));
    let factor = params.scale * LOG2_E;
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);

    // The vec4s of a strip; no constants, so that no driver unrolls all rounds.
#for strip in STRIPS
    let width_{strip} = select(WIDTH_{strip}, 0u, params.workgroups == 0u);
#end
#if QUERIES
#put own(q, params.base_q, x)
#put own(dy, params.base_q, y)
#else
#put own(k, params.base_k, x)
#put own(v, params.base_k, y)
#endif
#if STATISTICS_ALONE
    var largest = minus_infinity;
    var sum = 0.0;
    var weighted = 0.0;
#else
#if QUERIES
    let of_row = statistics[min(first_own + row, last_own)];
#endif
#for r in ROW_BLOCKS
#for d in DIM_BLOCKS
    var slopes_{r}_{d} = coop_mat16x16<f32, C>();
#if !QUERIES
    var values_{r}_{d} = coop_mat16x16<f32, C>();
#endif
#end
#end
#endif
#for j in LOADS
    let line_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) / VEC4S;
    let column_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) % VEC4S;
    var x_next_{j}: vec4<f16>;
    var y_next_{j}: vec4<f16>;
#end
#if QUERIES
    let first_walked = own_head / params.group * params.keys;
    {
#else
    var statistics_next: vec2<f32>;
    for (var head = own_head * params.group; head < (own_head + 1u) * params.group; head++) {
    let first_walked = head * params.queries;
#endif
    let last_walked = first_walked + max(visible_to_last.y, 1u) - 1u;
#if QUERIES
#put load(k, v, params.base_k, first_walked + visible_to_first.x)
#else
#put load(q, dy, params.base_q, first_walked + visible_to_first.x)
#endif
#put stage()
    for (var walk = visible_to_first.x; walk < visible_to_last.y; walk += WALK) {
        // The next tile waits in registers while the current one is multiplied.
#if QUERIES
#put load(k, v, params.base_k, first_walked + walk + WALK)
#else
#put load(q, dy, params.base_q, first_walked + walk + WALK)
#endif

        // naga requires named arguments of coopStoreT.
#for c in WALK_BLOCKS
        {
#for r in ROW_BLOCKS
            var s_{r} = coop_mat16x16<f32, C>();
            var d_{r} = coop_mat16x16<f32, C>();
#end
#for d in DIM_BLOCKS
            let x_{d} = coopLoad<coop_mat16x16<f16, B>>(
                &wg_x[({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
            let y_{d} = coopLoad<coop_mat16x16<f16, B>>(
                &wg_y[({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
#for r in ROW_BLOCKS
            s_{r} = coopMultiplyAdd(own_x_{r}_{d}, x_{d}, s_{r});
            d_{r} = coopMultiplyAdd(own_y_{r}_{d}, y_{d}, d_{r});
#end
#end
#for r in ROW_BLOCKS
#for name in s, d
            {
                let value = {name}_{r};
                let to = ((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * c}u) / 4u;
                let stride = S_PITCH / 4u;
                coopStoreT(value, &wg_{name}[to], stride);
            }
#end
#end
        }
#end
        workgroupBarrier();

#for j in SHARE
        var s_{j} = wg_s[row_at + {j}u] * factor;
        let d_{j} = wg_d[row_at + {j}u];
#end
        let first_at = part * (4u * SHARE);
        // Only tiles at an edge hide rows.
        if walk + WALK > visible_to_first.y || walk < visible_to_last.x {
#for j in SHARE
            {
                let at = vec4(walk + first_at + {4 * j}u) + vec4(0u, 1u, 2u, 3u);
                s_{j} = select(s_{j}, vec4(minus_infinity), (at >= vec4(visible.y)) | (at < vec4(visible.x)));
            }
#end
        }
#if STATISTICS_ALONE
        var tops = s_0;
#for j in 1..SHARE
        tops = max(tops, s_{j});
#end
        let top = max(max(tops.x, tops.y), max(tops.z, tops.w));
        if top > largest {
            let fade = exp2(largest - top);
            largest = top;
            sum *= fade;
            weighted *= fade;
        }
        // While a row has seen no key, any finite center will do.
        let center = select(largest, 0.0, largest == minus_infinity);
#for j in SHARE
        s_{j} = exp2(s_{j} - center);
        sum += (s_{j}.x + s_{j}.y) + (s_{j}.z + s_{j}.w);
        weighted += dot(s_{j}, d_{j});
#end
#else
#for j in SHARE
#if QUERIES
        s_{j} = exp2(s_{j} - of_row.x);
        wg_g[row * (G_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>(s_{j} * (d_{j} - of_row.y));
#else
        {
#for n in 4
            let query_{n} = wg_statistics[first_at + {4 * j + n}u];
#end
            s_{j} = exp2(s_{j} - vec4(query_0.x, query_1.x, query_2.x, query_3.x));
            let deltas = vec4(query_0.y, query_1.y, query_2.y, query_3.y);
            wg_g[row * (G_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>(s_{j} * (d_{j} - deltas));
            wg_w[row * (G_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>(s_{j});
        }
#endif
#end
        workgroupBarrier();

        // Adds slopes times walked rows, and for keys weights times dy.
#for r in ROW_BLOCKS
#for c in WALK_BLOCKS
        let g_{r}_{c} = coopLoadT<coop_mat16x16<f16, A>>(
            &wg_g[((team * TEAM_ROWS + {SIDE * r}u) * G_PITCH + {SIDE * c}u) / 4u], G_PITCH / 4u);
#if !QUERIES
        let w_{r}_{c} = coopLoadT<coop_mat16x16<f16, A>>(
            &wg_w[((team * TEAM_ROWS + {SIDE * r}u) * G_PITCH + {SIDE * c}u) / 4u], G_PITCH / 4u);
#endif
#end
#end
#for d in DIM_BLOCKS
#for c in WALK_BLOCKS
        let x_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
            &wg_x[({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
#if !QUERIES
        let y_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
            &wg_y[({SIDE * c}u * X_PITCH + {SIDE * d}u) / 4u], X_PITCH / 4u);
#endif
#for r in ROW_BLOCKS
        slopes_{r}_{d} = coopMultiplyAdd(g_{r}_{c}, x_{d}_{c}, slopes_{r}_{d});
#if !QUERIES
        values_{r}_{d} = coopMultiplyAdd(w_{r}_{c}, y_{d}_{c}, values_{r}_{d});
#endif
#end
#end
#end
#endif
        workgroupBarrier();
#put stage()
    }
    }

#if STATISTICS_ALONE
#if SHARERS > 1
    // The threads of a row join what each has seen.
    wg_s[row * (S_PITCH / 4u) + part] = vec4(largest, sum, weighted, 0.0);
    workgroupBarrier();
    let other = wg_s[row * (S_PITCH / 4u) + 1u - part];
    let joint = max(largest, other.x);
    let fades = exp2(vec2(largest, other.x) - select(joint, 0.0, joint == minus_infinity));
    largest = joint;
    sum = sum * fades.x + other.y * fades.y;
    weighted = weighted * fades.x + other.z * fades.y;
#endif
    // A query that sees nothing has an infinite logarithm, so that later weights are 0.
    let is_empty = sum == 0.0;
    if part == 0u && first_own + row <= last_own {
        let logarithm = select(largest + log2(sum), -minus_infinity, is_empty);
        statistics[first_own + row] = vec2(logarithm, select(weighted / sum, 0.0, is_empty));
    }
#else
#if QUERIES
#put results(dq, params.base_q, slopes, params.scale)
#else
#put results(dk, params.base_k, slopes, params.scale)
#put results(dv, params.base_k, values, 1.0)
#endif
#endif
}
