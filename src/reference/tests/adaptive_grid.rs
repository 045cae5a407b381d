use super::*;

#[test]
fn a_step_is_refined_along_its_edge() {
    let above = |threshold: f32| move |_: &[u32; 4], range: f32| range > threshold;
    let step = |x: f64, _: f64| f32::from(u8::from(x >= 0.3));
    let (nodes, values) = adaptive_grid(step, 0..=2, above(0.5), usize::MAX);
    assert_eq!(nodes.len(), 1 + 4 + 8);
    assert_eq!(nodes[..3], [[1, 0, 0, 0], [5, 1, 0, 0], [u32::MAX, 1, 1, 0]]);
    assert_eq!(values[..3], [[0.75, 1.0], [0.375, 1.0], [1.0, 0.0]]);
    assert_eq!(adaptive_grid(step, 0..=2, above(0.5), 8).0.len(), 5);
    assert_eq!(adaptive_grid(step, 1..=2, above(1.0), 8).0.len(), 4);
    assert_eq!(adaptive_grid(|_, _| f32::NAN, 0..=2, above(0.5), 8).0, [[u32::MAX, 0, 0, 0]]);
}
