// Source: a slice has the first entries of its rows side by side, then the second ones.
@group(0) @binding(6) var<storage, read> row_order: array<u32>;
@group(0) @binding(7) var<storage, read> row_ptrs: array<u32>;

fn source(slice: u32, nth: u32) -> u32 {
    let row = row_order[slice * params.width + nth % params.width];
    if row >= params.rows {
        return PADDING;
    }
    let at = row_ptrs[row] + nth / params.width;
    return select(PADDING, at, at < row_ptrs[row + 1u]);
}
