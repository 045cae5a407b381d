// Softmax: exp(x - max) / sum of exp(x - max).
#import nn/rows_exp

fn centered(x: vec4<f32>, center: f32) -> vec4<f32> { return exp4(x - anchor(center)); }
fn weight(x: vec4<f32>) -> vec4<f32> { return x; }
fn factor_of(total: f32, n: f32) -> f32 { return 1.0 / total; }
fn result(x: vec4<f32>, factor: f32) -> vec4<f32> { return x * factor; }
