// Computes the squares of differences, to be summed, and with GRADIENT the gradient of their mean, `factor` times the
// difference.
// The fragment in the slot `walk` assigns words to threads.
#import element/f32 as element
#import nn/words
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32, // elements
    factor: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Word>;
@group(0) @binding(2) var<storage, read> y: array<Word>;
@group(0) @binding(3) var<storage, read_write> output: array<Word>;
#if GRADIENT
@group(0) @binding(4) var<storage, read_write> gradients: array<Word>;
#endif

fn compute(i: u32) -> Word {
    let d = floats(x[i]) - floats(y[i]);
#if GRADIENT
    gradients[i] = word(params.factor * d);
#endif
    return word(d * d);
}
