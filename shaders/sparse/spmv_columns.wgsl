// Compressed columns. One thread walks a column.
#import sparse/spmv_params
#import sparse/spmv_values

@group(0) @binding(1) var<storage, read> col_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;

// The range of a column's entries in this dispatch.
fn column_range(col: u32) -> vec2<u32> {
    let first = min(col_ptrs[col], params.entries);
    let last = max(min(col_ptrs[col + 1u], params.entries), first);
    return first + min(vec2<u32>(last - first), vec2<u32>(params.begin, params.end));
}
