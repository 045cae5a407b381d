use crate::elementwise::Activation;
use std::f64::consts::PI;

/// Applies `activation` to `x`.
pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu if x <= 0.0 => 0.0,
        Activation::Relu => x,
        Activation::Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        // The limit, where the formula has infinity times 0.
        Activation::Gelu if x == f64::NEG_INFINITY => 0.0,
        Activation::Gelu => x * normal(x),
    }
}

/// Returns the steepest slope of `activation`, and its own error in f32, relative to 1 and to its result.
pub(super) fn activation_errors(activation: Activation) -> (f64, f64) {
    let own = 16.0 * 2f64.powi(-24);
    match activation {
        Activation::None | Activation::Relu => (1.0, 0.0),
        Activation::Sigmoid => (0.25, own),
        Activation::Tanh => (1.0, own),
        // x Phi(x) is steepest at sqrt(2).
        Activation::Gelu => (1.13, own),
    }
}

/// Returns the normal distribution function at `x`.
pub(super) fn normal(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    if x > 3.0 {
        1.0 - normal(-x)
    } else if x < -3.0 {
        // Laplace's continued fraction, from its far end: density / (a + 1 / (a + 2 / (a + ...))).
        let a = -x;
        density / (1..=100).rev().fold(a, |rest, i| a + f64::from(i) / rest)
    } else {
        // Half, plus density (x + x^3 / 3 + x^5 / (3 5) + ...) (Marsaglia 2004).
        let terms = (1..=50).scan(x, |term, i| {
            let this = *term;
            *term *= x * x / f64::from(2 * i + 1);
            Some(this)
        });
        0.5 + density * terms.sum::<f64>()
    }
}

#[cfg(test)]
#[path = "tests/activation.rs"]
mod tests;
