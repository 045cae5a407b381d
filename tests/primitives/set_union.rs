//! `SetUnion` by its one-line call; `set_intersection` compares all operations with the references.

use crate::support::gpu;

#[test]
fn union_has_each_element_as_often_as_the_array_that_has_more() {
    let Some(gpu) = gpu() else { return };
    let (a, b) = (gpu.upload(&[1.5f32, 4.0, 4.0]).unwrap(), gpu.upload(&[4.0f32, 9.0, 9.0]).unwrap());
    let (united, count) = gpu.set_union(&a, &b).unwrap();
    assert_eq!(count.read().unwrap(), [5]);
    assert_eq!(united.slice(..5).unwrap().read().unwrap(), [1.5, 4.0, 4.0, 9.0, 9.0]);
    let none = gpu.alloc::<f32>(0).unwrap();
    assert_eq!(gpu.set_union(&none, &none).unwrap().1.read().unwrap(), [0]);
    assert_eq!(gpu.set_union(&a, &none).unwrap().0.read().unwrap(), [1.5, 4.0, 4.0]);
}
