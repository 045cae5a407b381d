// Source: entry k of a row is in slot k; with LIST, entries beyond the last slot are in the COO part.
#if LIST
@group(0) @binding(6) var<storage, read> list_ptrs: array<u32>;
@group(0) @binding(7) var<storage, read> list_idxs: array<u32>;
@group(0) @binding(8) var<storage, read> list_values: array<Value>;

fn source(row: u32, nth: u32) -> u32 {
    let listed = list_ptrs[row + 1u] - list_ptrs[row];
    let placed = ptrs[row + 1u] - ptrs[row] - listed;
    if nth >= placed {
        return params.sources + list_ptrs[row] + (nth - placed);
    }
    return nth * params.rows + row;
}
#else
fn source(row: u32, nth: u32) -> u32 { return nth * params.rows + row; }
#endif
