// A function of a key, before the first pass of a sort. The importer declares Key, a word.
#import element/u32 as element
#import elementwise/map_functions as function

fn mapped(key: Key) -> Key {
    let x = map(decode(key, 0u));
    return encode(x, x);
}
