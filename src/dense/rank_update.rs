//! What [`Syrk`](super::Syrk) and [`Syr2k`](super::Syr2k) have in common: an update of a symmetric matrix by factors of
//! a few columns.

use super::product::{Product, StoredTriangle};
use super::syrk::SKIPPING_TILES;
use super::triangle::{LOWER, TRANS, UPPER, asked_upper};
use crate::program::prelude::*;

/// The extents and switches of an update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankUpdate {
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Factors are stored as k x n.
    pub(crate) trans: bool,
    pub(crate) upper: bool,
    /// Both triangles are written.
    pub(crate) full: bool,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(super) lda: Option<usize>,
    pub(super) ldb: Option<usize>,
    pub(super) ldc: Option<usize>,
}

pub(super) const VARIANTS: &[Variant] = &[Variant::portable("tiles", "tiles of C outside of the triangle are skipped")];

pub(super) const OPTIONS: &[Setting] =
    &[Setting::number("alpha", "1"), Setting::number("beta", "0"), LOWER, UPPER, TRANS];

impl RankUpdate {
    pub(super) fn new(n: usize, k: usize) -> Self {
        Self { n, k, trans: false, upper: false, full: false, alpha: 1.0, beta: 0.0, lda: None, ldb: None, ldc: None }
    }

    pub(crate) fn stored(&self) -> [usize; 2] {
        if self.trans { [self.k, self.n] } else { [self.n, self.k] }
    }

    /// The product of two factors with `inner` terms in each sum, whose rows begin as `pitches` say; one triangle of
    /// it, or all.
    pub(super) fn product(&self, inner: usize, pitches: [Option<usize>; 2]) -> Product {
        let product = Product {
            alpha: self.alpha,
            beta: self.beta,
            trans_a: self.trans,
            trans_b: !self.trans,
            lda: pitches[0],
            ldb: pitches[1],
            ldc: self.ldc,
            ..Product::new(self.n, self.n, inner)
        };
        if self.full {
            return product;
        }
        let triangle = if self.upper { StoredTriangle::Upper } else { StoredTriangle::Lower };
        Product { triangle: Some(triangle), kernel: Some(SKIPPING_TILES), variant: "double".into(), ..product }
    }

    /// The cost with `factors` matrices read once, and sums of `inner` products.
    pub(super) fn cost(&self, factors: usize, inner: usize) -> Cost {
        let [n, k, factors, inner] = [self.n, self.k, factors, inner].map(|x| x as f64);
        let written = if self.full { n * n } else { n * (n + 1.0) / 2.0 };
        let passes = if self.beta == 0.0 { 1.0 } else { 2.0 };
        Cost { flop: 2.0 * written * inner, bytes: 4.0 * (factors * n * k + passes * written) }
    }

    /// Reads the first factor and the switches.
    pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(Self, HostArray)> {
        let (a, [rows, columns]) = asked.array("a")?;
        asked.check_type(&a)?;
        let settings = asked.settings();
        let trans = settings.has(TRANS.name);
        let [n, k] = if trans { [columns, rows] } else { [rows, columns] };
        let upper = asked_upper(asked.name(), settings)?;
        let update = Self {
            trans,
            upper,
            full: !upper && !settings.has(LOWER.name),
            alpha: settings.number("alpha")?,
            beta: settings.number("beta")?,
            ..Self::new(n, k)
        };
        Ok((update, a))
    }

    /// Reads C, the last input, or takes zeros.
    pub(super) fn asked_c(&self, asked: &mut Asked<'_>) -> Result<HostArray> {
        let shape = [self.n; 2];
        if asked.has_more() { asked.like("c", &shape) } else { HostArray::zeros(&shape, DType::F32) }
    }
}

/// Writes the builder methods that both descriptors have.
macro_rules! rank_update_builders {
    () => {
        /// Writes the upper triangle; the lower one by default.
        #[must_use]
        pub fn upper(mut self) -> Self {
            self.update.upper = true;
            self
        }

        /// Writes both triangles, by the kernels of [`Gemm`](crate::Gemm).
        #[must_use]
        pub fn full(mut self) -> Self {
            self.update.full = true;
            self
        }

        /// Sets the factor of what is added.
        #[must_use]
        pub fn alpha(mut self, alpha: f32) -> Self {
            self.update.alpha = alpha;
            self
        }

        /// Sets the factor of the old contents of C.
        #[must_use]
        pub fn beta(mut self, beta: f32) -> Self {
            self.update.beta = beta;
            self
        }

        /// Sets the elements from one stored row of `a` to the next; the row length by default.
        #[must_use]
        pub fn lda(mut self, lda: usize) -> Self {
            self.update.lda = Some(lda);
            self
        }

        /// Sets the elements from one row of `c` to the next; n by default.
        #[must_use]
        pub fn ldc(mut self, ldc: usize) -> Self {
            self.update.ldc = Some(ldc);
            self
        }

        $crate::program::variants!(variant);
    };
}
pub(super) use rank_update_builders;
