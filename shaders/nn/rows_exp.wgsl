// The statistics of a softmax: the maximum of a row, and the sum of exp(x - max).
#import element/exp4

// Parts are joined by rescaling their sums to the maximum of the row.
const CENTERED: bool = true;
const BY_LARGEST: bool = true;
fn center_of(largest: f32, n: f32) -> f32 { return largest; }
fn part_center(center: f32, n: f32) -> f32 { return center; }
fn part_total(total: f32, part: f32, center: f32, n: f32) -> f32 {
    return total * exp(part - anchor(center));
}
