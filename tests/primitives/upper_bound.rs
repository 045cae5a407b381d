//! `UpperBound` by its one-line call; `lower_bound` compares both bounds with the references.

use crate::support::gpu;

#[test]
fn equal_range_lies_between_the_bounds() {
    let Some(gpu) = gpu() else { return };
    let (sorted, needles) = (gpu.upload(&[2i32, 5, 5, 5, 8]).unwrap(), gpu.upload(&[5i32, 7, -1]).unwrap());
    assert_eq!(gpu.lower_bound(&sorted, &needles).unwrap().read().unwrap(), [1, 4, 0]);
    assert_eq!(gpu.upper_bound(&sorted, &needles).unwrap().read().unwrap(), [4, 4, 0]);
}
