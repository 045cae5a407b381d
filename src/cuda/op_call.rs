//! Ops by name on CUDA: the ops and element types that have kernels.

use super::{CudaExecutable, CudaGpu, CudaOp, CudaProfile, CudaProgram};
#[cfg(feature = "attention")]
use crate::attention::Attention;
#[cfg(feature = "conv")]
use crate::conv::Conv2d;
#[cfg(feature = "dense")]
use crate::dense::{Gemm, GemmBatched};
use crate::elementwise::Zip;
#[cfg(feature = "primitives")]
use crate::primitives::{Max, Min, Prod, Scan, Sum};
use crate::program::prelude::*;
#[cfg(feature = "quantize")]
use crate::quantize::GemmInt8;

fn lowered<T: Element, D: CudaOp<T> + 'static>(call: &OpCall, profile: &CudaProfile) -> Option<Result<CudaProgram>> {
    let op = call.descriptor::<D>().filter(|_| call.dtype() == T::DTYPE)?;
    Some(op.lower(profile))
}

type LowerForm = fn(&OpCall, &CudaProfile) -> Option<Result<CudaProgram>>;

macro_rules! all {
    ($(#[$on:meta] $op:ty: $($t:ty),+;)+) => { &[$($(#[$on] lowered::<$t, $op>),+),+] };
}

const ALL: &[LowerForm] = all! {
    #[cfg(feature = "dense")]
    Gemm: f32, f16;
    #[cfg(feature = "dense")]
    GemmBatched: f32, f16;
    #[cfg(feature = "quantize")]
    GemmInt8: i32, f32, f16;
    #[cfg(feature = "attention")]
    Attention: f16;
    #[cfg(feature = "conv")]
    Conv2d: f32;
    #[cfg(feature = "cuda")]
    Zip: f32, f16, i32, u32;
    #[cfg(feature = "primitives")]
    Scan<Sum>: f32, i32, u32;
    #[cfg(feature = "primitives")]
    Scan<Prod>: f32, i32, u32;
    #[cfg(feature = "primitives")]
    Scan<Min>: f32, i32, u32;
    #[cfg(feature = "primitives")]
    Scan<Max>: f32, i32, u32;
};

impl OpCall {
    /// Lowers the op for CUDA, as [`CudaOp::lower`].
    ///
    /// # Errors
    /// As the op; [`Unsupported`](ErrorKind::Unsupported) for an op or element type without a CUDA kernel.
    pub fn lower_on_cuda(&self, profile: &CudaProfile) -> Result<CudaProgram> {
        let found = ALL.iter().find_map(|lowered| lowered(self, profile));
        found.unwrap_or_else(|| {
            let op = self.settings().map_or("this op", |settings| settings.op().name);
            Err(err!(Unsupported, "{op}: no CUDA kernel for {}; use another backend, such as vulkan", self.dtype()))
        })
    }
}

impl CudaGpu {
    /// Plans an op that was built by name, as [`plan`](crate::Plannable::plan).
    ///
    /// # Errors
    /// As [`OpCall::lower_on_cuda`]; compilation errors.
    pub fn plan_call(&self, call: &OpCall) -> Result<CudaExecutable> {
        self.prepare_lowered(call.lower_on_cuda(self.profile())?)
    }
}
