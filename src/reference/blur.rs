//! Box blur.

use crate::image::{Blur, Divide};

/// What `op` makes of an image.
pub fn blur(op: &Blur, image: &[u8]) -> Vec<u8> {
    let Blur { h, w, radius, divide, .. } = *op;
    let mut output = Vec::with_capacity(h * w);
    for y in 0..h {
        for x in 0..w {
            let (mut sum, mut count) = (0u64, 0u64);
            for j in y.saturating_sub(radius)..=(y + radius).min(h - 1) {
                for i in x.saturating_sub(radius)..=(x + radius).min(w - 1) {
                    sum += u64::from(image[j * w + i]);
                    count += 1;
                }
            }
            let mean = match divide {
                Divide::Inside => (2 * sum + count) / (2 * count),
                Divide::Window => sum / (2 * radius as u64 + 1).pow(2),
            };
            output.push(mean as u8);
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_means() {
        let x = [0, 10, 20, 30, 40, 50, 60, 70, 81];
        // The corner is a mean of four; 361 / 9 is 40.1; half goes up: 50.25, 12.5 has no place here.
        let inside = Blur::new(3, 3, 1);
        assert_eq!(blur(&inside, &x), [20, 25, 30, 35, 40, 45, 50, 55, 60]);
        assert_eq!(blur(&inside.divide(Divide::Window), &x), [8, 16, 13, 23, 40, 30, 22, 36, 26]);
        assert_eq!(blur(&Blur::new(1, 2, 9), &[0, 1]), [1, 1]);
        assert_eq!(blur(&Blur::new(1, 2, 0), &[3, 4]), [3, 4]);
    }
}
