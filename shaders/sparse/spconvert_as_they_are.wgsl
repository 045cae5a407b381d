// Source: entries in the same order.
fn source(row: u32, nth: u32) -> u32 { return ptrs[row] + nth; }
