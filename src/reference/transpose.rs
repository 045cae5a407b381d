//! Transposition, element by element.

use crate::element::Element;

/// Each of `batch` matrices of m x n in `input`, transposed.
pub fn transpose<T: Element>(batch: usize, m: usize, n: usize, input: &[T]) -> Vec<T> {
    let mut output = Vec::with_capacity(batch * m * n);
    for b in 0..batch {
        for j in 0..n {
            for i in 0..m {
                output.push(input[(b * m + i) * n + j]);
            }
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        assert_eq!(transpose(1, 2, 3, &[1, 2, 3, 4, 5, 6]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(transpose(2, 1, 2, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(transpose(2, 2, 2, &[1u8, 2, 3, 4, 5, 6, 7, 8]), [1, 3, 2, 4, 5, 7, 6, 8]);
        assert_eq!(transpose(3, 0, 5, &[0f32; 0]), [0f32; 0]);
    }
}
