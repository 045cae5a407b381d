// Computes softmax(scale q k^T + mask) v on cooperative matrices of f16 with f32 sums (Dao, "FlashAttention-2", 2023).
//
// A workgroup computes ROWS rows of q, TEAM_ROWS for each subgroup (a team), and walks over the keys that they see,
// TILE_KEYS at a time. q and the output stay in matrices; tiles of k and v are staged in workgroup memory. The elements
// of a matrix cannot be accessed, so scores go through workgroup memory, where one or two threads own a row, and come
// back as f16 weights.
//
// The output is rescaled to a new row maximum only if that exceeds the old one by a factor above 2^SLACK; weights stay
// below 2^SLACK, far inside the range of f16. Few tiles rescale. Those move the output through workgroup memory, in
// strips of TILE_KEYS dimensions, which reuse the memory of the scores.
#import attention/attention_visible
#import attention/attention_mask
#if CAPPED
#import attention/attention_cap
#endif
#import attention/attention_output
#import attention/attention_logsumexp
#import attention/q_f16 as queries
#import attention/kv_f16 as kv
enable f16;
enable wgpu_cooperative_matrix;
enable subgroups;

const TEAMS: u32 = 4u;
const TEAM_ROWS: u32 = 32u; // 16 or 32
const TILE_KEYS: u32 = 16u; // a multiple of 16
// Binary logarithm of the growth of a maximum that makes the output rescale.
const SLACK: f32 = 8.0;

const LANES: u32 = 32u; // threads in a team
const THREADS: u32 = TEAMS * LANES;
const ROWS: u32 = TEAMS * TEAM_ROWS;
const SHARERS: u32 = LANES / TEAM_ROWS; // threads that share a row of scores
const SHARE: u32 = TILE_KEYS / 4u / SHARERS; // vec4s of scores of a thread

// Rows and columns of a matrix.
const SIDE: u32 = 16u;
const ROW_BLOCKS: u32 = TEAM_ROWS / SIDE;
const KEY_BLOCKS: u32 = TILE_KEYS / SIDE;
const DIM_BLOCKS: u32 = 4u * VEC4S / SIDE;

// Threads read pieces of eight elements, LOADS each for a tile of k or v; the last may lie beyond the tile.
const PIECES: u32 = VEC4S / 2u;
const LOADS: u32 = (TILE_KEYS * PIECES + THREADS - 1u) / THREADS;

// Row pitch in workgroup memory, in elements: padded, to spread rows over the banks.
const P_PITCH: u32 = TILE_KEYS + 8u;
const KV_PITCH: u32 = 4u * VEC4S + 8u;
const S_PITCH: u32 = TILE_KEYS + 4u;

// Strips of q and of the output, and vec4s in a row of each; the last may be narrower.
const STRIPS: u32 = (DIM_BLOCKS + KEY_BLOCKS - 1u) / KEY_BLOCKS;
#for strip in STRIPS
const WIDTH_{strip}: u32 = min(TILE_KEYS / 4u, VEC4S - {strip}u * TILE_KEYS / 4u);
#end

const LOG2_E: f32 = 1.4426950408889634;

// First q, then weights.
var<workgroup> wg_p: array<vec4<f16>, ROWS * P_PITCH / 4u>;
var<workgroup> wg_k: array<vec4<f16>, TILE_KEYS * KV_PITCH / 4u>;
var<workgroup> wg_v: array<vec4<f16>, TILE_KEYS * KV_PITCH / 4u>;
// Scores, or a strip of the output.
var<workgroup> wg_s: array<vec4<f32>, ROWS * S_PITCH / 4u>;
// For each team: GROWN if a row must rescale its output, SPOILED if a value is infinite or NaN.
var<workgroup> wg_flags: array<u32, TEAMS>;
const GROWN: u32 = 1u;
const SPOILED: u32 = 2u;

// Tells which elements are infinite or NaN.
fn spoils(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) >= vec4(0x7f800000u);
}

fn halves(words: vec2<u32>) -> vec4<f16> {
    return vec4<f16>(vec2<f16>(unpack2x16float(words.x)), vec2<f16>(unpack2x16float(words.y)));
}

