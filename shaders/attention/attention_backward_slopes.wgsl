// Computes dq on cooperative matrices of f16: slopes, which attention_backward_coop_keys stored, times k.
//
// A workgroup owns OWN queries, ROWS of each subgroup, and walks over the keys that they see, WALK at a time. While a
// tile of slopes and keys in workgroup memory is multiplied, the one after the next arrives in registers.
#import attention/attention_backward_params
enable f16;
enable wgpu_cooperative_matrix;

const TEAMS: u32 = 4u; // subgroups
const ROWS: u32 = 16u; // a multiple of 16
const WALK: u32 = 32u; // a multiple of 16 that divides KEY_TILE

alias Words = vec4<f16>;

const LANES: u32 = 32u; // threads in a subgroup
const THREADS: u32 = TEAMS * LANES;
const OWN: u32 = TEAMS * ROWS;

// Rows and columns of a matrix.
const SIDE: u32 = 16u;
const ROW_BLOCKS: u32 = ROWS / SIDE;
const WALK_BLOCKS: u32 = WALK / SIDE;
const DIM_BLOCKS: u32 = HEAD / SIDE;
const VEC4S: u32 = HEAD / 4u;

// Vec4s that a thread loads for a tile of slopes and of keys; the last may lie beyond the tile.
const SLOPE_LOADS: u32 = WALK * OWN / 4u / THREADS;
const LOADS: u32 = (WALK * VEC4S + THREADS - 1u) / THREADS;

// Row pitch in workgroup memory, in elements: padded, to spread rows over the banks.
const G_PITCH: u32 = OWN + 8u;
const X_PITCH: u32 = HEAD + 8u;
const S_PITCH: u32 = SIDE + 8u;
// Vec4s of a tile.
const G_SIZE: u32 = WALK * G_PITCH / 4u;
const X_SIZE: u32 = WALK * X_PITCH / 4u;

var<workgroup> wg_g: array<vec4<f16>, 2u * G_SIZE>;
var<workgroup> wg_x: array<vec4<f16>, 2u * X_SIZE>;
// A strip of results.
var<workgroup> wg_s: array<vec4<f32>, OWN * S_PITCH / 4u>;

// Loads the tile of keys from `at` on to registers. Past the end of the keys the last row repeats; its slopes count
// as 0.
#block load(at)
#for j in SLOPE_LOADS
    g_next_{j} = slopes[slope_{j} + min({at} + key_{j}, params.keys - 1u) * (SIDE / 4u)];
#end
#for j in LOADS
    x_next_{j} = k[min(first_walked + {at} + line_{j}, last_walked) * VEC4S + column_{j} + params.base_k / 4u];
#end
#end

// Moves the tile of keys from `at` on to tile `tile` of workgroup memory. Slopes of hidden keys were not stored.
#block stage(at, tile)
    if {at} + WALK > visible_to_first.y || {at} < visible_to_last.x {
#for j in SLOPE_LOADS
#for e in 4
        let sees_{j}_{e} = visible_to(min(first + query_{j} + {e}u, last));
#end
        let from_{j} = vec4(sees_{j}_0.x, sees_{j}_1.x, sees_{j}_2.x, sees_{j}_3.x);
        let end_{j} = vec4(sees_{j}_0.y, sees_{j}_1.y, sees_{j}_2.y, sees_{j}_3.y);
        let hidden_{j} = (vec4({at} + key_{j}) < from_{j}) | (vec4({at} + key_{j}) >= end_{j});
        g_next_{j} = select(g_next_{j}, vec4<f16>(), hidden_{j});
#end
    }
#for j in SLOPE_LOADS
    wg_g[{tile} * G_SIZE + key_{j} * (G_PITCH / 4u) + query_{j} / 4u] = g_next_{j};
