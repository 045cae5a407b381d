// Tiles of the factors in workgroup memory, loaded by the WORKGROUP_SIZE threads of a workgroup together:
// zeros beyond the edges, neighbours in memory by neighbouring threads whether transposed or not.
#import dense/gemm_factors
#import dense/gemm_epilogue as epilogue

const TILE_K: u32 = 16u;

#if TRANS_B
// B is stored to the tile along its columns: an odd pitch spreads a column over the banks.
const PITCH_B: u32 = TILE_N | 1u;
#else
const PITCH_B: u32 = TILE_N;
#endif

var<workgroup> wg_a: array<F, TILE_M * TILE_K>;
var<workgroup> wg_b: array<F, TILE_K * PITCH_B>;

// The place in wg_a of row `row` and column `i` of the tile of op(A): in the order of the loads.
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
        var value = F();
        if row < params.m && i < params.end_k { value = load_a(row, i); }
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
        var value = F();
        if first_i + i < params.end_k && first_col + col < params.n {
            value = load_b(first_i + i, first_col + col);
        }
        wg_b[i * PITCH_B + col] = value;
    }
}
