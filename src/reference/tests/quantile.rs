use super::*;

#[test]
fn quantiles_by_hand() {
    let x = [4.0, 1.0, 3.0, 2.0];
    assert_eq!(quantile(&Quantile::new(4, [0.0, 0.5, 1.0]), &x), [1.0, 2.5, 4.0]);
    assert_eq!(quantile(&Quantile::new(1, [0.3]), &[7.0]), [7.0]);
    assert!(quantile(&Quantile::new(2, [1.0]), &[f32::NAN, 1.0])[0].is_nan());
}
