// Source: entry k of the row at position `place` is number `place` of diagonal k.
@group(0) @binding(6) var<storage, read> places: array<u32>;
@group(0) @binding(7) var<storage, read> diagonal_ptrs: array<u32>;

fn source(row: u32, nth: u32) -> u32 { return diagonal_ptrs[min(nth, params.longest)] + places[row]; }
