// y = alpha A x + beta y, A by jagged diagonals: one invocation sums the row at a place of the order, down the
// diagonals that reach it; neighbouring invocations load neighbouring entries.
#import sparse/spmv_params
#import sparse/spmv_values
#import sparse/spmv_vector
#import sparse/spmv_result

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> diagonal_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_jds(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if place >= params.rows {
        return;
    }
    var sums = vec4<f32>();
    // Four diagonals at once; those behind the last are empty.
    for (var k = params.begin; k < params.end; k += 4u) {
        let ks = min(vec4<u32>(k, k + 1u, k + 2u, k + 3u), vec4<u32>(params.end));
        let last = diagonal_ptrs[min(k + 4u, params.end)];
        let starts = vec4<u32>(
            diagonal_ptrs[ks.x],
            diagonal_ptrs[ks.y],
            diagonal_ptrs[ks.z],
            diagonal_ptrs[ks.w],
        );
        let places = starts + place;
        let reached = places < min(vec4<u32>(starts.yzw, last), vec4<u32>(params.entries));
        let at = min(places, vec4<u32>(params.entries - 1u));
        let cols = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        let factors = vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w));
        sums += product4(factors, select(vec4<u32>(params.cols), cols, reached));
        // Diagonals grow no longer: the rows that one does not reach, none behind it does.
        if !reached.w {
            break;
        }
    }
    put(row_order[place], (sums.x + sums.y) + (sums.z + sums.w));
}