// Stores a strip of the output in the memory of the scores.
#block store_strip(strip)
#for d in strip * KEY_BLOCKS..min((strip + 1) * KEY_BLOCKS, DIM_BLOCKS)
#for r in ROW_BLOCKS
    {
        let value = o_{r}_{d};
        let to = ((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * (d % KEY_BLOCKS)}u) / 4u;
        let stride = S_PITCH / 4u;
        coopStoreT(value, &wg_s[to], stride);
    }
#end
#end
    workgroupBarrier();
#end

// Moves the next tiles to workgroup memory.
#block stage()
#for x in k, v
#for j in LOADS
    wg_{x}[to_{j}] = halves({x}_next_{j}.xy);
    wg_{x}[to_{j} + 1u] = halves({x}_next_{j}.zw);
#end
#end
#end

@compute @workgroup_size(THREADS)
fn attention_coop(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // workgroup_index, inlined: naga treats the result of a function as non-uniform, and would reject matrix operations
    // after the return below.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.rows {
        return;
    }
#put tile_of_queries(ROWS)
    let last_key = max(end_key, 1u) - 1u;
    let team = local / LANES;
    let lane = local % LANES;
    // The row of scores, or the part of one, of this thread.
    let row = team * TEAM_ROWS + lane % TEAM_ROWS;
    let part = lane / TEAM_ROWS;
    let query = min(first_query + row, last_query);
    let row_at = row * (S_PITCH / 4u) + part * SHARE;
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);
    let factor = params.scale * LOG2_E;
    var largest = minus_infinity;
    var sum = 0.0;
    // Without limits all rows see the same keys.
#if CAUSAL || WINDOWED
    let visible = visible_to(query, len);
#else
    let visible = visible_to_last;
#endif
#if MASKED
    let mask_at = mask_row(pair, head % params.heads, query);
#endif

    // The vec4s of a strip; no constants, so that no driver unrolls all rounds.
#for strip in STRIPS
    let width_{strip} = select(WIDTH_{strip}, 0u, params.rows == 0u);
#end

    // Loads q to matrices, strip by strip, through the memory of the weights.
#for strip in STRIPS
    for (var i = local; i < ROWS * WIDTH_{strip}; i += THREADS) {
        let source = head * params.queries + min(first_query + i / WIDTH_{strip}, last_query);
        wg_p[i / WIDTH_{strip} * (P_PITCH / 4u) + i % WIDTH_{strip}] =
            halves(q[source * VEC4S + {strip * TILE_KEYS / 4}u + i % WIDTH_{strip} - params.base_q]);
    }
    workgroupBarrier();
#for r in ROW_BLOCKS
#for d in strip * KEY_BLOCKS..min((strip + 1) * KEY_BLOCKS, DIM_BLOCKS)
    let q_{r}_{d} = coopLoadT<coop_mat16x16<f16, A>>(
        &wg_p[((team * TEAM_ROWS + {SIDE * r}u) * P_PITCH + {SIDE * (d % KEY_BLOCKS)}u) / 4u], P_PITCH / 4u);
#end
#end
    workgroupBarrier();
#end
#for r in ROW_BLOCKS
#for d in DIM_BLOCKS
    var o_{r}_{d} = coop_mat16x16<f32, C>();
#end
#end

    // The next tiles of k and v wait in registers while the current ones are multiplied. Past the end the last key
    // repeats. Before the first tile weights and values are 0.
#for j in LOADS
    let line_{j} = min(local + {j * THREADS}u, TILE_KEYS * PIECES - 1u) / PIECES;
    let piece_{j} = min(local + {j * THREADS}u, TILE_KEYS * PIECES - 1u) % PIECES;
    let to_{j} = line_{j} * (KV_PITCH / 4u) + piece_{j} * 2u;
    var k_next_{j} = k[row_of(pair, min(visible_to_first.x + line_{j}, last_key)) * PIECES + piece_{j} - params.base_kv / 2u];
    var v_next_{j} = vec4<u32>();
