use super::*;
use crate::reference::upper_bound;

#[test]
fn bounds_by_hand() {
    let nan = f32::NAN;
    let (x, needles) = ([-1.0, -0.0, 0.0, 2.0, nan, nan], [-2.0, 0.0, -0.0, 1.0, 2.0, f32::INFINITY, nan]);
    assert_eq!(lower_bound(&x, &needles), [0, 1, 1, 3, 3, 4, 4]);
    assert_eq!(upper_bound(&x, &needles), [0, 3, 3, 3, 4, 4, 6]);
    assert_eq!(lower_bound(&[] as &[u32], &[3]), [0]);
}
