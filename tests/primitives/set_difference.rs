//! `SetDifference` by its one-line call; `set_intersection` compares all operations with the references.

use crate::support::gpu;

#[test]
fn difference_keeps_what_the_intersection_drops() {
    let Some(gpu) = gpu() else { return };
    let (a, b) = (gpu.upload(&[1u32, 4, 4, 9]).unwrap(), gpu.upload(&[0u32, 4, 9, 9]).unwrap());
    let front = |(kept, count): (tilework::Buffer<u32>, tilework::Buffer<u32>)| {
        kept.slice(..count.read().unwrap()[0] as usize).unwrap().read().unwrap()
    };
    assert_eq!(front(gpu.set_difference(&a, &b).unwrap()), [1, 4]);
    assert_eq!(front(gpu.set_intersection(&a, &b).unwrap()), [4, 9]);
}
