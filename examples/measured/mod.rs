//! What programs share that check results before they time them.

mod format;

pub(crate) use format::{digits, time};

use tilework::HostArray;
use tilework::reference::Wanted;
use tilework::sparse::Csr;

/// How far results are from the reference.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    /// The largest difference; relative to results above 1.
    pub(crate) error: f64,
    /// Whether every difference is within its bound.
    pub(crate) passed: bool,
}

impl Check {
    pub(crate) const PERFECT: Self = Self { error: 0.0, passed: true };
    pub(crate) const FAILED: Self = Self { error: f64::NAN, passed: false };

    /// Compares an output with what its op's twin wants.
    #[allow(dead_code, reason = "some programs check the elements themselves")]
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

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        // A NaN stays visible.
        let worse = other.error.is_nan() || other.error > self.error;
        let error = if worse { other.error } else { self.error };
        Self { error, passed: self.passed && other.passed }
    }
}

/// As many rows as columns, with 0 to 31 entries in a row.
pub(crate) fn sparse_matrix(n: usize, numbers: &[f32]) -> Csr {
    let mut csr = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..n {
        // Multiplied by a large odd number, neighbours lie far apart.
        let chance = |i: usize| (row * 32 + i).wrapping_mul(2_654_435_761) >> 7;
        csr.col_idxs.extend((0..chance(0) % 32).map(|i| (chance(i) % n) as u32));
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = numbers.iter().copied().cycle().take(csr.col_idxs.len()).collect();
    csr
}
