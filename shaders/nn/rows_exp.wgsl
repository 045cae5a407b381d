// e^(x - center). A centre of -infinity is that of a row, or a part of one, of nothing but -infinity.
#import nn/exp4

fn anchor(center: f32) -> f32 { return select(center, 0.0, bitcast<u32>(center) == 0xff800000u); }

// The largest of a row is that of its parts, and their sums are scaled to it.
const CENTERED: bool = true;
const BY_LARGEST: bool = true;
fn center_of(largest: f32, n: f32) -> f32 { return largest; }
fn part_center(center: f32, n: f32) -> f32 { return center; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 {
    return total * exp(part - anchor(center));
}
