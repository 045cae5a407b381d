mod gemm;
#[cfg(feature = "quantize")]
mod gemm_int8;
mod narrow;
mod ways;
mod wgmma;

pub(super) use gemm::samples;
#[cfg(feature = "quantize")]
pub(super) use gemm_int8::samples as int8_samples;
