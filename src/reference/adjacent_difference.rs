use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let bound = adjacent_difference_bound(x);
        Ok(vec![Wanted::near(&output_shape(call, 0), adjacent_difference(x), bound)?])
    })
}

/// Returns each element less the one before; the first as it is.
pub fn adjacent_difference<T: Number>(input: &[T]) -> Vec<T> {
    let pairs = input.windows(2).map(|pair| T::narrow(pair[1].widen() - pair[0].widen()));
    input.first().copied().into_iter().chain(pairs).collect()
}

/// Returns the error bound of each difference: f32 rounds either way, and may take subnormal numbers for 0.
pub fn adjacent_difference_bound<T: Number>(input: &[T]) -> Vec<f64> {
    let unit = match size_of::<T>() {
        _ if !T::DTYPE.is_float() => return vec![0.0; input.len()],
        2 => 2f64.powi(-10),
        _ => 2f64.powi(-23),
    };
    let tiny = 2.0 * f64::from(f32::MIN_POSITIVE);
    let of = |x: &T| if x.to_f64().is_finite() { x.to_f64().abs() * unit + tiny } else { 0.0 };
    // Twice, since a largest number and its neighbour are a step apart.
    adjacent_difference(input).iter().map(|x| 2.0 * of(x)).collect()
}

#[cfg(test)]
#[path = "tests/adjacent_difference.rs"]
mod tests;
