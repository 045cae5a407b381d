// e^(x - center), 0 for x = -infinity and NaN for NaN, which some drivers drop. A centre of -infinity is that
// of a row, or a part of one, of nothing but -infinity.
fn is_nan4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) > vec4(0x7f800000u);
}

fn anchor(center: f32) -> f32 { return select(center, 0.0, bitcast<u32>(center) == 0xff800000u); }

fn exp4(x: vec4<f32>) -> vec4<f32> { return select(exp(x), x, is_nan4(x)); }

// The largest of a row is that of its parts, and their sums are scaled to it.
const CENTERED: bool = true;
const BY_LARGEST: bool = true;
fn center_of(largest: f32, n: f32) -> f32 { return largest; }
fn part_center(center: f32, n: f32) -> f32 { return center; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 {
    return total * exp(part - anchor(center));
}
