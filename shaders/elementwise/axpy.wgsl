// Axpy: output = alpha * x + output, element by element, in place.
// Loads a 32-bit word of each, decodes, combines, encodes and stores it, for every element type.
// The fragment in the slot `walk` states what one thread and one workgroup compute.
#import element/f32 as element
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32,     // elements
    first: u32, // of earlier dispatches
    alpha: T,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Word>;
@group(0) @binding(2) var<storage, read_write> output: array<Word>;

#if GIVEN
@group(0) @binding(3) var<storage, read> alpha: array<T>;
fn factor() -> T { return alpha[0]; }
#else
fn factor() -> T { return params.alpha; }
#endif

fn axpy(x: T, y: T) -> T { return factor() * x + y; }

// With one element in a word the second argument is the first, and encode drops it.
fn axpy_word(a: u32, b: u32) -> u32 {
    let last = PACK - 1u;
    return encode(axpy(decode(a, 0u), decode(b, 0u)), axpy(decode(a, last), decode(b, last)));
}

fn compute(i: u32) -> Word {
    let a = x[i];
    let b = output[i];
#if VEC4
    return Word(axpy_word(a.x, b.x), axpy_word(a.y, b.y), axpy_word(a.z, b.z), axpy_word(a.w, b.w));
#else
    return axpy_word(a, b);
#endif
}
