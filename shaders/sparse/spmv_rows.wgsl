// Compressed rows.
#import sparse/spmv_values

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read> col_idxs: array<u32>;

// The range of a row's entries in this dispatch.
fn row_range(row: u32) -> vec2<u32> {
    let first = min(row_ptrs[row], params.entries);
    let last = max(min(row_ptrs[row + 1u], params.entries), first);
    return first + min(vec2<u32>(last - first), vec2<u32>(params.begin, params.end));
}
