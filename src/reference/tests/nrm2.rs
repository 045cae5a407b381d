use super::*;

#[test]
fn norms_by_hand() {
    assert_eq!(nrm2(&[3.0f32, -4.0]), 5.0);
    assert_eq!(nrm2(&[3e38f32]), f64::from(3e38f32));
    assert_eq!((nrm2::<f32>(&[]), nrm2_bound::<f32>(&[])), (0.0, 0.0));
    assert_eq!(nrm2(&[f32::NEG_INFINITY, 1.0]), f64::INFINITY);
    assert!(nrm2(&[f32::NAN, f32::INFINITY]).is_nan());
}
