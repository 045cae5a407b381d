use super::prelude::*;
use crate::nn::Adam;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let rate = named::<f32>(call, "device-rate")?;
    let op = &rate.into_iter().flatten().fold(descriptor::<Adam>(call)?.clone(), |op, rate| op.at_rate(*rate));
    let operands: [&[f32]; 5] = [input(call, 0)?, input(call, 1)?, input(call, 2)?, input(call, 3)?, input(call, 4)?];
    each_output(call, adam(op, operands), adam_bound(op, operands))
}

/// Makes a step. Returns the new parameters, first and second moments, and fullness; takes them in that order, with the
/// gradients second.
pub fn adam<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<T>; 4] {
    steps(op, operands).map(|part| part.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each result: one rounding for each operation, 2.5 ULP for quotients, 4.5 for the root.
pub fn adam_bound<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<f64>; 4] {
    // Nothing over nothing, either of which may be flushed, has no defined result.
    let undefined = |(exact, error): (f64, f64)| exact.is_infinite() && error.is_infinite();
    let of = |x: (f64, f64)| if undefined(x) { x.1 } else { spread(T::from_f64(x.0), x.0, x.1) };
    steps(op, operands).map(|part| part.into_iter().map(of).collect())
}

/// Returns the results with error bounds.
fn steps<T: Number>(op: &Adam, operands: [&[T]; 5]) -> [Vec<(f64, f64)>; 4] {
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
#[path = "tests/adam.rs"]
mod tests;
