// softmax(scale q k^T + mask) v on cooperative matrices of f16 with sums of f32 (Dao, "FlashAttention-2", 2023).
//
// A workgroup takes ROWS rows of q, of which each subgroup (a team) has TEAM_ROWS, and walks over the keys that they see,
// TILE_KEYS at a time. q and the output stay in matrices; tiles of k and v are staged in workgroup memory for all teams. A
// matrix has no elements to reach: scores go through workgroup memory, where a row belongs to an invocation (or to two),
// and come back as weights of f16.
//
// The output is scaled to a new maximum of its row only where that is more than 2^SLACK times what the row was scaled by,
// and weights are then as large as that, far from what f16 holds: few tiles do so, and those alone take the output through
// workgroup memory. There the output passes in strips of TILE_KEYS dimensions, as a strip takes the place of the scores.
#import attention/attention_seen
#import attention/attention_mask
#import attention/attention_output
#import attention/q_f16 as queries
#import attention/kv_f16 as kv
enable f16;
enable wgpu_cooperative_matrix;
enable subgroups;

const TEAMS: u32 = 4u;
const TEAM_ROWS: u32 = 32u; // 16 or 32
const TILE_KEYS: u32 = 16u; // a multiple of 16
// How much a maximum may grow, as a power of two, before the output is scaled to it.
const SLACK: f32 = 8.0;

const LANES: u32 = 32u; // invocations of a team
const INVOCATIONS: u32 = TEAMS * LANES;
const ROWS: u32 = TEAMS * TEAM_ROWS;
const SHARERS: u32 = LANES / TEAM_ROWS; // invocations that share a row of scores
const SHARE: u32 = TILE_KEYS / 4u / SHARERS; // fours of scores that one has

// Matrices have SIDE rows and columns.
const SIDE: u32 = 16u;
const ROW_BLOCKS: u32 = TEAM_ROWS / SIDE;
const KEY_BLOCKS: u32 = TILE_KEYS / SIDE;
const DIM_BLOCKS: u32 = 4u * FOURS / SIDE;

// Storage is read in pieces of eight elements. LOADS of them in an invocation are a tile of k or v; the last may be beyond it.
const PIECES: u32 = FOURS / 2u;
const LOADS: u32 = (TILE_KEYS * PIECES + INVOCATIONS - 1u) / INVOCATIONS;

// Elements from one row to the next in workgroup memory: a little more than a row has, to spread blocks over the banks.
const P_PITCH: u32 = TILE_KEYS + 8u;
const KV_PITCH: u32 = 4u * FOURS + 8u;
const S_PITCH: u32 = TILE_KEYS + 4u;

// Strips of the output (and first of q), and fours of elements in a row of each; the last may be narrower.
const STRIPS: u32 = (DIM_BLOCKS + KEY_BLOCKS - 1u) / KEY_BLOCKS;
#for strip in STRIPS
const WIDTH_{strip}: u32 = min(TILE_KEYS / 4u, FOURS - {strip}u * TILE_KEYS / 4u);
#end

const LOG2_E: f32 = 1.4426950408889634;

// Weights, and first q.
var<workgroup> wg_p: array<vec4<f16>, ROWS * P_PITCH / 4u>;
var<workgroup> wg_k: array<vec4<f16>, TILE_KEYS * KV_PITCH / 4u>;
var<workgroup> wg_v: array<vec4<f16>, TILE_KEYS * KV_PITCH / 4u>;
// Scores; and the output where its elements are reached.
var<workgroup> wg_s: array<vec4<f32>, ROWS * S_PITCH / 4u>;
// Of each team GROWN, if a row wants the output scaled, and SPOILED, if it found a value that is infinite or NaN.
var<workgroup> wg_flags: array<u32, TEAMS>;
const GROWN: u32 = 1u;
const SPOILED: u32 = 2u;

// Which are infinite or NaN.
fn spoils(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) >= vec4(0x7f800000u);
}

fn halves(words: vec2<u32>) -> vec4<f16> {
    return vec4<f16>(vec2<f16>(unpack2x16float(words.x)), vec2<f16>(unpack2x16float(words.y)));
}

// A strip of columns of the output, to the scores' place in workgroup memory.
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

@compute @workgroup_size(INVOCATIONS)
fn attention_coop(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // As workgroup_index has it, written out: naga holds what a function returns to differ from invocation to
    // invocation, and the end of some of them to be in the way of the others' matrices.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.rows {
        return;
    }
