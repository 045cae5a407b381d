// Map: output = map(input), element by element; with IN_PLACE one buffer is both.
// Loads a 32-bit word, decodes, maps, encodes and stores it, for every element type.
// The fragment in the slot `walk` states what one thread and one workgroup compute.
#import element/f32 as element
#import elementwise/map_functions as function
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32,     // elements
    first: u32, // of earlier dispatches
}

@group(0) @binding(0) var<uniform> params: Params;
#if IN_PLACE
@group(0) @binding(1) var<storage, read_write> output: array<Word>;
#else
@group(0) @binding(1) var<storage, read> input: array<Word>;
@group(0) @binding(2) var<storage, read_write> output: array<Word>;
#endif

// With one element in a word the second argument is the first, and encode drops it.
fn map_word(x: u32) -> u32 { return encode(map(decode(x, 0u)), map(decode(x, PACK - 1u))); }

fn compute(i: u32) -> Word {
#if IN_PLACE
    let x = output[i];
#else
    let x = input[i];
#endif
#if VEC4
    return Word(map_word(x.x), map_word(x.y), map_word(x.z), map_word(x.w));
#else
    return map_word(x);
#endif
}
