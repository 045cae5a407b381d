use super::prelude::*;
use crate::nn::Sgd;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (parameters, gradients) = (input::<f32>(call, 0)?, input(call, 1)?);
    let rate = named::<f32>(call, "device-rate")?;
    let op = &rate.into_iter().flatten().fold(descriptor::<Sgd>(call)?.clone(), |op, rate| op.at_rate(*rate));
    let still = vec![0.0; parameters.len()];
    // Without a velocity the call has one output.
    let moves = call.outputs().count() > 1;
    let velocity = if moves { input(call, 2)? } else { &still };
    // Without a velocity the second result is dropped.
    each_output(call, sgd(op, parameters, gradients, velocity), sgd_bound(op, parameters, gradients, velocity))
}

/// The new parameters, and the new velocity if there is one.
type Stepped = (f64, f64);

/// Makes a step. Returns the new parameters and the new velocity; without momentum the velocity is unchanged.
pub fn sgd<T: Number>(op: &Sgd, parameters: &[T], gradients: &[T], velocity: &[T]) -> [Vec<T>; 2] {
    let steps = steps(op, parameters, gradients, velocity);
    [0, 1].map(|i| steps.iter().map(|step| T::from_f64(step[i].0)).collect())
}

/// Bounds the error of each result: one rounding for each operation.
pub fn sgd_bound<T: Number>(op: &Sgd, parameters: &[T], gradients: &[T], velocity: &[T]) -> [Vec<f64>; 2] {
    let steps = steps(op, parameters, gradients, velocity);
    let of = |(exact, size): Stepped| spread(T::from_f64(exact), exact, 4.0 * ulp(1.0) * size);
    [0, 1].map(|i| steps.iter().map(|step| of(step[i])).collect())
}

/// Returns both, each with the sum of the magnitudes of its terms.
fn steps<T: Number>(op: &Sgd, parameters: &[T], gradients: &[T], velocity: &[T]) -> Vec<[Stepped; 2]> {
    let (rate, momentum, decay, nesterov) = op.parts();
    let (rate, momentum, decay) = (f64::from(rate), f64::from(momentum), f64::from(decay));
    let of = |((p, g), v): ((&T, &T), &T)| {
        let (p, g, v) = (p.to_f64(), g.to_f64(), v.to_f64());
        let (slope, of_slope) = (g + decay * p, g.abs() + (decay * p).abs());
        let (fast, of_fast) = (momentum * v + slope, (momentum * v).abs() + of_slope);
        let (step, of_step) =
            if nesterov { (slope + momentum * fast, of_slope + momentum.abs() * of_fast) } else { (fast, of_fast) };
        [(p - rate * step, p.abs() + rate.abs() * of_step), (fast, of_fast)]
    };
    parameters.iter().zip(gradients).zip(velocity).map(of).collect()
}

#[cfg(test)]
#[path = "tests/sgd.rs"]
mod tests;
