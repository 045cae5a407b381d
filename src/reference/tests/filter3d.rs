use super::*;

#[test]
fn a_weight_off_the_middle_moves_the_volume() {
    // Planes (0 1; 2 3) and (4 5; 6 7), and the element before along z: the first of three weights.
    let x: [f32; 8] = std::array::from_fn(|i| i as f32);
    let op = Filter3d::new([2, 2, 2], [1, 1, 1], &[2.0]);
    assert_eq!(filter3d(&op, &x), x.map(|v| f64::from(2.0 * v)));
    let x: [f32; 6] = std::array::from_fn(|i| i as f32);
    let before = Filter3d::new([3, 1, 2], [3, 1, 1], &[1.0, 0.0, 0.0]);
    assert_eq!(filter3d(&before, &x), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(filter3d(&before.clone().boundary(Boundary::Clamp), &x), [0.0, 1.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(filter3d(&before.boundary(Boundary::Wrap), &x), [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
}
