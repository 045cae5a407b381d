use super::*;
use crate::conv::Boundary;

#[test]
fn known_sums_at_every_boundary() {
    let x = [1u8, 2, 3, 4, 5, 6, 7, 8, 9];
    let sum = Filter2d::new([3, 3], [3, 3], &[1.0; 9]);
    assert_eq!(filter2d(&sum, &x), [12.0, 21.0, 16.0, 27.0, 45.0, 33.0, 24.0, 39.0, 28.0]);
    assert_eq!(filter2d(&sum.clone().boundary(Boundary::Wrap), &x), [45.0; 9]);
    assert_eq!(filter2d(&sum.boundary(Boundary::Clamp), &x)[0], 21.0);
    // The element above, then the one to the right.
    let above = Filter2d::new([3, 3], [3, 1], &[1.0, 0.0, 0.0]);
    assert_eq!(filter2d(&above, &x), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let right = Filter2d::new([3, 3], [1, 3], &[0.0, 0.0, 1.0]);
    assert_eq!(filter2d(&right, &x), [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0]);
}
