//! Checks of results against the references.

use super::common::measured::Check;
use std::ops::Range;
use std::thread;
use tilework::prelude::*;
use tilework::reference::{self, Number};
use tilework::{Element, Result};

impl Check {
    /// Compares results bit by bit.
    pub(crate) fn exact<T: Element>(got: &[T], want: impl ExactSizeIterator<Item = T>) -> Self {
        let same = |(a, b): (&T, T)| bytemuck::bytes_of(a) == bytemuck::bytes_of(&b);
        if got.len() == want.len() && got.iter().zip(want).all(same) { Self::PERFECT } else { Self::FAILED }
    }

    /// Compares results within a bound for each.
    pub(crate) fn compare<G: Number, W: Copy + Into<f64>>(got: &[G], want: &[W], bounds: &[f64]) -> Self {
        if got.len() != want.len() || got.len() != bounds.len() {
            return Self::FAILED;
        }
        let each = got.iter().zip(want).zip(bounds).map(|((got, &want), bound)| {
            let (got, want) = (got.to_f64(), want.into());
            let same = got == want || (got.is_nan() && want.is_nan());
            let difference = if same { 0.0 } else { (got - want).abs() };
            Self { error: difference / want.abs().max(1.0), passed: difference <= *bound }
        });
        each.fold(Self::PERFECT, Self::and)
    }
}

/// Checks `count` results, divided among all cores.
pub(crate) fn check_on_all_cores(count: usize, check: impl Fn(Range<usize>) -> Result<Check> + Sync) -> Result<Check> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(cores).max(1);
    let check = &check;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .step_by(share)
            .map(|start| scope.spawn(move || check(start..(start + share).min(count))))
            .collect();
        // A panicked thread counts as a failed check.
        let checks = threads.into_iter().map(|t| t.join().unwrap_or(Ok(Check::FAILED)));
        checks.collect::<Result<Vec<_>>>().map(|all| all.into_iter().fold(Check::PERFECT, Check::and))
    })
}

/// The extent of a check.
pub(crate) struct Effort {
    /// Maximum multiply-adds of the reference.
    pub(crate) terms: usize,
    /// Factor on the bound of rounded sums, for hardware that truncates.
    pub(crate) slack: f64,
}

/// Checks rows of an n x n product, all or an even sample within the effort. `one_row` describes the product of a row
/// of A with B.
pub(crate) fn check_product<T: Number + Into<f64>, R: Number + Into<f64>>(
    one_row: &Gemm, a: &[T], b: &[T], bias: Option<&[R]>, got: &[R], effort: &Effort,
) -> Result<Check> {
    let n = b.len().isqrt();
    let step = (n * n * n).div_ceil(effort.terms).min(n);
    let rows: Vec<usize> = (0..n).step_by(step).collect();
    let c = vec![R::default(); n];
    check_on_all_cores(rows.len(), |part| {
        let mut all = Check::PERFECT;
        for &row in &rows[part] {
            let (a, got) = (&a[row * n..][..n], &got[row * n..][..n]);
            let want = reference::gemm(one_row, a, b, bias, &c)?;
            let mut bounds = reference::gemm_bound(one_row, a, b, bias, &c)?;
            bounds.iter_mut().for_each(|bound| *bound *= effort.slack);
            all = all.and(Check::compare(got, &want, &bounds));
        }
        Ok(all)
    })
}
