// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers and A read straight into one: the
// baseline of register tiling, whose loads of A do not coalesce (after Volkov and Demmel, 2008).
// One thread computes a row of sixteen elements of C; a workgroup TILE_M rows of them, with a tile of TILE_K x 16
// of op(B) in workgroup memory. Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_end_c

const TILE_K: u32 = 4u;

var<workgroup> wg_b: array<f32, TILE_K * TILE_N>;

fn columns_of_b(i: u32, group: u32) -> vec4<f32> {
    let x = i * TILE_N + 4u * group;
    return vec4(wg_b[x], wg_b[x + 1u], wg_b[x + 2u], wg_b[x + 3u]);
}

@compute @workgroup_size(TILE_M)
fn gemm_register_direct(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local_index: u32,
) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let origin = tile_origin(index);
    let row = origin.x + local_index;
    // A row beyond the last reads the last; its results are not stored.
    let row_of_a = min(row, params.m - 1u);
    var sums_0 = begin_four(row, origin.y);
    var sums_1 = begin_four(row, origin.y + 4u);
    var sums_2 = begin_four(row, origin.y + 8u);
    var sums_3 = begin_four(row, origin.y + 12u);
    for (var first_i = params.first_k; first_i < params.end_k; first_i += TILE_K) {
        let steps = min(TILE_K, params.end_k - first_i);
        for (var x = local_index; x < TILE_K * TILE_N; x += TILE_M) {
#if TRANS_B
            let i = x % TILE_K;
            let column = x / TILE_K;
#else
            let i = x / TILE_N;
            let column = x % TILE_N;
#endif
            if i < steps {
                wg_b[i * TILE_N + column] = load_b(first_i + i, min(origin.y + column, params.n - 1u));
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < steps; i++) {
            let x = load_a(row_of_a, first_i + i);
            sums_0 += x * columns_of_b(i, 0u);
            sums_1 += x * columns_of_b(i, 1u);
            sums_2 += x * columns_of_b(i, 2u);
            sums_3 += x * columns_of_b(i, 3u);
        }
        workgroupBarrier();
    }
    end_four(0u, row, origin.y, sums_0);
    end_four(0u, row, origin.y + 4u, sums_1);
    end_four(0u, row, origin.y + 8u, sums_2);
    end_four(0u, row, origin.y + 12u, sums_3);
}
