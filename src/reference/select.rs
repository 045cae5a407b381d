//! The elements that are kept, in order.

/// The elements of `input` whose flag is not 0.
pub fn select<T: Copy>(input: &[T], flags: &[u32]) -> Vec<T> {
    input.iter().zip(flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flag_but_0_keeps() {
        assert_eq!(select(&[1, 2, 3, 4], &[0, 1, 0, u32::MAX]), [2, 4]);
        assert_eq!(select::<f32>(&[], &[]), [0.0; 0]);
    }
}
