// C = activate(alpha * op(A) op(B) + beta * C + bias) by cooperative matrices, with factors of f16 and sums of f32.
//
// A workgroup computes a tile of C of TILE_M x TILE_N, TILE_K steps of k at a time. It stages tiles of A and B through
// workgroup memory, as they are stored. Each of its subgroups computes PART_M x PART_N elements of the tile. A subgroup
// holds a cooperative matrix as a whole, and nobody can reach an element of it or index a list of them. So each block of
// C is a variable of its own, c_ROW_COLUMN.
//
// These choices were measured on an H100. Storage is read by 16 bytes, which become halves on their way to workgroup
// memory. Rows there are PAD elements longer than the tile, which spreads blocks over the banks. The loop over k has no
// condition inside: the first step takes what is left over of k, and the loads behind the last step read it again.
//
// Tensor cores cut off what they add to a long sum instead of rounding it. With FRESH each step of k has sums of its own,
// and an addition of f32 adds them to those of C.
//
// With LOW each factor comes as two matrices, the high and the low half of each scaled element. Their product is that of
// the high halves and the two mixed ones, always with sums of its own for each step: Ootomo and Yokota, Recovering single
// precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance, 2022.
//
// Blocks go to C as they are with WHOLE_BLOCKS, where C is made of whole ones, and with DIRECT in tiles inside of C. All
// others go through workgroup memory, where an element can be reached.
// Requires f16 and cooperative matrices of f16 with sums of f32.
#import dense/gemm_order
#import dense/gemm_end_c
#if LOW
#import dense/gemm_power
#endif
enable f16;
enable wgpu_cooperative_matrix;

// Steps of k in a tile.
const TILE_K: u32 = 16u;
// Rows and columns of C that one subgroup computes.
const PART_M: u32 = 16u;
const PART_N: u32 = 16u;
// Rows and columns of a cooperative matrix: 16 or 8.
const BLOCK_SIDE: u32 = 16u;
// Invocations of a subgroup.
const LANES: u32 = 32u;

// Elements of a load from storage, and elements that a row in workgroup memory is longer than the tile.
const PIECE: u32 = 8u;
const PAD: u32 = 8u;

// Subgroups of a workgroup along the rows and the columns of the tile, and the blocks of each.
const TEAMS_M: u32 = TILE_M / PART_M;
const TEAMS_N: u32 = TILE_N / PART_N;
const INVOCATIONS: u32 = TEAMS_M * TEAMS_N * LANES;
const BLOCKS_M: u32 = PART_M / BLOCK_SIDE;
const BLOCKS_N: u32 = PART_N / BLOCK_SIDE;
const BLOCKS: u32 = BLOCKS_M * BLOCKS_N;
// Blocks of a tile along k.
const STEPS: u32 = TILE_K / BLOCK_SIDE;

// Elements of what workgroup memory is made of. Metal, where a side is 8, loads no matrix from vectors.
#if BLOCK_SIDE == 16
const WIDTH: u32 = 4u;
#else
const WIDTH: u32 = 1u;
#endif

// A factor as it is stored: whether its rows run along k, and the rows of a tile and their elements.
#if TRANS_A
const along_k_a: bool = false;
const lines_a: u32 = TILE_K;
const across_a: u32 = TILE_M;
#else
const along_k_a: bool = true;
const lines_a: u32 = TILE_M;
const across_a: u32 = TILE_K;
#endif
#if TRANS_B
const along_k_b: bool = true;
const lines_b: u32 = TILE_N;
const across_b: u32 = TILE_K;
#else
const along_k_b: bool = false;
const lines_b: u32 = TILE_K;
const across_b: u32 = TILE_N;
#endif

// Elements from one row to the next in workgroup memory, and how often an invocation loads for a tile: as often for the
// low halves, where there are any.
#for x in a, b
const pitch_{x}: u32 = across_{x} + PAD;
const loads_{x}: u32 = lines_{x} * across_{x} / PIECE / INVOCATIONS;
#if LOW
const loads_{x}_low: u32 = loads_{x};
#else
const loads_{x}_low: u32 = 0u;
#endif
#end

@group(0) @binding(1) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<u32>>;
#if LOW
@group(0) @binding(3) var<storage, read> a_low: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> b_low: array<vec4<u32>>;
// Of the rows of A, then of the columns of B.
@group(0) @binding(5) var<storage, read> magnitudes: array<u32>;
#endif

