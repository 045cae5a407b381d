// Elements of type i32: one in a word.
const PACK: u32 = 1u;
alias T = i32;

fn decode(word: u32, i: u32) -> T { return bitcast<T>(word); }
fn encode(first: T, second: T) -> u32 { return bitcast<u32>(first); }
fn is_nan(x: T) -> bool { return false; }
// WGSL's rule, stated here because the kernels run without runtime checks: x / 0 = x, and the one
// quotient that overflows wraps to x too.
fn divide(x: T, y: T) -> T {
    let no_quotient = y == 0 || (x == -2147483648 && y == -1);
    return x / select(y, 1, no_quotient);
}
