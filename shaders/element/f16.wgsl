// Elements of type f16: two in a word.
#import element/is_nan
const PACK: u32 = 2u;
alias T = f32;

#import element/halves

fn divide(x: T, y: T) -> T { return x / y; }