#end
#put stage()
#for j in SHARE
    wg_p[row * (P_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>();
#end
    workgroupBarrier();

    // Each round takes the scores of the tile at `key` and adds the values of the tile before it, so that one barrier
    // follows all products of matrices and one follows all else. The inner loop ends where a row must rescale its
    // output or all keys are added: without that rare work in it, an H100's driver compiles it in 0.2 s, not 1.5 s.
    var key = visible_to_first.x;
    var fade = 1.0;
    var flags = 0u;
    loop {
        loop {
#for j in LOADS
            k_next_{j} =
                k[row_of(pair, min(key + TILE_KEYS + line_{j}, last_key)) * PIECES + piece_{j} - params.base_kv / 2u];
            v_next_{j} = v[row_of(pair, min(key + line_{j}, last_key)) * PIECES + piece_{j} - params.base_kv / 2u];
#end

            // Scores, q k^T, and weights times values in turn: independent products hide each other's latency. naga
            // requires named arguments of coopStoreT, here and below.
            {
#for r in ROW_BLOCKS
#for c in KEY_BLOCKS
                var s_{r}_{c} = coop_mat16x16<f32, C>();
                let p_{r}_{c} = coopLoadT<coop_mat16x16<f16, A>>(
                    &wg_p[((team * TEAM_ROWS + {SIDE * r}u) * P_PITCH + {SIDE * c}u) / 4u], P_PITCH / 4u);
#end
#end
#for d in DIM_BLOCKS
#for c in KEY_BLOCKS
                let k_{d}_{c} = coopLoad<coop_mat16x16<f16, B>>(
                    &wg_k[({SIDE * c}u * KV_PITCH + {SIDE * d}u) / 4u], KV_PITCH / 4u);
                let v_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
                    &wg_v[({SIDE * c}u * KV_PITCH + {SIDE * d}u) / 4u], KV_PITCH / 4u);
#for r in ROW_BLOCKS
                s_{r}_{c} = coopMultiplyAdd(q_{r}_{d}, k_{d}_{c}, s_{r}_{c});
                o_{r}_{d} = coopMultiplyAdd(p_{r}_{c}, v_{d}_{c}, o_{r}_{d});
#end
#end
#end
#for r in ROW_BLOCKS
#for c in KEY_BLOCKS
                {
                    let value = s_{r}_{c};
                    let to = ((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * c}u) / 4u;
                    let stride = S_PITCH / 4u;
                    coopStoreT(value, &wg_s[to], stride);
                }
#end
#end
            }
            workgroupBarrier();

            // From scores to weights: hides keys, finds the largest score of each row, takes exponentials.
#for j in SHARE
#if CAPPED
            var s_{j} = LOG2_E * capped(wg_s[row_at + {j}u] * params.scale);
#else
            var s_{j} = wg_s[row_at + {j}u] * factor;
#endif
#end
            let first_at = key + part * (4u * SHARE);
#if MASKED
#for j in SHARE
            {
                let near = mask_at + min(vec4(first_at + {4 * j}u) + vec4(0u, 1u, 2u, 3u), vec4(last_key));
                s_{j} += LOG2_E * vec4(mask[near.x], mask[near.y], mask[near.z], mask[near.w]);
            }
#end
#endif
            // Only tiles at an edge of the visible keys hide keys.
            var team_spoiled = false;
            if key + TILE_KEYS > visible_to_first.y || key < visible_to_last.x {
                var spoiled = false;
#for j in LOADS
#for words in xy, zw
                spoiled = spoiled || any(spoils(vec4<f32>(halves(v_next_{j}.{words}))));
#end
#end
                team_spoiled = subgroupAny(spoiled);
#for j in SHARE
                {
                    let at = vec4(first_at + {4 * j}u) + vec4(0u, 1u, 2u, 3u);
                    s_{j} = select(s_{j}, vec4(minus_infinity), (at >= vec4(visible.y)) | (at < vec4(visible.x)));
                }
#end
            }
            // tops_j is the maximum of s_0 to s_j.
            let tops_0 = s_0;
#for j in 1..SHARE
            let tops_{j} = max(tops_{j - 1}, s_{j});
#end
#for last in SHARE - 1..SHARE
            let tops = tops_{last};
#end
            var top = max(max(tops.x, tops.y), max(tops.z, tops.w));
#if SHARERS > 1
            top = max(top, subgroupShuffleXor(top, TEAM_ROWS));
#endif
            fade = 1.0;
            var grown = false;
            if top > largest + SLACK {
                // Before the first visible key there is nothing to rescale.
                grown = largest != minus_infinity;
                fade = exp2(largest - top);
                largest = top;
                sum *= fade;
            }
            let team_grown = subgroupAny(grown);
            if lane == 0u {
                wg_flags[team] = select(0u, GROWN, team_grown) | select(0u, SPOILED, team_spoiled);
            }
            // While a row has seen no key, any finite center will do.
            let center = select(largest, 0.0, largest == minus_infinity);
#for j in SHARE
            s_{j} = exp2(s_{j} - center);
            sum += (s_{j}.x + s_{j}.y) + (s_{j}.z + s_{j}.w);
            wg_p[row * (P_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>(s_{j});
#end
#put stage()
            workgroupBarrier();

            flags = wg_flags[0]
#for other in 1..TEAMS
                | wg_flags[{other}]
#end
                ;
            if flags != 0u || key >= end_key {
                break;
            }
            key += TILE_KEYS;
        }
        if key >= end_key {
            break;
        }

        // Rescales the output. 0 times an infinite or NaN value is NaN: if a tile that hides keys has such values, each
        // row adds those that it sees one by one, and the matrices get zeros instead.
#for strip in STRIPS
#put store_strip({strip})
        for (var i = part; i < width_{strip}; i += SHARERS) {
            let at = row * (S_PITCH / 4u) + i;
            var o = wg_s[at] * fade;
            if (flags & SPOILED) != 0u {
                for (var j = max(key, visible.x); j < min(key + TILE_KEYS, visible.y); j++) {
                    let value = vec4<f32>(wg_v[(j - key) * (KV_PITCH / 4u) + {strip * TILE_KEYS / 4}u + i]);
                    let weight = f32(wg_p[row * (P_PITCH / 4u) + (j - key) / 4u][(j - key) % 4u]);
                    o += select(vec4<f32>(), weight * value, spoils(value));
                }
            }
            wg_s[at] = o;
        }
        workgroupBarrier();
#for d in strip * KEY_BLOCKS..min((strip + 1) * KEY_BLOCKS, DIM_BLOCKS)
#for r in ROW_BLOCKS
        o_{r}_{d} = coopLoadT<coop_mat16x16<f32, C>>(
            &wg_s[((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * (d % KEY_BLOCKS)}u) / 4u], S_PITCH / 4u);
#end
#end
        workgroupBarrier();
#end
        if (flags & SPOILED) != 0u {
            for (var i = local; i < TILE_KEYS * VEC4S; i += THREADS) {
                let at = i / VEC4S * (KV_PITCH / 4u) + i % VEC4S;
                let value = wg_v[at];
                wg_v[at] = select(value, vec4<f16>(), spoils(vec4<f32>(value)));
            }
            workgroupBarrier();
        }
        key += TILE_KEYS;
    }

    // Divides by the sums, stores.
#if SHARERS > 1
    sum += subgroupShuffleXor(sum, TEAM_ROWS);
#endif
    let by = select(1.0 / sum, 0.0, sum == 0.0);
#if LOGSUMEXP
    if part == 0u && first_query + row <= last_query {
        store_logsumexp(head * params.queries + query, largest, sum);
    }
#endif
#for strip in STRIPS
#put store_strip({strip})
    for (var i = part; i < width_{strip}; i += SHARERS) {
        let at = row * (S_PITCH / 4u) + i;
        if first_query + row <= last_query {
            store_vec4(head * params.queries + query, {strip * TILE_KEYS / 4}u + i, wg_s[at] * by);
        }
    }
    workgroupBarrier();
#end
}
