//! `y[i] = alpha x[i] + y[i]`.

use super::Number;
use crate::error::{Result, err};

/// Adds `alpha` times `x` to `y`; `alpha` is first made the number that a kernel gets.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) when the lengths differ.
pub fn axpy<T: Number>(alpha: f64, x: &[T], y: &mut [T]) -> Result<()> {
    if x.len() != y.len() {
        return Err(err!(
            Shape,
            "reference axpy: x has {} elements, y {}; they must agree",
            x.len(),
            y.len()
        ));
    }
    let alpha = T::scalar(alpha);
    for (&x, y) in x.iter().zip(y) {
        *y = T::narrow(alpha * x.widen() + y.widen());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    #[test]
    fn axpy_matches_values_known_by_heart() {
        let mut y = [1.0f32, 2.0, 3.0];
        axpy(0.5, &[2.0, 4.0, -6.0], &mut y).unwrap();
        assert_eq!(y, [2.0, 4.0, 0.0]);
        let mut y = [f16::from_f32(60000.0), f16::ONE];
        axpy(-2.0, &[f16::from_f32(30000.0), f16::ONE], &mut y).unwrap();
        assert_eq!(y, [f16::ZERO, f16::NEG_ONE]);
        let mut y = [1, i32::MAX];
        axpy(-3.0, &[2, -1], &mut y).unwrap();
        assert_eq!(y, [-5, i32::MIN + 2]);
        let mut y = [1, 1];
        axpy(4294967295.0, &[1, u32::MAX], &mut y).unwrap();
        assert_eq!(y, [0, 2]);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        assert_eq!(axpy(1.0, &[1.0f32], &mut []).unwrap_err().kind(), ErrorKind::Shape);
    }
}
