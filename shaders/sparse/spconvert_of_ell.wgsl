// Padding is behind the entries of a row; with LIST, further entries of it are listed.
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
