use super::activation::normal;
use super::prelude::*;
use crate::dense::Activation;
use std::f64::consts::PI;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let activation = Activation::asked(settings(call)?)?;
    by_input!(call, 0, [f32, f16], T => {
        let (value, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = activation_backward_bound(activation, value, dy);
        Ok(vec![Wanted::near(&output_shape(call, 0), activation_backward(activation, value, dy), bound)?])
    })
}

/// Multiplies `dy` by the slope of `activation`; `value` is its result, or for GELU and none its input.
pub fn activation_backward<T: Number>(activation: Activation, value: &[T], dy: &[T]) -> Vec<T> {
    value.iter().zip(dy).map(|(v, g)| T::from_f64(slope(activation, v.to_f64()) * g.to_f64())).collect()
}

/// Bounds the error of each element: three roundings; for GELU 6 ULP of 1 times `dy`.
pub fn activation_backward_bound<T: Number>(activation: Activation, value: &[T], dy: &[T]) -> Vec<f64> {
    let bound = |(v, g): (&T, &T)| {
        let (v, g) = (v.to_f64(), g.to_f64());
        let exact = slope(activation, v) * g;
        let error = match activation {
            Activation::None | Activation::Relu => 0.0,
            Activation::Sigmoid | Activation::Tanh => 4.0 * ulp(1.0) * exact.abs(),
            Activation::Gelu => 6.0 * ulp(1.0) * g.abs(),
        };
        spread(T::from_f64(exact), exact, error)
    };
    value.iter().zip(dy).map(bound).collect()
}

fn slope(activation: Activation, value: f64) -> f64 {
    match activation {
        Activation::None => 1.0,
        Activation::Relu if value <= 0.0 => 0.0,
        Activation::Relu => 1.0,
        Activation::Sigmoid => value * (1.0 - value),
        Activation::Tanh => 1.0 - value * value,
        // The limits, where the formula has infinity times 0.
        Activation::Gelu if value.is_infinite() => f64::from(value > 0.0),
        Activation::Gelu => normal(value) + value * (-0.5 * value * value).exp() / (2.0 * PI).sqrt(),
    }
}

#[cfg(test)]
#[path = "tests/activation_backward.rs"]
mod tests;
