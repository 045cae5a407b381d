use super::prelude::*;
use crate::nn::{Adam, Sgd};

judges! { sgd => judge_sgd, adam => judge_adam }

fn judge_sgd(call: &OpCall) -> Result<Vec<Wanted>> {
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
    let steps = sgd_steps(op, parameters, gradients, velocity);
    [0, 1].map(|i| steps.iter().map(|step| T::from_f64(step[i].0)).collect())
}

/// Bounds the error of each result: one rounding for each operation.
pub fn sgd_bound<T: Number>(op: &Sgd, parameters: &[T], gradients: &[T], velocity: &[T]) -> [Vec<f64>; 2] {
    let steps = sgd_steps(op, parameters, gradients, velocity);
    let of = |(exact, size): Stepped| spread(T::from_f64(exact), exact, 4.0 * ulp(1.0) * size);
    [0, 1].map(|i| steps.iter().map(|step| of(step[i])).collect())
}

/// Returns both, each with the sum of the magnitudes of its terms.
fn sgd_steps<T: Number>(op: &Sgd, parameters: &[T], gradients: &[T], velocity: &[T]) -> Vec<[Stepped; 2]> {
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

fn judge_adam(call: &OpCall) -> Result<Vec<Wanted>> {
    let rate = named::<f32>(call, "device-rate")?;
    let op = &rate.into_iter().flatten().fold(descriptor::<Adam>(call)?.clone(), |op, rate| op.at_rate(*rate));
    let operands: [&[f32]; 5] = [input(call, 0)?, input(call, 1)?, input(call, 2)?, input(call, 3)?, input(call, 4)?];
    each_output(call, adam(op, operands), adam_bound(op, operands))
}

/// Makes a step. Returns the new parameters, first and second moments, and fullness; takes them in that order, with the
/// gradients second.
pub fn adam<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<T>; 4] {
    adam_steps(op, operands).map(|part| part.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each result: one rounding for each operation, 2.5 ULP for quotients, 4.5 for the root.
pub fn adam_bound<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<f64>; 4] {
    // Nothing over nothing, either of which may be flushed, has no defined result.
    let undefined = |(exact, error): (f64, f64)| exact.is_infinite() && error.is_infinite();
    let of = |x: (f64, f64)| if undefined(x) { x.1 } else { spread(T::from_f64(x.0), x.0, x.1) };
    adam_steps(op, operands).map(|part| part.into_iter().map(of).collect())
}

/// Returns the results with error bounds.
fn adam_steps<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<(f64, f64)>; 4] {
    let (betas, [rate, eps, decay], decoupled) = op.parts();
    let ([rate, eps, decay], u) = ([rate, eps, decay].map(f64::from), ulp(1.0));
    let [parameters, gradients, first, second, fullness] = operands;
    let full: Vec<f64> =
        fullness.iter().zip(betas).map(|(f, beta)| f.to_f64() + (1.0 - beta) * (1.0 - f.to_f64())).collect();
    // Subnormal numbers may be flushed to 0.
    let least = f64::from(f32::MIN_POSITIVE);
    let mut results: [Vec<(f64, f64)>; 4] = Default::default();
    for i in 0..parameters.len() {
        let [mut p, mut g, m, v] = [parameters, gradients, first, second].map(|values| values[i].to_f64());
        let (mut of_g, mut decayed) = (g.abs(), 0.0);
        if decoupled {
            decayed = rate * decay * p;
            p -= decayed;
        } else {
            of_g += (decay * p).abs();
            g += decay * p;
        }
        // Like the kernel, which turns an infinite moment into NaN.
        let m = m + (1.0 - betas[0]) * (g - m);
        let of_m = 4.0 * u * (first[i].to_f64().abs() + (1.0 - betas[0]) * of_g) + 2.0 * least;
        let v = v + (1.0 - betas[1]) * (g * g - v);
        let of_v = 6.0 * u * (second[i].to_f64().abs() + (1.0 - betas[1]) * of_g * of_g) + 2.0 * least;
        let root = (v / full[1]).sqrt();
        let size = root + eps;
        // The error of a square root is at most the root of the error.
        let of_root = (of_v / full[1]).sqrt().min(of_v / full[1] / root) + 8.0 * u * root;
        let step = rate * m / full[0] / size;
        // The root of a moment that its error may make 0 leaves epsilon alone.
        let least_size = (size - of_root).max(eps);
        let of_size = if least_size == 0.0 { f64::INFINITY } else { size / least_size - 1.0 };
        let of_step = rate.abs() * of_m / full[0] / least_size + step.abs() * (of_size + 10.0 * u);
        results[0].push((p - step, of_step + 2.0 * u * (p.abs() + step.abs() + decayed.abs()) + least));
        results[1].push((m, of_m));
        results[2].push((v, of_v));
    }
    results[3] = full.into_iter().map(|f| (f, 3.0 * u * f)).collect();
    results
}

#[cfg(test)]
#[path = "tests/optimizers.rs"]
mod tests;
