// The index of each entry, for a sort by row; with COLUMNS (CSC) also its column, by binary search. One thread per
// entry.
#import sparse/spmv_params

@group(0) @binding(1) var<storage, read_write> numbers: array<u32>;
#if COLUMNS
@group(0) @binding(2) var<storage, read_write> col_idxs: array<u32>;
@group(0) @binding(3) var<storage, read> col_ptrs: array<u32>;

// The last column that starts at or before an entry.
fn column_of(entry: u32) -> u32 {
    var low = 0u;
    var high = params.cols - 1u;
    while low < high {
        let middle = low + (high - low + 1u) / 2u;
        if col_ptrs[middle] <= entry {
            low = middle;
        } else {
            high = middle - 1u;
        }
    }
    return low;
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn by_row_number(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.entries {
        return;
    }
    numbers[at] = at;
#if COLUMNS
    col_idxs[at] = column_of(at);
#endif
}
