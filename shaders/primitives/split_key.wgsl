// The part that an element belongs to, by the function `part` of the slot: a key for one pass of a sort. Numbers beyond
// the last part count as the last. The importer declares Key, a word.
#import element/u32 as element
#import primitives/split_number as part

const PARTS: u32 = 3u;

fn mapped(key: Key) -> Key { return min(part(decode(key, 0u)), PARTS - 1u); }
