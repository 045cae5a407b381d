use super::*;

#[test]
fn rows_have_mean_0_and_variance_1() {
    let norm = LayerNorm::new(2, 2).eps(0.0);
    let x = [1.0f32, 3.0, 10.0, 30.0];
    assert_eq!(layer_norm(&norm, &x, &[1.0; 2], None), [-1.0, 1.0, -1.0, 1.0]);
    assert_eq!(layer_norm(&norm, &x, &[2.0, 3.0], Some(&[0.5, 0.5])), [-1.5, 3.5, -1.5, 3.5]);
    // An epsilon of 3 beside a variance of 1.
    assert_eq!(layer_norm(&norm.eps(3.0), &x[..2], &[1.0; 2], None), [-0.5, 0.5]);
}

#[test]
fn bound_follows_the_mean() {
    let norm = LayerNorm::new(1, 2);
    let near = layer_norm_bound(&norm, &[1.0f32, 3.0], &[1.0; 2], None);
    let far = layer_norm_bound(&norm, &[1001.0f32, 1003.0], &[1.0; 2], None);
    assert!(near[0] > 0.0 && near[0] < 1e-5 && far[0] > 100.0 * near[0], "{near:?} {far:?}");
}
