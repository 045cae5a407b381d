// Source: the entries after the first `width` of each row.
@group(0) @binding(7) var<storage, read> row_ptrs: array<u32>;

fn source(row: u32, nth: u32) -> u32 { return row_ptrs[row] + params.width + nth; }
