use super::super::activation::activate;
use super::*;

#[test]
fn slopes_match_finite_differences() {
    for activation in Activation::ALL {
        for i in -40..40 {
            let x = f64::from(i) * 0.1 + 0.05;
            let y = activate(activation, x);
            let value = if activation == Activation::Gelu { x } else { y };
            let wanted = (activate(activation, x + 1e-6) - activate(activation, x - 1e-6)) / 2e-6;
            assert!((slope(activation, value) - wanted).abs() < 1e-8, "{activation:?} at {x}");
        }
    }
    assert_eq!(activation_backward(Activation::Relu, &[0.0f32, -0.0, 2.0], &[3.0; 3]), [0.0, 0.0, 3.0]);
}

#[test]
fn bound_is_small() {
    let bound = activation_backward_bound(Activation::Gelu, &[0.5f32, -3.0], &[1.0, -1.0]);
    assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-6), "{bound:?}");
}