#for low in , _low
#for x in a, b
#if loads_{x}{low} > 0
#if WIDTH == 4
var<workgroup> wg_{x}{low}: array<vec4<f16>, lines_{x} * pitch_{x} / 4u>;
#else
var<workgroup> wg_{x}{low}: array<f16, lines_{x} * pitch_{x}>;
#endif
#endif
#end
#end

// The driver makes nothing of the way through f32; there is no cast that does without it.
fn halves(words: vec2<u32>) -> vec4<f16> {
    return vec4<f16>(vec2<f16>(unpack2x16float(words.x)), vec2<f16>(unpack2x16float(words.y)));
}

#if !WHOLE_BLOCKS
// A block for each subgroup.
var<workgroup> wg_end: array<f32, TEAMS_M * TEAMS_N * BLOCK_SIDE * BLOCK_SIDE>;

// The block of C at `row` and `col`, whose sums lie from `begin` on.
fn end_block(row: u32, col: u32, begin: u32, lane: u32) {
    for (var x = lane; x < BLOCK_SIDE * BLOCK_SIDE / 4u; x += LANES) {
        let to = vec2(row + x / (BLOCK_SIDE / 4u), col + x % (BLOCK_SIDE / 4u) * 4u);
        let at = begin + 4u * x;
        let sums = vec4(wg_end[at], wg_end[at + 1u], wg_end[at + 2u], wg_end[at + 3u]);
#if LOW
        end_four(0u, to.x, to.y, begin_four(to.x, to.y) + restored(to.x, to.y, sums));
#else
        end_four(0u, to.x, to.y, begin_four(to.x, to.y) + sums);
#endif
    }
}
#endif

