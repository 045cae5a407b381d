// Makes a step of gradient descent in place, with weight decay, MOMENTUM and NESTEROV momentum.
// The fragment in the slot `walk` assigns words to threads.
#import element/f32 as element
#import nn/words
#import elementwise/elementwise_plain as walk

struct Params {
    n: u32, // elements
    rate: f32,
    momentum: f32,
    decay: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<Word>;
@group(0) @binding(2) var<storage, read> gradients: array<Word>;
#if MOMENTUM
@group(0) @binding(3) var<storage, read_write> velocity: array<Word>;
#endif
#import nn/rate

fn compute(i: u32) -> Word {
    let p = floats(output[i]);
    var step = floats(gradients[i]) + params.decay * p;
#if MOMENTUM
    let v = params.momentum * floats(velocity[i]) + step;
    velocity[i] = word(v);
#if NESTEROV
    step += params.momentum * v;
#else
    step = v;
#endif
#endif
    return word(p - step_rate() * step);
}
