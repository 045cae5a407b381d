// C = activate(alpha * op(A) op(B) + beta * C + bias), through tiles in workgroup memory (Kirk and Hwu,
// "Programming Massively Parallel Processors", tiled matrix multiplication).
// One invocation computes one element of C; a workgroup TILE_M x TILE_N of them. For each TILE_K of k it
// first loads a tile of op(A) and one of op(B) together, zeros beyond the edges, neighbours in memory by
// neighbouring invocations whether transposed or not. Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_epilogue

const TILE_K: u32 = 16u;
const WORKGROUP_SIZE: u32 = TILE_M * TILE_N;

#if TRANS_B
// B is stored to the tile along its columns: an odd pitch spreads a column over the banks.
const PITCH_B: u32 = TILE_N | 1u;
#else
const PITCH_B: u32 = TILE_N;
#endif

var<workgroup> wg_a: array<f32, TILE_M * TILE_K>;
var<workgroup> wg_b: array<f32, TILE_K * PITCH_B>;

// Where row `row` and column `i` of the tile of op(A) lie in wg_a: in the order of the loads.
fn at_a(row: u32, i: u32) -> u32 {
#if TRANS_A
    return i * TILE_M + row;
#else
    return row * TILE_K + i;
#endif
}

fn load_tile_a(first_row: u32, first_i: u32, local_index: u32) {
    for (var x = local_index; x < TILE_M * TILE_K; x += WORKGROUP_SIZE) {
#if TRANS_A
        let row = first_row + x % TILE_M;
        let i = first_i + x / TILE_M;
#else
        let row = first_row + x / TILE_K;
        let i = first_i + x % TILE_K;
#endif
        var value = 0.0;
        if row < params.m && i < params.end_k {
            value = load_a(row, i);
        }
        wg_a[x] = value;
    }
}

fn load_tile_b(first_i: u32, first_col: u32, local_index: u32) {
    for (var x = local_index; x < TILE_K * TILE_N; x += WORKGROUP_SIZE) {
#if TRANS_B
        let i = x % TILE_K;
        let col = x / TILE_K;
#else
        let i = x / TILE_N;
        let col = x % TILE_N;
#endif
        var value = 0.0;
        if first_i + i < params.end_k && first_col + col < params.n {
            value = load_b(first_i + i, first_col + col);
        }
        wg_b[i * PITCH_B + col] = value;
    }
}

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_tiled(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles {
        return;
    }
    let origin = tile_origin(index);
    let at = origin + local.yx;
    let inside = at.x < params.m && at.y < params.n;
    var sum = 0.0;
    if inside {
        sum = begin_sum(at.x, at.y);
    }
    for (var first_i = params.first_k; first_i < params.end_k; first_i += TILE_K) {
        load_tile_a(origin.x, first_i, local_index);
        load_tile_b(first_i, origin.y, local_index);
        workgroupBarrier();
        for (var i = 0u; i < TILE_K; i++) {
            sum += wg_a[at_a(local.y, i)] * wg_b[i * PITCH_B + local.x];
        }
        workgroupBarrier();
    }
    if inside {
        finish(at.x, at.y, sum);
    }
}
