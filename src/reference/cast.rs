use super::prelude::*;

/// Judges exactly, except that a device may flush a subnormal f16 to 0.
pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let shape = output_shape(call, 0);
    if call.inputs().next().is_some_and(|x| x.dtype() == DType::F32) {
        let x = input::<f32>(call, 0)?;
        return Ok(vec![Wanted::near(&shape, cast::<f32, f16>(x), vec![0.0; x.len()])?]);
    }
    let x = input::<f16>(call, 0)?;
    let least = f16::MIN_POSITIVE.to_f64();
    let bound = x.iter().map(|x| x.to_f64().abs()).map(|x| if x < least { x } else { 0.0 });
    Ok(vec![Wanted::near(&shape, cast::<f16, f32>(x), bound.collect())?])
}

/// Converts `x` to the nearest numbers of `R`, ties to even.
pub fn cast<T: Number, R: Number>(x: &[T]) -> Vec<R> {
    x.iter().map(|x| R::from_f64(x.to_f64())).collect()
}

#[cfg(test)]
#[path = "tests/cast.rs"]
mod tests;
