use super::*;

#[test]
fn recognises_products_of_lines_only() {
    let gauss: Vec<f32> = (0..25)
        .map(|i| {
            let (y, x) = (i / 5 - 2, i % 5 - 2);
            (f64::from(-(x * x + y * y)) / 3.0).exp() as f32
        })
        .collect();
    assert!(factors([1, 5, 5], &gauss).is_ok());
    let sobel = [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0];
    let [z, y, x] = factors([1, 3, 3], &sobel).unwrap();
    assert_eq!((z, y), (vec![1.0], vec![0.5, 1.0, 0.5]));
    assert_eq!(x.iter().map(|v| v.abs()).collect::<Vec<_>>(), [2.0, 0.0, 2.0]);
    let laplace = [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0];
    assert_eq!(factors([1, 3, 3], &laplace), Err((0, 0.25)));
    // Fifths of the largest weight would be rounded.
    let odd = [9.0, -15.0, 6.0, 15.0, -25.0, 10.0, 3.0, -5.0, 2.0].map(|w| w / 64.0);
    let [z, y, x] = factors([1, 3, 3], &odd).unwrap();
    assert_eq!((z, y), (vec![1.0], vec![3.0, 5.0, 1.0]));
    assert_eq!(x, [3.0, -5.0, 2.0].map(|w| w / 64.0));
    assert_eq!(factors([3, 1, 3], &[0.0; 9]).unwrap(), [vec![0.0; 3], vec![0.0], vec![0.0; 3]]);
    // Off by a little more than rounding.
    let mut near = vec![1.0f32; 27];
    assert!(factors([3, 3, 3], &near).is_ok());
    near[5] -= 4.0 * f32::EPSILON;
    assert!(factors([3, 3, 3], &near).is_ok());
    near[5] -= 8.0 * f32::EPSILON;
    assert_eq!(factors([3, 3, 3], &near).unwrap_err().0, 5);
}
