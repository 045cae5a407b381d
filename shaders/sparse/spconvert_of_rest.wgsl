// Length: the entries of a row that do not fit its slots.
@group(0) @binding(2) var<storage, read> row_ptrs: array<u32>;

fn length(row: u32) -> u32 {
    let all = row_ptrs[row + 1u] - row_ptrs[row];
    return all - min(all, params.width);
}
