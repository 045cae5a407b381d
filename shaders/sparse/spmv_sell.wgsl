// y = alpha A x + beta y, A by slices of `slice` rows as wide as their longest row (SELL-C-sigma, M. Kreutzer
// et al. 2014): one invocation sums a row, and neighbouring invocations load neighbouring places.
#import sparse/spmv_params
#import sparse/spmv_values
#import sparse/spmv_vector
#import sparse/spmv_walk
#import sparse/spmv_result

const PADDED: bool = true;

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> slice_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;

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
    let ends = first + min(vec2<u32>(params.begin, params.end), vec2<u32>(width)) * params.slice;
    put(row_order[place], walk(ends.x + place % params.slice, ends.y, params.slice));
}
