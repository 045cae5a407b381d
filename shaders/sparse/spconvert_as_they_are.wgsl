// Entries keep their order; only their rows are written out.
fn source(row: u32, nth: u32) -> u32 { return ptrs[row] + nth; }
