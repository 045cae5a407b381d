// Scal: output = alpha * output, element by element, in place. The fragment in the slot `walk` states what one thread
// and one workgroup compute.
#import element/f32 as element
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32,     // elements
    first: u32, // of earlier dispatches
    alpha: T,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<Word>;

#if GIVEN
@group(0) @binding(2) var<storage, read> alpha: array<T>;
fn factor() -> T { return alpha[0]; }
#else
fn factor() -> T { return params.alpha; }
#endif

// With one element in a word encode drops the second argument.
fn scal_word(word: u32) -> u32 { return encode(factor() * decode(word, 0u), factor() * decode(word, PACK - 1u)); }

fn compute(i: u32) -> Word {
    let x = output[i];
#if VEC4
    return Word(scal_word(x.x), scal_word(x.y), scal_word(x.z), scal_word(x.w));
#else
    return scal_word(x);
#endif
}