#end
#for j in LOADS
#if (j + 1) * THREADS > WALK * VEC4S
    if local + {j * THREADS}u < WALK * VEC4S {
#else
    {
#endif
        wg_x[{tile} * X_SIZE + line_{j} * (X_PITCH / 4u) + column_{j}] = x_next_{j};
    }
#end
#end

@compute @workgroup_size(THREADS)
fn attention_backward_slopes(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // workgroup_index, inlined: naga treats the result of a function as non-uniform, and would reject matrix operations
    // after the return below.
    let index = id.x + FOLD * (id.y + FOLD * id.z);
    if index >= params.workgroups {
        return;
    }
#put own_tile()
    let first_row = local / LANES * ROWS;

    // Each vec4 of slopes is that of four queries and a key. Lanes that store together take every other key: they hit
    // different banks.
    let blocks = (params.queries + SIDE - 1u) / SIDE;
    let padded_keys = (params.keys + KEY_TILE - 1u) / KEY_TILE * KEY_TILE;
#for j in SLOPE_LOADS
    let place_{j} = (local + {j * THREADS}u) / 4u;
    let key_{j} = place_{j} % WALK / 8u * 8u + place_{j} % 4u * 2u + place_{j} / 4u % 2u;
    let query_{j} = place_{j} / WALK * SIDE + local % 4u * 4u;
    let block_{j} = own_head * blocks + min((first + query_{j}) / SIDE, blocks - 1u);
    let slope_{j} = block_{j} * padded_keys * (SIDE / 4u) + local % 4u;
    var g_next_{j}: vec4<f16>;
#end
#for j in LOADS
    let line_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) / VEC4S;
    let column_{j} = min(local + {j * THREADS}u, WALK * VEC4S - 1u) % VEC4S;
    var x_next_{j}: vec4<f16>;
#end
#for r in ROW_BLOCKS
#for d in DIM_BLOCKS
    var sums_{r}_{d} = coop_mat16x16<f32, C>();
#end
#end
    var tile_now = 0u;
    let first_walked = own_head / params.group * params.keys;
    let last_walked = first_walked + params.keys - 1u;
#put load(visible_to_first.x)
#put stage(visible_to_first.x, tile_now)
#put load(visible_to_first.x + WALK)
    workgroupBarrier();
    for (var walk = visible_to_first.x; walk < visible_to_last.y; walk += WALK) {
        let of_slopes = tile_now * G_SIZE + first_row / 4u;
        let of_keys = tile_now * X_SIZE;
#for c in WALK_BLOCKS
#for r in ROW_BLOCKS
        let g_{r}_{c} = coopLoad<coop_mat16x16<f16, A>>(
            &wg_g[of_slopes + {SIDE * c}u * (G_PITCH / 4u) + {SIDE * r / 4}u], G_PITCH / 4u);
#end
#for d in DIM_BLOCKS
        let x_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(
            &wg_x[of_keys + {SIDE * c}u * (X_PITCH / 4u) + {SIDE * d / 4}u], X_PITCH / 4u);
#for r in ROW_BLOCKS
        sums_{r}_{d} = coopMultiplyAdd(g_{r}_{c}, x_{d}_{c}, sums_{r}_{d});
#end
#end
#end
        tile_now = 1u - tile_now;
#put stage(walk + WALK, tile_now)
#put load(walk + 2u * WALK)
        workgroupBarrier();
    }

#for d in DIM_BLOCKS
#for r in ROW_BLOCKS
    {
        let value = sums_{r}_{d};
        let to = (first_row + {SIDE * r}u) * (S_PITCH / 4u);
        let stride = S_PITCH / 4u;
        coopStoreT(value, &wg_s[to], stride);
    }
#end
    workgroupBarrier();
    for (var i = local; i < OWN * (SIDE / 4u); i += THREADS) {
        let row = i / (SIDE / 4u);
        let at = i % (SIDE / 4u);
        if first_own + row <= last_own {
            dq[(first_own + row) * VEC4S + {SIDE * d / 4}u + at + params.base_q / 4u] =
                vec4<f16>(wg_s[row * (S_PITCH / 4u) + at] * params.scale);
        }
    }
    workgroupBarrier();
#end
}
