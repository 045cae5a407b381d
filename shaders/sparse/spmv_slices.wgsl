// Slices of `slice` rows, each as wide as its longest row.
#import sparse/spmv_values
#import sparse/spmv_walk

const PADDED: bool = true;

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> slice_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;

// The sum of products of the row at a position of the order.
fn walk_slice(place: u32) -> Sum {
    let slice = place / params.slice;
    let first = min(slice_ptrs[slice], params.entries);
    let last = max(min(slice_ptrs[slice + 1u], params.entries), first);
    let width = (last - first) / params.slice;
    let ends = first + min(vec2<u32>(params.begin, params.end), vec2<u32>(width)) * params.slice;
    return walk(ends.x + place % params.slice, ends.y, params.slice);
}
