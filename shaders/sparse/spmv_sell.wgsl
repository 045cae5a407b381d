// y = alpha A x + beta y, A by slices of `slice` rows as wide as their longest row (SELL-C-sigma, M. Kreutzer
// et al. 2014): one invocation sums a row, and neighbouring invocations load neighbouring places.
#import sparse/spmv_params
#import sparse/spmv_vector
#import sparse/spmv_result

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> slice_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_sell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    // There are as many places as slices have rows, some of them behind the last row.
    if place >= params.rows {
        return;
    }
    let slice = place / params.slice;
    let first = min(slice_ptrs[slice], params.entries);
    let last = max(min(slice_ptrs[slice + 1u], params.entries), first);
    let width = (last - first) / params.slice;
    var sum = 0.0;
    for (var k = min(params.begin, width); k < min(params.end, width); k++) {
        let at = first + k * params.slice + place % params.slice;
        let col = col_idxs[at];
        if col >= params.cols {
            break;
        }
        sum += values[at] * x[col];
    }
    put(row_order[place], sum);
}
