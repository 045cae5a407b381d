//! Checks and formats of measured results.

use tilework::HostArray;
use tilework::reference::Wanted;
use tilework::sparse::Csr;

/// The error of a result.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    /// The largest difference; relative for results above 1.
    pub(crate) error: f64,
    /// Whether every difference is within its bound.
    pub(crate) passed: bool,
}

impl Check {
    pub(crate) const PERFECT: Self = Self { error: 0.0, passed: true };
    pub(crate) const FAILED: Self = Self { error: f64::NAN, passed: false };

    /// Compares an output with the expected one.
    pub(crate) fn wanted(wanted: &Wanted, got: &HostArray) -> Self {
        if wanted.array.shape() != got.shape() {
            return Self::FAILED;
        }
        let (want, have) = (wanted.array.data().to_f64(), got.data().to_f64());
        let apart = want.iter().zip(&have).map(|(want, have)| {
            let same = want == have || want.is_nan() && have.is_nan();
            if same { 0.0 } else { (want - have).abs() / want.abs().max(1.0) }
        });
        let error = apart.fold(0.0, f64::max);
        Self { error, passed: wanted.difference(got).is_none() }
    }

    /// Combines two errors.
    pub(crate) fn and(self, other: Self) -> Self {
        // Keeps NaN visible.
        let worse = other.error.is_nan() || other.error > self.error;
        let error = if worse { other.error } else { self.error };
        Self { error, passed: self.passed && other.passed }
    }
}

/// A square matrix with 0 to 31 entries per row.
pub(crate) fn sparse_matrix(n: usize, numbers: &[f32]) -> Csr {
    let mut csr = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..n {
        // A large odd factor separates neighbours.
        let chance = |i: usize| (row * 32 + i).wrapping_mul(2_654_435_761) >> 7;
        csr.col_idxs.extend((0..chance(0) % 32).map(|i| (chance(i) % n) as u32));
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = numbers.iter().copied().cycle().take(csr.col_idxs.len()).collect();
    csr
}

/// Formats three digits, or all digits of a larger whole number.
pub(crate) fn digits(x: f64) -> String {
    let decimals = if x > 0.0 && x < 0.9995 {
        // Zeros before the first nonzero digit.
        2 + (-(x * 1.0005).log10().floor()).min(6.0) as usize
    } else if x < 9.995 {
        2
    } else if x < 99.95 {
        1
    } else {
        0
    };
    format!("{x:.decimals$}")
}

pub(crate) fn time(seconds: f64) -> String {
    if seconds < 999.5e-6 {
        digits(seconds * 1e6) + " us"
    } else if seconds < 999.5e-3 {
        digits(seconds * 1e3) + " ms"
    } else {
        digits(seconds) + " s"
    }
}

/// Formats one table row. Each column has a title, a width, and whether it is right-aligned.
pub(crate) fn aligned(cells: &[String], columns: &[(&str, usize, bool)]) -> String {
    let aligned = cells
        .iter()
        .zip(columns)
        .map(|(cell, &(_, width, right))| if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
    aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}
