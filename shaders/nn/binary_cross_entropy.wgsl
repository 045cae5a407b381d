// Computes max(x, 0) - target x + log(1 + exp(-|x|)) of each element, to be summed, and with GRADIENT the gradient of
// the mean, `factor` times sigmoid(x) - target. A target outside 0 to 1 gives NaN.
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

// Returns the loss and the slope of one element.
fn loss_and_slope(word_x: u32, word_y: u32) -> vec2<f32> {
    let logit = decode(word_x, 0u);
    let wanted = decode(word_y, 0u);
    let size = abs(logit);
    // Beyond 104 the exponential is 0 in f32.
    let e = exp(-min(size, 104.0));
    let series = e * (1.0 - e * (0.5 - e * (0.33333334 - e * (0.25 - e * (0.2 - e * 0.16666667)))));
    let rest = select(log(1.0 + e), series, e < 0.0625);
    // The share of |x| is 0 for an infinite logit with the right answer.
    let share = select(wanted, 1.0 - wanted, logit >= 0.0);
    let loss = select(share * size, 0.0, share == 0.0) + rest;
    let slope = select(e, 1.0, logit >= 0.0) / (1.0 + e) - wanted;
    // From 0 to 1, or -0, by bits. A constant NaN does not compile.
    let is_share = word_y <= 0x3f800000u || word_y == 0x80000000u;
    let nan = bitcast<f32>(word_y | 0x7fc00000u);
    return select(vec2(nan), vec2(loss, slope), is_share && !is_nan(logit));
}

fn compute(i: u32) -> Word {
#if VEC4
    let x_words = x[i];
    let y_words = y[i];
    let a = loss_and_slope(x_words.x, y_words.x);
    let b = loss_and_slope(x_words.y, y_words.y);
    let c = loss_and_slope(x_words.z, y_words.z);
    let d = loss_and_slope(x_words.w, y_words.w);
    let losses = Floats(a.x, b.x, c.x, d.x);
    let slopes = Floats(a.y, b.y, c.y, d.y);
#else
    let of_word = loss_and_slope(x[i], y[i]);
    let losses = of_word.x;
    let slopes = of_word.y;
#endif
#if GRADIENT
    gradients[i] = word(params.factor * slopes);
#endif
    return word(losses);
}