#put tile_of_queries(ROWS)
    let last_key = max(end_key, 1u) - 1u;
    let team = local / LANES;
    let lane = local % LANES;
    // The row of scores that is this invocation's, or its part of one.
    let row = team * TEAM_ROWS + lane % TEAM_ROWS;
    let part = lane / TEAM_ROWS;
    let query = min(first_query + row, last_query);
    let row_at = row * (S_PITCH / 4u) + part * SHARE;
    var infinity_bits = 0xff800000u;
    let nothing = bitcast<f32>(infinity_bits);
    let factor = params.scale * LOG2_E;
    var most = nothing;
    var sum = 0.0;
    // Without bounds, all rows see the same.
#if CAUSAL || WINDOWED
    let seen = seen_by(query, len);
#else
    let seen = seen_by_last;
#endif
#if MASKED
    let mask_at = mask_row(pair, head % params.heads, query);
#endif

    // Of the fours of a strip; no constants, so that no driver writes out all rounds.
#for strip in STRIPS
    let width_{strip} = select(WIDTH_{strip}, 0u, params.rows == 0u);
#end

    // q goes to matrices strip by strip, through the place of weights.
#for strip in STRIPS
    for (var i = local; i < ROWS * WIDTH_{strip}; i += INVOCATIONS) {
        let source = head * params.queries + min(first_query + i / WIDTH_{strip}, last_query);
        wg_p[i / WIDTH_{strip} * (P_PITCH / 4u) + i % WIDTH_{strip}] =
            halves(q[source * FOURS + {strip * TILE_KEYS / 4}u + i % WIDTH_{strip} - params.base_q]);
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

    // A tile of k and v waits in registers while the one before it is multiplied. Behind the last key comes that again.
#for j in LOADS
    let line_{j} = min(local + {j * INVOCATIONS}u, TILE_KEYS * PIECES - 1u) / PIECES;
    let piece_{j} = min(local + {j * INVOCATIONS}u, TILE_KEYS * PIECES - 1u) % PIECES;
    let to_{j} = line_{j} * (KV_PITCH / 4u) + piece_{j} * 2u;
    var k_next_{j}: vec4<u32>;
    var v_next_{j}: vec4<u32>;
#end
#for x in k, v
#for j in LOADS
    {x}_next_{j} =
        {x}[row_of(pair, min(seen_by_first.x + line_{j}, last_key)) * PIECES + piece_{j} - params.base_kv / 2u];
#end
#end
#for x in k, v
#for j in LOADS
    wg_{x}[to_{j}] = halves({x}_next_{j}.xy);
    wg_{x}[to_{j} + 1u] = halves({x}_next_{j}.zw);
#end
#end
    workgroupBarrier();

    for (var key = seen_by_first.x; key < end_key; key += TILE_KEYS) {
#for x in k, v
#for j in LOADS
        {x}_next_{j} =
            {x}[row_of(pair, min(key + TILE_KEYS + line_{j}, last_key)) * PIECES + piece_{j} - params.base_kv / 2u];
#end
#end

        // The scores of the tile, q k^T. naga wants what a store takes bound to names, here and below.
#for c in KEY_BLOCKS
        {
#for r in ROW_BLOCKS
            var s_{r} = coop_mat16x16<f32, C>();
#end
#for d in DIM_BLOCKS
            let k_{d} = coopLoad<coop_mat16x16<f16, B>>(
                &wg_k[({SIDE * c}u * KV_PITCH + {SIDE * d}u) / 4u], KV_PITCH / 4u);
#for r in ROW_BLOCKS
            s_{r} = coopMultiplyAdd(q_{r}_{d}, k_{d}, s_{r});
#end
#end
#for r in ROW_BLOCKS
            {
                let value = s_{r};
                let to = ((team * TEAM_ROWS + {SIDE * r}u) * S_PITCH + {SIDE * c}u) / 4u;
                let stride = S_PITCH / 4u;
                coopStoreT(value, &wg_s[to], stride);
            }
#end
        }
#end
        workgroupBarrier();

        // From scores to weights: hidden keys, the largest of each row, exponentials.
#for j in SHARE
        var s_{j} = wg_s[row_at + {j}u] * factor;
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
        // Only tiles at an end of what some row sees hide anything.
        var team_spoiled = false;
        if key + TILE_KEYS > seen_by_first.y || key < seen_by_last.x {
            var spoiled = false;
            for (var i = local; i < TILE_KEYS * FOURS; i += INVOCATIONS) {
                spoiled = spoiled || any(spoils(vec4<f32>(wg_v[i / FOURS * (KV_PITCH / 4u) + i % FOURS])));
            }
            team_spoiled = subgroupAny(spoiled);
#for j in SHARE
            {
                let at = vec4(first_at + {4 * j}u) + vec4(0u, 1u, 2u, 3u);
                s_{j} = select(s_{j}, vec4(nothing), (at >= vec4(seen.y)) | (at < vec4(seen.x)));
            }
#end
        }
        // tops_j is the largest of the first fours up to s_j.
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
        var fade = 1.0;
        var grown = false;
        if top > most + SLACK {
            // Nothing was added before the first.
            grown = most != nothing;
            fade = exp2(most - top);
            most = top;
            sum *= fade;
        }
        let team_grown = subgroupAny(grown);
        if lane == 0u {
            wg_flags[team] = select(0u, GROWN, team_grown) | select(0u, SPOILED, team_spoiled);
        }
        // A row that has seen nothing yet has no largest: any number will do.
        let center = select(most, 0.0, most == nothing);
#for j in SHARE
        s_{j} = exp2(s_{j} - center);
        sum += (s_{j}.x + s_{j}.y) + (s_{j}.z + s_{j}.w);
        wg_p[row * (P_PITCH / 4u) + part * SHARE + {j}u] = vec4<f16>(s_{j});
#end

        // Scales the output where a row asks for it. A weight of 0 does not hide a value that is infinite or NaN: where a
        // tile that hides keys has such values, rows add those that they see one by one, and the matrices find zeros in
        // their place.
        let all_flags = workgroupUniformLoad(&wg_flags);
        let flags = all_flags[0]
#for other in 1..TEAMS
            | all_flags[{other}]
#end
            ;
        if flags != 0u {
#for strip in STRIPS
#put store_strip({strip})
            for (var i = part; i < width_{strip}; i += SHARERS) {
                let at = row * (S_PITCH / 4u) + i;
                var o = wg_s[at] * fade;
                if (flags & SPOILED) != 0u {
                    for (var j = max(key, seen.x); j < min(key + TILE_KEYS, seen.y); j++) {
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
                for (var i = local; i < TILE_KEYS * FOURS; i += INVOCATIONS) {
                    let at = i / FOURS * (KV_PITCH / 4u) + i % FOURS;
                    let value = wg_v[at];
                    wg_v[at] = select(value, vec4<f16>(), spoils(vec4<f32>(value)));
                }
                workgroupBarrier();
            }
        }

        // Adds weights times values to the output.
        {
#for r in ROW_BLOCKS
#for c in KEY_BLOCKS
            let p_{r}_{c} = coopLoadT<coop_mat16x16<f16, A>>(
                &wg_p[((team * TEAM_ROWS + {SIDE * r}u) * P_PITCH + {SIDE * c}u) / 4u], P_PITCH / 4u);
#end
#end
#for d in DIM_BLOCKS
#for c in KEY_BLOCKS
            let v_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
                &wg_v[({SIDE * c}u * KV_PITCH + {SIDE * d}u) / 4u], KV_PITCH / 4u);
#for r in ROW_BLOCKS
            o_{r}_{d} = coopMultiplyAdd(p_{r}_{c}, v_{d}_{c}, o_{r}_{d});
#end
#end
#end
        }
        workgroupBarrier();
#for x in k, v
#for j in LOADS
        wg_{x}[to_{j}] = halves({x}_next_{j}.xy);
        wg_{x}[to_{j} + 1u] = halves({x}_next_{j}.zw);
#end
#end
        workgroupBarrier();
    }

    // Divides by the sums and stores.
#if SHARERS > 1
    sum += subgroupShuffleXor(sum, TEAM_ROWS);
#endif
    let by = select(1.0 / sum, 0.0, sum == 0.0);
#for strip in STRIPS
#put store_strip({strip})
    for (var i = part; i < width_{strip}; i += SHARERS) {
        let at = row * (S_PITCH / 4u) + i;
        if first_query + row <= last_query {
            store_four(head * params.queries + query, {strip * TILE_KEYS / 4}u + i, wg_s[at] * by);
        }
    }
    workgroupBarrier();
#end
}
