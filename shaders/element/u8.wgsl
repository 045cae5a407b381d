// Elements of type u8: four in a word, read as u32. For inputs only.
const PACK: u32 = 4u;
alias T = u32;

fn decode(word: u32, i: u32) -> T { return extractBits(word, 8u * i, 8u); }
fn is_nan(x: T) -> bool { return false; }
