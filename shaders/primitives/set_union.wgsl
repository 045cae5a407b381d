// Orders words by value, to merge an array with the elements that it lacks.
#import element/f32 as element
#import primitives/search_key

fn order(word: u32) -> u32 { return search_key(decode(word, 0u)); }
