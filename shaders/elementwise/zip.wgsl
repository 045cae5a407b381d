// Zip: output = zip(x, y), element by element.
// Loads a 32-bit word of each, decodes, combines, encodes and stores it, for every element type.
// The fragment in the slot `walk` states what one thread and one workgroup compute.
#import element/f32 as element
#import elementwise/zip_functions as function
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32,     // elements
    first: u32, // of earlier dispatches
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Word>;
@group(0) @binding(2) var<storage, read> y: array<Word>;
@group(0) @binding(3) var<storage, read_write> output: array<Word>;

// With one element in a word the second argument is the first, and encode drops it.
fn zip_word(a: u32, b: u32) -> u32 {
    let last = PACK - 1u;
    return encode(zip(decode(a, 0u), decode(b, 0u)), zip(decode(a, last), decode(b, last)));
}

fn compute(i: u32) -> Word {
    let a = x[i];
    let b = y[i];
#if VEC4
    return Word(zip_word(a.x, b.x), zip_word(a.y, b.y), zip_word(a.z, b.z), zip_word(a.w, b.w));
#else
    return zip_word(a, b);
#endif
}
