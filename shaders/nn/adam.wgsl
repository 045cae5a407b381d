// Makes a step of Adam in place (D. P. Kingma and J. Ba, 2015). DECOUPLED: weight decay of I. Loshchilov and F. Hutter,
// 2019. adam_advance.wgsl updates `fullness`, 1 - beta^t of both moments.
// The fragment in the slot `walk` assigns words to threads.
#import element/f32 as element
#import nn/words
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32, // elements
    rate: f32,
    rest1: f32, // 1 - beta1
    rest2: f32,
    eps: f32,
    decay: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<Word>;
@group(0) @binding(2) var<storage, read> gradients: array<Word>;
@group(0) @binding(3) var<storage, read_write> first: array<Word>;
@group(0) @binding(4) var<storage, read_write> second: array<Word>;
// Only read. It is read_write because it may share a buffer with the moments.
@group(0) @binding(5) var<storage, read_write> fullness: array<f32>;
#import nn/rate

fn compute(i: u32) -> Word {
    var p = floats(output[i]);
    var g = floats(gradients[i]);
#if DECOUPLED
    p -= step_rate() * params.decay * p;
#else
    g += params.decay * p;
#endif
    var m = floats(first[i]);
    var v = floats(second[i]);
    m += params.rest1 * (g - m);
    v += params.rest2 * (g * g - v);
    first[i] = word(m);
    second[i] = word(v);
    let size = sqrt(v / fullness[1]) + params.eps;
    return word(p - step_rate() * (m / fullness[0]) / size);
}
