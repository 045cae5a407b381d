//! How exact a product is.

use crate::error::Result;
use crate::program::{Setting, Settings};

/// How exact the sums of a matrix product are, and what they may be computed by.
///
/// With `u` = 2^-24, `h` = 2^-11 and |A| |B| the product with every term made positive:
///
/// ```
/// use tilework::dense::{Gemm, Precision};
/// use tilework::program::{DeviceProfile, Op};
///
/// let gemm = Gemm::new(4096, 4096, 4096).precision(Precision::Tensor);
/// let program = Op::<f32>::lower(&gemm, &DeviceProfile::h100())?;
/// assert!(program.variant() == "coop" && program.decision.why.contains("rounded to f16"));
/// // There is nothing to fall back to unasked.
/// let e = Op::<f32>::lower(&gemm, &DeviceProfile::mesa()).unwrap_err();
/// assert!(e.to_string().contains("Precision::Strict"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Products and sums of f32. Of k terms the error is at most about `k u |A| |B|`, and for signs at random grows with
    /// the square root of k instead. Runs anywhere.
    #[default]
    Strict,
    /// About as exact as `Strict`, by cooperative matrices, for factors of f32. Each row of op(A) and each column of op(B)
    /// is scaled by a power of two, each element split into two halves of f16, and three of the four products of halves
    /// are summed in f32. An element keeps 22 bits, and at least 2^-39 of the greatest of its row or column; what is
    /// left out adds some `4 u |A| |B|`. Infinities may come out as NaN: one times a half that is 0 is no number. Takes
    /// scratch for the halves. On CUDA the halves are of tf32, which has the exponents of f32: nothing is scaled, and `wgmma`
    /// alone takes scratch.
    Split,
    /// By cooperative matrices, with sums of f32. Factors of f16 are taken as they are; those of f32 are rounded to f16,
    /// which errs by up to `2 h |A| |B|`, loses what is below 2^-24 and makes infinities of what is above 65504; on CUDA to
    /// tf32, as exact as f16 and as wide as f32. The sums
    /// err as those of `Strict` do, up to a small factor, since the hardware cuts off instead of rounding.
    Tensor,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Split, Self::Tensor];

    /// The option of an op that has it; `fast` is another word for `split`.
    pub(crate) const SETTING: Setting =
        Setting::word("precision", || vec!["strict", "split", "tensor", "fast"]);

    /// What the option says.
    pub(crate) fn asked(settings: &Settings) -> Result<Self> {
        Ok(match settings.choice(Self::SETTING.name)? {
            "split" | "fast" => Self::Split,
            "tensor" => Self::Tensor,
            _ => Self::Strict,
        })
    }

    /// Its name in Rust, for texts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Strict => "Precision::Strict",
            Self::Split => "Precision::Split",
            Self::Tensor => "Precision::Tensor",
        }
    }
}
