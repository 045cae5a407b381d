// Length: the slots before the first padding; with LIST, plus the entries in the COO part.
#import sparse/spconvert_first_padding

@group(0) @binding(2) var<storage, read> idxs: array<u32>;
#if LIST
@group(0) @binding(3) var<storage, read> list_ptrs: array<u32>;
#endif

fn length(row: u32) -> u32 {
    let placed = before_padding(row, params.rows, params.width);
#if LIST
    return placed + (list_ptrs[row + 1u] - list_ptrs[row]);
#else
    return placed;
#endif
}
