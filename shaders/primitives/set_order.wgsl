// Orders words by the value of their element, for operations on sorted multisets.
#import element/f32 as element
#import primitives/search_key

fn order(word: u32) -> u32 { return search_key(decode(word, 0u)); }
