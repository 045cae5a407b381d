// C = activate(alpha * op(A) op(B) + beta * C + bias) on cooperative matrices, with factors of f16 and sums of f32.
// LOW: each factor comes as a high and a low half (Ootomo and Yokota, 2022: FP32 from Tensor Cores).
// A workgroup computes TILE_M x TILE_N of C, TILE_K steps of k at a time, with tiles of A and B in workgroup
// memory. Each of its subgroups computes PART_M x PART_N elements of the tile.
// Requires f16 and cooperative matrices of f16 with sums of f32.

// A subgroup holds a cooperative matrix as a whole: no thread can reach one element of it or index a list of them. So
// each block of C is a variable of its own, c_ROW_COLUMN.
//
// These choices were measured on an H100. A thread moves pieces of PIECE elements to workgroup memory, by loads of
// unit_a and unit_b elements, which divide everything that the places of a factor are computed from: its leading
// dimension, its stride, and the extent that its rows run along. Rows in workgroup memory are PAD elements longer
// than the tile, which spreads blocks over the banks. The loop over k has no condition inside: the first step takes
// the remainder of k, and the loads after the last step read it again; with ONE_STEP there are none.
//
// Tensor cores truncate when they add to a long sum instead of rounding. With FRESH each step of k has sums of its
// own, and an addition of f32 adds them to those of C. With LOW the product is that of the high halves and the two
// mixed ones, always with sums of its own for each step.
//
// Blocks go straight to C with WHOLE_BLOCKS, where C is made of whole ones, and with DIRECT in tiles inside C. All
// others go through workgroup memory, where threads reach single elements.
#import dense/gemm_order
#import dense/coop_blocks
#import dense/gemm_end_c as end
#if LOW
#import dense/gemm_power
#endif
enable f16;
enable wgpu_cooperative_matrix;

// Elements of a load from storage.
const unit_a: u32 = 4u;
const unit_b: u32 = 4u;
// A factor as it is stored: if its rows run along k, and the rows of a tile and their elements.
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

// Elements from one row to the next in workgroup memory, and the number of loads of a thread for a tile; the low
// halves, if there are any, take as many.
#for x in a, b
const pitch_{x}: u32 = across_{x} + PAD;
const loads_{x}: u32 = lines_{x} * across_{x} / PIECE / INVOCATIONS;
#if LOW
const loads_{x}_low: u32 = loads_{x};
#else
const loads_{x}_low: u32 = 0u;
#endif
#end

// The elements of the factors in storage, and what one load reads.
alias Element_a = f16;
alias Element_b = f16;
#for x in a, b
#if unit_{x} == 4
alias Unit_{x} = vec4<Element_{x}>;
#endif
#if unit_{x} == 2
alias Unit_{x} = vec2<Element_{x}>;
#endif
#if unit_{x} == 1
alias Unit_{x} = Element_{x};
#endif
#end
@group(0) @binding(1) var<storage, read> a: array<Unit_a>;
@group(0) @binding(2) var<storage, read> b: array<Unit_b>;
#if LOW
@group(0) @binding(3) var<storage, read> a_low: array<Unit_a>;
@group(0) @binding(4) var<storage, read> b_low: array<Unit_b>;
// Magnitudes of the rows of A, then of the columns of B.
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

#if !WHOLE_BLOCKS
// A block for each subgroup.
var<workgroup> wg_end: array<f32, TEAMS_M * TEAMS_N * BLOCK_SIDE * BLOCK_SIDE>;

