// The logarithm of softmax: x - max - log(sum of exp(x - max)).
#import nn/rows_exp

fn centered(x: vec4<f32>, center: f32) -> vec4<f32> { return x - anchor(center); }
fn weight(x: vec4<f32>) -> vec4<f32> { return exp4(x); }
// A row of -infinity only has the sum 0 and the result NaN; drivers differ in that logarithm.
fn factor_of(total: f32, n: f32) -> f32 {
    let bits = bitcast<u32>(total);
    let special = bitcast<f32>(bits | 0xff800000u);
    return select(log(total), special, bits == 0u || (bits & 0x7fffffffu) > 0x7f800000u);
}
fn result(x: vec4<f32>, factor: f32) -> vec4<f32> { return x - factor; }
