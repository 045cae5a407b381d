/// Writes the builder methods that both descriptors of a [`Product`](super::Product) share, and `Op` for each type.
macro_rules! product_descriptor {
    ($descriptor:ty, $variants:expr, $($t:ty),*) => {
        impl $descriptor {
            /// Multiplies the product by `alpha`; 1 by default. With 0, `a` and `b` are not read.
            #[must_use]
            pub fn alpha(mut self, alpha: f32) -> Self {
                self.product.alpha = alpha;
                self
            }

            /// Multiplies the old contents of `c` by `beta`; 0 by default, and `c` is then not read.
            #[must_use]
            pub fn beta(mut self, beta: f32) -> Self {
                self.product.beta = beta;
                self
            }

            /// Reads alpha and beta from an operand `scalars` of two f32, `plan.with_scalars(&scalars)`, instead of
            /// those given: they change without a new plan. With an alpha of 0 the factors do not reach the result,
            /// with a beta of 0 the old `c` does not.
            #[must_use]
            pub fn with_scalars(mut self) -> Self {
                self.product.scalars = true;
                self
            }

            /// Reads `a` transposed, stored as k x m.
            #[must_use]
            pub fn trans_a(mut self) -> Self {
                self.product.trans_a = true;
                self
            }

            /// Reads `b` transposed, stored as n x k.
            #[must_use]
            pub fn trans_b(mut self) -> Self {
                self.product.trans_b = true;
                self
            }

            /// Sets the function applied last; [`Activation::None`](crate::Activation::None) by default.
            #[must_use]
            pub fn activation(mut self, activation: $crate::dense::Activation) -> Self {
                self.product.activation = activation;
                self
            }

            /// Sets the elements from one stored row of `a` to the next; the row length by default.
            #[must_use]
            pub fn lda(mut self, lda: usize) -> Self {
                self.product.lda = Some(lda);
                self
            }

            /// Sets the elements from one stored row of `b` to the next; the row length by default.
            #[must_use]
            pub fn ldb(mut self, ldb: usize) -> Self {
                self.product.ldb = Some(ldb);
                self
            }

            /// Sets the elements from one row of `c` to the next; n by default.
            #[must_use]
            pub fn ldc(mut self, ldc: usize) -> Self {
                self.product.ldc = Some(ldc);
                self
            }

            /// Adds a bias for each column of C: an operand `bias` of n elements, `plan.with_bias(&bias).record(..)`.
            #[must_use]
            pub fn with_bias(mut self) -> Self {
                (self.product.bias, self.product.row_bias) = (true, false);
                self
            }

            /// Adds a bias for each row of C: an operand `bias` of m elements, `plan.with_bias(&bias).record(..)`.
            #[must_use]
            pub fn with_row_bias(mut self) -> Self {
                (self.product.bias, self.product.row_bias) = (true, true);
                self
            }

            /// Keeps the bias and C in `f32` while A and B have 16 bits: sums are not rounded to 16 bits. Plan it
            /// for the type of A and B: `plan::<f16>(..)`.
            #[must_use]
            pub fn mixed_precision(mut self) -> Self {
                self.product.mixed = true;
                self
            }

            /// Sets how exact the products and sums are; [`Precision::Strict`](crate::dense::Precision::Strict) by
            /// default.
            #[must_use]
            pub fn precision(mut self, precision: $crate::dense::Precision) -> Self {
                self.product.precision = precision;
                self
            }

            $crate::program::variants!(choose product.variant);

            $crate::program::variants!(list $variants);
        }

        $(impl $crate::program::Op<$t> for $descriptor {
            $crate::program::proven!();

            fn lower(
                &self,
                profile: &$crate::program::DeviceProfile,
            ) -> $crate::error::Result<$crate::program::Program> {
                self.product.lower(<$t as $crate::element::Element>::DTYPE, profile)
            }
        })*
    };
}
pub(in super::super) use product_descriptor;
