use crate::program::prelude::*;

/// How exact the sums of a matrix product are, and the hardware that may compute them.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b, c) = (gpu.upload(&[3.0f32, 4.0])?, gpu.upload(&[5.0f32, 6.0])?, gpu.alloc::<f32>(1)?);
/// // Tensor cores where the device offers them to this crate; sums of f32 elsewhere.
/// let gemm = Gemm::new(1, 1, 2);
/// let fast = gemm.clone().precision(Precision::Tensor).plan::<f32>(&gpu);
/// let plan = fast.or_else(|_| gemm.plan::<f32>(&gpu))?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [39.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// A device without tensor cores never falls back by itself:
///
/// ```
/// use tilework::dense::{Gemm, Precision};
/// use tilework::program::{DeviceProfile, Op};
///
/// let gemm = Gemm::new(4096, 4096, 4096).precision(Precision::Tensor);
/// let program = Op::<f32>::lower(&gemm, &DeviceProfile::h100())?;
/// assert!(program.variant() == "coop" && program.decision.why.contains("rounded to f16"));
/// let e = Op::<f32>::lower(&gemm, &DeviceProfile::mesa()).unwrap_err();
/// assert!(e.to_string().contains("Precision::Strict"));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// Below, `u` = 2^-24, `h` = 2^-11, and |A| |B| is the product of the absolute values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Multiplies exactly and sums in f32. Factors of f32 are multiplied and added by fused multiply-adds: with k
    /// terms the error is at most about `k u |A| |B|`; with random signs it grows with the square root of k instead.
    /// Factors of f16 run on cooperative matrices where the device has them and that is faster: the products are
    /// exact there too, and the sums have at most four times the error, because the hardware truncates instead of
    /// rounding. Runs on every device.
    #[default]
    Strict,
    /// As `Strict`, by fused multiply-adds for every type. Runs on every device.
    Exact,
    /// Multiplies f32 on cooperative matrices, about as exactly as `Strict`. Each row of op(A) and each column of
    /// op(B) is scaled by a power of two, each element is split into two halves of f16, and three of the four
    /// products of halves are summed in f32. An element keeps 22 bits, down to 2^-39 of the largest of its row or
    /// column; the part that is dropped adds some `4 u |A| |B|`. Infinities may come out as NaN: infinity times a
    /// half that is 0 is NaN. Takes scratch for the halves. On CUDA the halves are of tf32, which has the exponents
    /// of f32: nothing is scaled, and only `wgmma` takes scratch.
    Split,
    /// Multiplies on cooperative matrices with sums of f32. Factors of f16 are used directly. Those of f32 are
    /// rounded to f16, with an error of up to `2 h |A| |B|`: numbers below 2^-24 are lost, and those above 65504
    /// become infinities. On CUDA they are rounded to tf32, as exact as f16 and with the range of f32. The sums
    /// have at most four times the error of `Exact`.
    Tensor,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Self; 4] = [Self::Strict, Self::Exact, Self::Split, Self::Tensor];

    /// The option of ops with a precision; `fast` is another word for `split`.
    pub(crate) const SETTING: Setting =
        Setting::word("precision", || vec!["strict", "exact", "split", "tensor", "fast"]);

    pub(crate) fn asked(settings: &Settings) -> Result<Self> {
        Ok(match settings.choice(Self::SETTING.name)? {
            "split" | "fast" => Self::Split,
            "tensor" => Self::Tensor,
            "exact" => Self::Exact,
            _ => Self::Strict,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Strict => "Precision::Strict",
            Self::Exact => "Precision::Exact",
            Self::Split => "Precision::Split",
            Self::Tensor => "Precision::Tensor",
        }
    }
}
