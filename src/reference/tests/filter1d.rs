use super::*;
use crate::conv::Boundary;

#[test]
fn known_sums_at_every_boundary() {
    let x = [8.0f32, 2.0, 5.0, 4.0, 1.0, 7.0, 3.0];
    let op = Filter1d::new(7, &[1.0, 3.0, 5.0, 3.0, 1.0]);
    assert_eq!(filter1d(&op, &x), [51.0, 53.0, 52.0, 47.0, 46.0, 51.0, 37.0]);
    let next = Filter1d::new(3, &[0.0, 0.0, 1.0]);
    assert_eq!(filter1d(&next, &x[..3]), [2.0, 5.0, 0.0]);
    assert_eq!(filter1d(&next.clone().boundary(Boundary::Clamp), &x[..3]), [2.0, 5.0, 5.0]);
    assert_eq!(filter1d(&next.boundary(Boundary::Wrap), &x[..3]), [2.0, 5.0, 8.0]);
}
