// Source: diagonal k has entry k of the rows in order.
@group(0) @binding(6) var<storage, read> row_order: array<u32>;
@group(0) @binding(7) var<storage, read> row_ptrs: array<u32>;

fn source(diagonal: u32, nth: u32) -> u32 {
    let row = row_order[min(nth, params.rows - 1u)];
    return row_ptrs[min(row, params.rows - 1u)] + diagonal;
}
