// Elements of type f32: one in a word.
const PACK: u32 = 1u;
alias T = f32;

fn decode(word: u32, i: u32) -> T { return bitcast<T>(word); }
fn encode(first: T, second: T) -> u32 { return bitcast<u32>(first); }
// In bits: a compiler may fold `x != x` to false.
fn is_nan(x: T) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn divide(x: T, y: T) -> T { return x / y; }
