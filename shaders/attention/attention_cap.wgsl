// Caps scores smoothly: cap tanh(x / cap).
#import activation/tanh

fn capped(x: vec4<f32>) -> vec4<f32> {
    let y = x / params.cap;
    let bent = params.cap * vec4(activate(y.x), activate(y.y), activate(y.z), activate(y.w));
    // Where tanh(y) rounds to y, so that no quotient is subnormal.
    return select(bent, x, abs(x) < vec4(params.cap * 1.2e-4));
}
