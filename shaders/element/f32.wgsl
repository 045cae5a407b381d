// Elements of type f32: one in a word.
#import element/is_nan
const PACK: u32 = 1u;
alias T = f32;

fn decode(word: u32, i: u32) -> T { return bitcast<T>(word); }
fn encode(first: T, second: T) -> u32 { return bitcast<u32>(first); }
fn divide(x: T, y: T) -> T { return x / y; }
