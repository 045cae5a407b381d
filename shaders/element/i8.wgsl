// Elements of type i8: four in a word, read as i32. For inputs only.
const PACK: u32 = 4u;
alias T = i32;

fn decode(word: u32, i: u32) -> T { return extractBits(bitcast<i32>(word), 8u * i, 8u); }
fn is_nan(x: T) -> bool { return false; }
