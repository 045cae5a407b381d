// A function of two keys of 16 bits, before a sort.
#import element/halves
#import element/is_nan
#import elementwise/map_functions as function

alias T = f32;

fn mapped(word: u32) -> u32 { return encode(map(decode(word, 0u)), map(decode(word, 1u))); }