#if LOW
// Four sums of a row without the powers of two that its factors were scaled by.
fn restored(row: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {
    let power = power_of(magnitudes[min(row, params.m - 1u)]);
    let cols = params.m + min(vec4(col) + vec4(0u, 1u, 2u, 3u), vec4(params.n - 1u));
    return vec4(
        times_power(sums.x, -power - power_of(magnitudes[cols.x])),
        times_power(sums.y, -power - power_of(magnitudes[cols.y])),
        times_power(sums.z, -power - power_of(magnitudes[cols.z])),
        times_power(sums.w, -power - power_of(magnitudes[cols.w])),
    );
}
#endif

@compute @workgroup_size(INVOCATIONS)
fn gemm_coop(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // As workgroup_index has it, written out: naga holds what a function returns to differ from invocation to
    // invocation, and the end of some of them to be in the way of the others' matrices.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.tiles {
        return;
    }
    let part = part_of(index);
    let team = local / LANES;
    let team_row = team / TEAMS_N * PART_M;
    let team_col = team % TEAMS_N * PART_N;
#for r in BLOCKS_M
#for q in BLOCKS_N
    var c_{r}_{q} = coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f32, C>();
#end
#end
    let over = (part.end_k - part.first_k) % TILE_K;
    let head = select(over, TILE_K, over == 0u);

    // For each load: its row of the tile and the first of its elements there, its first step of k, and where it reads
    // and stores, which does not change along k. Rows and columns beyond the matrix read its last ones, and what comes
    // of them is not stored.
#block places(x, axis, lines)
#for j in loads_{x}
    let {x}_line_{j} = (local + {j}u * INVOCATIONS) / (across_{x} / PIECE);
    let {x}_at_{j} = (local + {j}u * INVOCATIONS) % (across_{x} / PIECE) * PIECE;
#if along_k_{x}
    let {x}_i_{j} = {x}_at_{j};
    let {x}_place_{j} = min(part.origin.{axis} + {x}_line_{j}, params.{lines} - 1u) * (params.ld{x} / PIECE) + {x}_at_{j} / PIECE;
#else
    let {x}_i_{j} = {x}_line_{j};
    let {x}_place_{j} = {x}_line_{j} * (params.ld{x} / PIECE) + min((part.origin.{axis} + {x}_at_{j}) / PIECE, (params.{lines} - 1u) / PIECE);
#endif
    let {x}_to_{j} = ({x}_line_{j} * pitch_{x} + {x}_at_{j}) / WIDTH;
    var {x}_next_{j}: vec4<u32>;
#if LOW
    var {x}_low_next_{j}: vec4<u32>;
#endif
#end
    // Where the tile begins, how far the next one is, and the last that there is.
#if along_k_{x}
    var from_{x} = part.first_k / PIECE;
    let step_{x} = TILE_K / PIECE;
    let last_{x} = (part.end_k - TILE_K) / PIECE;
#else
    var from_{x} = part.first_k * (params.ld{x} / PIECE);
    let step_{x} = TILE_K * (params.ld{x} / PIECE);
    let last_{x} = (part.end_k - TILE_K) * (params.ld{x} / PIECE);
#endif
#end
#put places(a, x, m)
#put places(b, y, n)

    // The first step: as many of k as leave whole ones. The others are zeros in both factors: 0 times infinity is no
    // number.
#for x in a, b
#for low in , _low
#for j in loads_{x}{low}
    {x}{low}_next_{j} = select({x}{low}[from_{x} + {x}_place_{j}], vec4<u32>(), {x}_i_{j} >= head);
#end
#end
#end
#for x in a, b
#if along_k_{x}
    from_{x} = min(from_{x} + head / PIECE, last_{x});
#else
    from_{x} = min(from_{x} + head * (params.ld{x} / PIECE), last_{x});
#endif
#end
    // What was loaded goes to workgroup memory: B, which is more, first (3 % on an H100).
#block store_loads()
#for x in b, a
#for low in , _low
#for j in loads_{x}{low}
#if WIDTH == 4
    wg_{x}{low}[{x}_to_{j}] = halves({x}{low}_next_{j}.xy);
    wg_{x}{low}[{x}_to_{j} + 1u] = halves({x}{low}_next_{j}.zw);
#else
    {
        let four = halves({x}{low}_next_{j}.xy);
#for e in 4
        wg_{x}{low}[{x}_to_{j} + {e}u] = four[{e}u];
#end
    }
    {
        let four = halves({x}{low}_next_{j}.zw);
#for e in 4
        wg_{x}{low}[{x}_to_{j} + {4 + e}u] = four[{e}u];
#end
    }
#endif
#end
#end
#end
#end
#put store_loads()
    workgroupBarrier();

    // Each step loads the next tiles from storage while it multiplies those in workgroup memory.
    for (var i = part.first_k; i < part.end_k; i += TILE_K) {
#for x in a, b
#for low in , _low
#for j in loads_{x}{low}
        {x}{low}_next_{j} = {x}{low}[from_{x} + {x}_place_{j}];
#end
#end
#end
#for x in a, b
        from_{x} = min(from_{x} + step_{x}, last_{x});
#end

        // A row of the tile is one of op(A) where it runs along k, and a column of op(B); or the other way round.
#if FRESH || LOW
        // Sums of this step alone, a column of blocks at a time. Blocks of A stay in registers for all.
        {
#for s in STEPS
#for r in BLOCKS_M
#for low in , _low
#if loads_a{low} > 0
#if along_k_a
            let at_a{low}_{r}_{s} = ((team_row + {r * BLOCK_SIDE}u) * pitch_a + {s * BLOCK_SIDE}u) / WIDTH;
            let a{low}_{r}_{s} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a{low}[at_a{low}_{r}_{s}], pitch_a / WIDTH);
#else
            let at_a{low}_{r}_{s} = ({s * BLOCK_SIDE}u * pitch_a + team_row + {r * BLOCK_SIDE}u) / WIDTH;
            let a{low}_{r}_{s} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a{low}[at_a{low}_{r}_{s}], pitch_a / WIDTH);
#endif
#endif
#end
#end
#end
            // Where there are halves, small products come first.
#for q in BLOCKS_N
            {
#for r in BLOCKS_M
                var p_{r} = coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f32, C>();
#end
#for s in STEPS
#for low in , _low
#if loads_b{low} > 0
#if along_k_b
                let at_b{low}_{s} = ((team_col + {q * BLOCK_SIDE}u) * pitch_b + {s * BLOCK_SIDE}u) / WIDTH;
                let b{low}_{s} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b{low}[at_b{low}_{s}], pitch_b / WIDTH);
#else
                let at_b{low}_{s} = ({s * BLOCK_SIDE}u * pitch_b + team_col + {q * BLOCK_SIDE}u) / WIDTH;
                let b{low}_{s} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b{low}[at_b{low}_{s}], pitch_b / WIDTH);
