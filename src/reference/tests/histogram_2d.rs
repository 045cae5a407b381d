use super::*;

#[test]
fn points_by_hand() {
    let op = Histogram2d::new(5, [2, 3], [0.0, 0.0], [1.0, 3.0]);
    let (x, y) = ([0.0, 0.5, 1.0, 0.7, f32::NAN], [0.0, 1.0, 3.0, -0.1, 1.0]);
    assert_eq!(histogram_2d(&op, &x, &y), [1, 0, 0, 0, 1, 1]);
}
