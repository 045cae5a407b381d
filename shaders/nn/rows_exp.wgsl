// The statistics of a softmax: the largest of a row, and the sum of e^(x - largest).
#import element/exp4

// The largest of a row is that of its parts, and their sums are scaled to it.
const CENTERED: bool = true;
const BY_LARGEST: bool = true;
fn center_of(largest: f32, n: f32) -> f32 { return largest; }
fn part_center(center: f32, n: f32) -> f32 { return center; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 {
    return total * exp(part - anchor(center));
}
