// Layer norm: (x - mean) / sqrt(variance + eps). The variance is the mean square of deviations, not a difference of
// large sums. Parts are joined as in Chan, Golub and LeVeque (1979).
const CENTERED: bool = true;
const BY_LARGEST: bool = false;

fn center_of(sum: f32, n: f32) -> f32 { return sum / n; }
fn centered(x: vec4<f32>, center: f32) -> vec4<f32> { return x - center; }
fn weight(x: vec4<f32>) -> vec4<f32> { return x * x; }
fn factor_of(total: f32, n: f32) -> f32 { return inverseSqrt(total / n + params.eps); }
fn result(x: vec4<f32>, factor: f32) -> vec4<f32> { return x * factor; }
fn part_center(center: f32, n: f32) -> f32 { return center * n; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 {
    let off = part - center;
    return total + n * off * off;
}
