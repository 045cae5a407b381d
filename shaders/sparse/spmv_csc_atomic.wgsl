// y += alpha A x, A in CSC, by atomics; for comparison. One thread walks a column, unless its element of x is 0.
#import sparse/spmv_params
#import sparse/spmv_values
#import sparse/spmv_atomic

@group(0) @binding(1) var<storage, read> col_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> row_idxs: array<u32>;

// The range of a column's entries in this dispatch.
fn column_range(col: u32) -> vec2<u32> {
    let first = min(col_ptrs[col], params.entries);
    let last = max(min(col_ptrs[col + 1u], params.entries), first);
    return first + min(vec2<u32>(last - first), vec2<u32>(params.begin, params.end));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csc_atomic(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let col = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if col >= params.cols {
        return;
    }
    let factor = x[col];
    if factor == 0.0 {
        return;
    }
    let range = column_range(col);
    for (var i = range.x; i < range.y; i++) {
        add(row_idxs[i], value(i) * factor);
    }
}
