//! Options that depend on a condition.

/// Applies a builder method only if a condition holds.
///
/// Switches of descriptors take no argument: [`Scan::exclusive`](crate::Scan::exclusive) makes a scan exclusive.
/// Where a program decides at run time, [`when`](Self::when) keeps the chain in one expression.
pub trait When: Sized {
    /// Returns `set(self)` if `condition` holds, and `self` otherwise.
    ///
    /// ```
    /// use tilework::prelude::*;
    /// let from_the_end = std::env::args().len() > 1;
    /// let scan = Scan::new(Sum, 1000).exclusive().when(from_the_end, Scan::reverse);
    /// # let _ = scan;
    /// ```
    #[must_use]
    fn when(self, condition: bool, set: impl FnOnce(Self) -> Self) -> Self {
        if condition { set(self) } else { self }
    }
}

impl<D> When for D {}
