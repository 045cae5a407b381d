//! What tests of the ops over rows share: shapes that bracket what lanes and registers hold, and rows of numbers.

use crate::support::{Device, Random, Sample};

/// Rows and their lengths, for every type on every device.
pub(crate) const SHAPES: [(usize, usize); 5] = [(5, 3), (300, 4), (3, 130), (2, 1028), (2, 4099)];

/// More of them, for f32 on the first device.
pub(crate) const MORE: [(usize, usize); 12] = [
    (1, 1),
    (1000, 5),
    (7, 33),
    (17, 127),
    (16, 128),
    (4, 1024),
    (3, 2050),
    (3, 4096),
    (3, 8195),
    (2, 16384),
    (2000, 1),
    (1, 300_001),
];

/// Numbers between -4 and 4, with a mean of their own in each row.
pub(crate) fn numbers<T: Sample>(rows: usize, n: usize) -> Vec<T> {
    let mut random = Random::new((rows * 31 + n) as u64);
    let row = |_| {
        let mean = 2.0 * random.unit();
        (0..n).map(|_| T::from_f64(mean + 2.0 * random.unit())).collect::<Vec<_>>()
    };
    (0..rows).flat_map(row).collect()
}

/// Whether this device refuses the variant for a row of so many.
pub(crate) fn refused(device: &Device, variant: &str, n: usize) -> bool {
    let most = if device.gpu.profile().is_cpu() { 4096 } else { 16384 };
    variant == "whole" && n > most - 2
}
