use super::*;

#[test]
fn known_answers() {
    assert_eq!(flops_at(150e9, 4.0, 16.0), 600e9);
    assert_eq!(flops_at(150e9, 8.0, 1.0), 18.75e9);
    assert_eq!(flops_at(1000e9, 4.0, 1.0), 250e9);
    assert!((250e9 / 12e12 - 0.0208_f64).abs() < 5e-5);
    assert_eq!(reuse_for_peak(12e12, 1000e9, 4.0), 48.0);
    assert_eq!(flops_at(696e9, 4.0, 32.0), 5568e9);
    assert!((5568e9 / 37.4e12 - 0.149_f64).abs() < 5e-4);
    assert!((reuse_for_peak(37.4e12, 696e9, 4.0) - 214.9).abs() < 0.05);
    let card = Roofline { bandwidth: 1e9, peak: 1e10 };
    assert_eq!((card.seconds(1e10, 1.0), card.seconds(1.0, 2e9)), (1.0, 2.0));
}
