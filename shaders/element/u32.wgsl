// Elements of type u32: one in a word.
const PACK: u32 = 1u;
alias T = u32;

fn decode(word: u32, i: u32) -> T { return word; }
fn encode(first: T, second: T) -> u32 { return first; }
fn is_nan(x: T) -> bool { return false; }
// WGSL's rule, stated here because the kernels run without runtime checks: x / 0 = x.
fn divide(x: T, y: T) -> T { return x / select(y, 1u, y == 0u); }