// The block of C at `row` and `col`, whose sums of this slice of k begin at `begin`.
fn end_block(slice: u32, row: u32, col: u32, begin: u32, lane: u32) {
    for (var x = lane; x < BLOCK_SIDE * BLOCK_SIDE / 4u; x += LANES) {
        let to = vec2(row + x / (BLOCK_SIDE / 4u), col + x % (BLOCK_SIDE / 4u) * 4u);
        let at = begin + 4u * x;
        let sums = vec4(wg_end[at], wg_end[at + 1u], wg_end[at + 2u], wg_end[at + 3u]);
#if LOW
        end_four(slice, to.x, to.y, begin_four(to.x, to.y) + restored(to.x, to.y, sums));
#else
        end_four(slice, to.x, to.y, begin_four(to.x, to.y) + sums);
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
    // The same as workgroup_index, written out: naga takes the result of a function to differ between threads, and an
    // early end of some of them to harm the others' matrices.
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

    // For each piece: its row of the tile and its first element there, the place it is read from, and the place it is
    // stored to. Places do not change along k. Rows and columns beyond the matrix read its last ones; their results
    // are not stored. Where rows run along k, the first step reads nothing beyond the remainder of k.
#block places(x, axis, lines)
    let ld_{x} = params.ld{x} / unit_{x};
    let end_{x} = (params.{lines} - 1u) / unit_{x};
#for j in loads_{x}
    let {x}_line_{j} = (local + {j}u * INVOCATIONS) / (across_{x} / PIECE);
    let {x}_at_{j} = (local + {j}u * INVOCATIONS) % (across_{x} / PIECE) * PIECE;
#if along_k_{x}
    let {x}_i_{j} = {x}_at_{j};
    let {x}_row_{j} = min(part.origin.{axis} + {x}_line_{j}, params.{lines} - 1u) * ld_{x};
    let {x}_place_{j} = {x}_row_{j} + {x}_at_{j} / unit_{x};
#else
    let {x}_i_{j} = {x}_line_{j};
    let {x}_row_{j} = min((part.origin.{axis} + {x}_at_{j}) / unit_{x}, end_{x});
    let {x}_room_{j} = end_{x} - {x}_row_{j};
    let {x}_place_{j} = {x}_row_{j} + {x}_line_{j} * ld_{x};
#endif
    let {x}_to_{j} = ({x}_line_{j} * pitch_{x} + {x}_at_{j}) / WIDTH;
#for low in , _low
#if loads_{x}{low} > 0
#for s in PIECE / unit_{x}
    var {x}{low}_next_{j}_{s}: Unit_{x};
#end
#endif
#end
#end
    // The beginning of the tile, the distance to the next, and the last one.
#if along_k_{x}
    var from_{x} = (base_{x} + part.first_k) / unit_{x};
    let step_{x} = TILE_K / unit_{x};
    let last_{x} = (base_{x} + max(part.end_k, TILE_K) - TILE_K) / unit_{x};
#else
    var from_{x} = base_{x} / unit_{x} + part.first_k * ld_{x};
    let step_{x} = TILE_K * ld_{x};
    let last_{x} = base_{x} / unit_{x} + (max(part.end_k, TILE_K) - TILE_K) * ld_{x};
#endif
#end
#put places(a, x, m)
#put places(b, y, n)

    // The first step takes the remainder of k, so that whole steps are left. The rest of it is zeros in both
    // factors: 0 times infinity is NaN.
#for x in a, b
#for low in , _low
#for j in loads_{x}{low}
#for s in PIECE / unit_{x}
#if along_k_{x}
    {x}{low}_next_{j}_{s} = {x}{low}[from_{x} + {x}_row_{j} + min({x}_at_{j} / unit_{x} + {s}u, head / unit_{x} - 1u)];
    if {x}_i_{j} + {s}u * unit_{x} >= head {
        {x}{low}_next_{j}_{s} = Unit_{x}();
    }
#else
    {x}{low}_next_{j}_{s} =
        {x}{low}[from_{x} + min({x}_line_{j}, head - 1u) * ld_{x} + {x}_row_{j} + min({s}u, {x}_room_{j})];
    if {x}_i_{j} >= head {
        {x}{low}_next_{j}_{s} = Unit_{x}();
    }
#endif
#end
#end
#end
#end
#if !ONE_STEP
#for x in a, b
#if along_k_{x}
    from_{x} = min(from_{x} + head / unit_{x}, last_{x});
#else
    from_{x} = min(from_{x} + head * ld_{x}, last_{x});
#endif
#end
#endif
    // Stores the loads to workgroup memory, B first, which is larger (3 % on an H100).
#block store_loads()
#for x in b, a
#for low in , _low
#for j in loads_{x}{low}
#for q in PIECE / 4
    {
#if unit_{x} == 4
        let four = vec4<f16>({x}{low}_next_{j}_{q});
#endif
#if unit_{x} == 2
        let four = vec4<f16>(vec4<Element_{x}>({x}{low}_next_{j}_{2 * q}, {x}{low}_next_{j}_{2 * q + 1}));
#endif
#if unit_{x} == 1
        let four = vec4<f16>(vec4<Element_{x}>(
            {x}{low}_next_{j}_{4 * q},
            {x}{low}_next_{j}_{4 * q + 1},
            {x}{low}_next_{j}_{4 * q + 2},
            {x}{low}_next_{j}_{4 * q + 3},
        ));
#endif
#if WIDTH == 4
        wg_{x}{low}[{x}_to_{j} + {q}u] = four;
#else
#for e in 4
        wg_{x}{low}[{x}_to_{j} + {4 * q + e}u] = four[{e}u];
#end
#endif
    }
#end
#end
#end
#end
#end
#put store_loads()
    workgroupBarrier();

    // Each step loads the next tiles from storage while it multiplies those in workgroup memory.
#if ONE_STEP
    {
#else
    for (var i = part.first_k; i < part.end_k; i += TILE_K) {
#for x in a, b
#for low in , _low
#for j in loads_{x}{low}
#for s in PIECE / unit_{x}
#if along_k_{x}
        {x}{low}_next_{j}_{s} = {x}{low}[from_{x} + {x}_place_{j} + {s}u];
#else
        {x}{low}_next_{j}_{s} = {x}{low}[from_{x} + {x}_place_{j} + min({s}u, {x}_room_{j})];
#endif
#end
#end
#end
#end
#for x in a, b
        from_{x} = min(from_{x} + step_{x}, last_{x});
#end
#endif

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
            // With halves, small products come first.
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

#if !ONE_STEP
        workgroupBarrier();
#put store_loads()
        workgroupBarrier();
#endif
    }

    // naga needs names for the index, stride and value of a stored block.
#block store_block(r, q)
        let value = c_{r}_{q};
        let row = part.origin.x + team_row + {r * BLOCK_SIDE}u;
        let col = part.origin.y + team_col + {q * BLOCK_SIDE}u;
#if SPLIT
        let to = (part.slice * params.m + row) * params.n + col;
        let stride = params.n;
        coopStoreT(value, &partial[to], stride);
#else
        let to = base_c + row * params.ldc + col;
        let stride = params.ldc;
        coopStoreT(value, &c[to], stride);
#endif
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
    // Blocks go to C one after the other, through one block of workgroup memory. The barriers are the workgroup's:
    // subgroup barriers are a feature of their own. A compiler cannot see the end of the loop: unrolled, it
    // compiles the epilogue for each block, which takes a card's driver a second.
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
        end_block(part.slice, row, col, begin, lane);
    }
#if DIRECT
    }
#endif
#endif
}
