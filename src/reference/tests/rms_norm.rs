use super::*;

#[test]
fn rows_have_mean_square_1() {
    let norm = RmsNorm::new(2, 2).eps(0.0);
    assert_eq!(rms_norm(&norm, &[1.0f32, 7.0, 2.0, -2.0], &[1.0; 2], None), [0.2, 1.4, 1.0, -1.0]);
    assert_eq!(rms_norm(&norm, &[2.0f32, -2.0], &[1.0, 3.0], Some(&[1.0, 1.0])), [2.0, -2.0]);
    assert_eq!(rms_norm(&norm.eps(12.0), &[2.0f32, 2.0], &[1.0; 2], None), [0.5, 0.5]);
}

#[test]
fn bound_is_small() {
    let bound = rms_norm_bound(&RmsNorm::new(1, 2), &[1.0f32, 7.0], &[1.0; 2], None);
    assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-5), "{bound:?}");
}
