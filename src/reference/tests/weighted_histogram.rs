use super::*;

#[test]
fn sums_by_hand() {
    let op = WeightedHistogram::new(6, 2, 0.0, 1.0);
    let x = [0.0, 0.5, 1.0, -0.1, f32::NAN, 0.25];
    assert_eq!(weighted_histogram(&op, &x, &[1u32, 2, 4, 8, 16, 32]).unwrap(), [33.0, 6.0]);
    let op = WeightedHistogram::with_edges(3, [0.0, 1.0, 10.0]);
    assert_eq!(weighted_histogram(&op, &[10.0, 1.0, 0.5], &[1.5f32, -3.0, 8.0]).unwrap(), [8.0, -1.5]);
    assert_eq!(weighted_histogram_bound(&op, &[5.0], &[7i32]).unwrap(), [0.0, 0.0]);
}
