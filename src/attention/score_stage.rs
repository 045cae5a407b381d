//! Steps of the computation of scores.

/// The step after which [`Attention::scores`](super::Attention::scores) returns the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScoreStage {
    /// `scale Q K^T`, for hidden keys too.
    Products,
    /// The products after [`softcap`](super::Attention::softcap).
    Capped,
    /// The capped products with the mask; -infinity for hidden keys.
    Masked,
    /// The weights of the values: the softmax of the above, 0 for hidden keys. A row whose softmax is undefined is NaN.
    Weights,
}

impl ScoreStage {
    /// Lists all steps, in order.
    pub const ALL: [Self; 4] = [Self::Products, Self::Capped, Self::Masked, Self::Weights];

    /// Returns `products`, `capped`, `masked` or `weights`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Capped => "capped",
            Self::Masked => "masked",
            Self::Weights => "weights",
        }
    }
}
