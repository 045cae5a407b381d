// RMS norm: x / sqrt(mean of squares + eps).
const CENTERED: bool = false;
const BY_LARGEST: bool = false;

fn center_of(sum: f32, n: f32) -> f32 { return 0.0; }
fn centered(x: vec4<f32>, center: f32) -> vec4<f32> { return x; }
fn weight(x: vec4<f32>) -> vec4<f32> { return x * x; }
fn factor_of(total: f32, n: f32) -> f32 { return inverseSqrt(total / n + params.eps); }
fn result(x: vec4<f32>, factor: f32) -> vec4<f32> { return x * factor; }
fn part_center(center: f32, n: f32) -> f32 { return 0.0; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 { return total; }
