//! Amdahl's law and the roofline.

/// Returns the speedup of a program if the fraction `parallel` of it becomes `speedup` times faster:
/// `1 / (1 - parallel + parallel / speedup)` (Amdahl's law).
///
/// ```
/// use tilework::analysis::{amdahl, amdahl_bound};
///
/// let faster = amdahl(0.9, 1000.0);
/// assert!((faster - 9.91).abs() < 5e-3 && (100.0 / faster - 10.09).abs() < 5e-3);
/// assert!((amdahl_bound(0.9) - 10.0).abs() < 1e-9);
/// ```
pub fn amdahl(parallel: f64, speedup: f64) -> f64 {
    1.0 / (1.0 - parallel + parallel / speedup)
}

/// Returns the limit of [`amdahl`] for an infinite speedup: `1 / (1 - parallel)`.
pub fn amdahl_bound(parallel: f64) -> f64 {
    1.0 / (1.0 - parallel)
}

/// Returns the operations per second that `bandwidth` bytes per second allow if each loaded element of `element_bytes`
/// serves `reuse` operations: `bandwidth / element_bytes reuse`.
pub fn flops_at(bandwidth: f64, element_bytes: f64, reuse: f64) -> f64 {
    bandwidth / element_bytes * reuse
}

/// Returns the operations that each loaded element must serve so that `bandwidth` allows `peak` operations per second:
/// `peak element_bytes / bandwidth`, the inverse of [`flops_at`].
///
/// ```
/// use tilework::analysis::{flops_at, reuse_for_peak};
///
/// let reuse = reuse_for_peak(12e12, 1000e9, 4.0); // 12 Tflop/s, 1000 GB/s, f32
/// assert_eq!(reuse, 48.0);
/// assert_eq!(flops_at(1000e9, 4.0, reuse), 12e12);
/// ```
pub fn reuse_for_peak(peak: f64, bandwidth: f64, element_bytes: f64) -> f64 {
    peak / (bandwidth / element_bytes)
}

/// The maximum rates of a device: the roofline of S. Williams, A. Waterman and D. Patterson (2009).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Bytes per second.
    pub bandwidth: f64,
    /// Operations per second.
    pub peak: f64,
}

impl Roofline {
    /// Returns the maximum operations per second at `intensity` operations per byte: `min(bandwidth intensity, peak)`.
    ///
    /// ```
    /// use tilework::analysis::Roofline;
    ///
    /// let card = Roofline { bandwidth: 1000e9, peak: 12e12 };
    /// assert_eq!(card.attainable(0.25), 250e9);
    /// assert_eq!(card.attainable(100.0), 12e12);
    /// assert_eq!(card.ridge(), 12.0);
    /// ```
    pub fn attainable(&self, intensity: f64) -> f64 {
        (self.bandwidth * intensity).min(self.peak)
    }

    /// Returns the smallest intensity that reaches the peak: `peak / bandwidth`.
    pub fn ridge(&self) -> f64 {
        self.peak / self.bandwidth
    }

    /// Returns the minimum seconds for `flop` operations on `bytes` bytes: `max(flop / peak, bytes / bandwidth)`.
    pub fn seconds(&self, flop: f64, bytes: f64) -> f64 {
        (flop / self.peak).max(bytes / self.bandwidth)
    }
}

#[cfg(test)]
mod tests;
