//! The brightness of RGB pixels.

use crate::image::{Grey, GreyWeights};

/// What `op` makes of pixels of three bytes each.
pub fn grey(op: &Grey, rgb: &[u8]) -> Vec<u8> {
    let pixels = rgb.chunks_exact(3).map(|p| {
        let [r, g, b] = [p[0], p[1], p[2]].map(u32::from);
        match op.weights {
            GreyWeights::Luma => (299 * r + 587 * g + 114 * b + 500) / 1000,
            GreyWeights::Source => 3 * r / 10 + 6 * g / 10 + b / 10,
        }
    });
    pixels.map(|v| v as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_pixels() {
        let rgb = [255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9];
        assert_eq!(grey(&Grey::new(1, 6), &rgb), [255, 0, 76, 150, 29, 9]);
        // 76 + 153 + 25, and 2 + 5 + 0.
        let source = Grey::new(1, 6).weights(GreyWeights::Source);
        assert_eq!(grey(&source, &rgb), [254, 0, 76, 153, 25, 7]);
    }
}
