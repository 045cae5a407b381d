// Jagged diagonals.
#import sparse/spmv_values

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> diagonal_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;

// The sum of products down the diagonals that reach a position of the order, four loads in flight.
fn walk_diagonals(place: u32) -> Sum {
    var sum = Sum();
    for (var k = params.begin; k < params.end; k += 4u) {
        // Diagonals beyond the last are empty.
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
        let loaded = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        let cols = select(vec4<u32>(params.cols), loaded, reached);
        sum += product4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        // Diagonal lengths never rise: later diagonals do not reach this row either.
        if !reached.w {
            break;
        }
    }
    return sum;
}