#endif
#endif
#end
#if LOW
#for r in BLOCKS_M
                p_{r} = coopMultiplyAdd(a_low_{r}_{s}, b_{s}, p_{r});
#end
#for r in BLOCKS_M
                p_{r} = coopMultiplyAdd(a_{r}_{s}, b_low_{s}, p_{r});
#end
#endif
#for r in BLOCKS_M
                p_{r} = coopMultiplyAdd(a_{r}_{s}, b_{s}, p_{r});
#end
#end
#for r in BLOCKS_M
                c_{r}_{q} = c_{r}_{q} + p_{r};
#end
            }
#end
        }
#else
#for s in STEPS
        {
#for r in BLOCKS_M
#if along_k_a
            let at_a_{r} = ((team_row + {r * BLOCK_SIDE}u) * pitch_a + {s * BLOCK_SIDE}u) / WIDTH;
            let a_{r} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a[at_a_{r}], pitch_a / WIDTH);
#else
            let at_a_{r} = ({s * BLOCK_SIDE}u * pitch_a + team_row + {r * BLOCK_SIDE}u) / WIDTH;
            let a_{r} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a[at_a_{r}], pitch_a / WIDTH);
#endif
#end
#for q in BLOCKS_N
#if along_k_b
            let at_b_{q} = ((team_col + {q * BLOCK_SIDE}u) * pitch_b + {s * BLOCK_SIDE}u) / WIDTH;
            let b_{q} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b[at_b_{q}], pitch_b / WIDTH);
#else
            let at_b_{q} = ({s * BLOCK_SIDE}u * pitch_b + team_col + {q * BLOCK_SIDE}u) / WIDTH;
            let b_{q} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b[at_b_{q}], pitch_b / WIDTH);
#endif
#for r in BLOCKS_M
            c_{r}_{q} = coopMultiplyAdd(a_{r}, b_{q}, c_{r}_{q});
#end
#end
        }
#end
#endif

        workgroupBarrier();
#put store_loads()
        workgroupBarrier();
    }

    // naga wants the index, stride and value of a block that is stored bound to names.
#block store_block(r, q)
        let value = c_{r}_{q};
        let to = base_c + (part.origin.x + team_row + {r * BLOCK_SIDE}u) * params.ldc + part.origin.y + team_col + {q * BLOCK_SIDE}u;
        let stride = params.ldc;
        coopStoreT(value, &c[to], stride);
#end
#if WHOLE_BLOCKS
#for r in BLOCKS_M
#for q in BLOCKS_N
    if part.origin.x + team_row + {r * BLOCK_SIDE}u < params.m && part.origin.y + team_col + {q * BLOCK_SIDE}u < params.n {
#put store_block({r}, {q})
    }
#end
#end
#else
#if DIRECT
    if part.origin.x + TILE_M <= params.m && part.origin.y + TILE_N <= params.n {
#for r in BLOCKS_M
#for q in BLOCKS_N
        {
#put store_block({r}, {q})
        }
#end
#end
    } else {
#endif
    // Blocks go to C one after the other, through one of workgroup memory. Barriers are those of the workgroup: those of
    // a subgroup are a feature of their own. The loop's end is one that a compiler cannot see: unrolled, the end of an
    // element is compiled for each block, which takes a card's driver a second.
    let begin = team * (BLOCK_SIDE * BLOCK_SIDE);
    let lane = local % LANES;
    let stride = BLOCK_SIDE;
    let blocks = min(BLOCKS, params.tiles * BLOCKS);
    for (var block = 0u; block < blocks; block++) {
        if block > 0u {
            workgroupBarrier();
        }
        switch block {
#for n in BLOCKS
#if n + 1 < BLOCKS
            case {n}u: {
#else
            default: {
#endif
                let value = c_{n / BLOCKS_N}_{n % BLOCKS_N};
                coopStoreT(value, &wg_end[begin], stride);
            }
#end
        }
        workgroupBarrier();
        let row = part.origin.x + team_row + block / BLOCKS_N * BLOCK_SIDE;
        let col = part.origin.y + team_col + block % BLOCKS_N * BLOCK_SIDE;
        end_block(row, col, begin, lane);
    }
#if DIRECT
    }
#endif
#endif
}
