//! Ops by names, on CUDA: which of them it has, and of which element types.

use super::{CudaExecutable, CudaGpu, CudaOp, CudaProfile, CudaProgram};
#[cfg(feature = "attention")]
use crate::attention::Attention;
#[cfg(feature = "conv")]
use crate::conv::Conv2d;
#[cfg(feature = "dense")]
use crate::dense::{Gemm, GemmBatched};
use crate::element::Element;
use crate::elementwise::Zip;
use crate::error::{Result, err};
#[cfg(feature = "primitives")]
use crate::primitives::{Max, Min, Prod, Scan, Sum};
use crate::program::Form;
use half::f16;

/// The program, if the form is of the op `D` for elements of `T`.
fn lowered<T: Element, D: CudaOp<T> + 'static>(
    form: &Form,
    profile: &CudaProfile,
) -> Option<Result<CudaProgram>> {
    let op = form.descriptor::<D>().filter(|_| form.dtype() == T::DTYPE)?;
    Some(op.lower(profile))
}

/// One for each op and type.
type Try = fn(&Form, &CudaProfile) -> Option<Result<CudaProgram>>;

macro_rules! all {
    ($($(#[$on:meta])? $op:ty: $t:ty;)+) => { &[$($(#[$on])? lowered::<$t, $op>),+] };
}

const ALL: &[Try] = all! {
    #[cfg(feature = "dense")]
    Gemm: f32;
    #[cfg(feature = "dense")]
    Gemm: f16;
    #[cfg(feature = "dense")]
    GemmBatched: f32;
    #[cfg(feature = "dense")]
    GemmBatched: f16;
    #[cfg(feature = "attention")]
    Attention: f16;
    #[cfg(feature = "conv")]
    Conv2d: f32;
    Zip: f32;
    Zip: f16;
    Zip: i32;
    Zip: u32;
    #[cfg(feature = "primitives")]
    Scan<Sum>: f32;
    #[cfg(feature = "primitives")]
    Scan<Sum>: i32;
    #[cfg(feature = "primitives")]
    Scan<Sum>: u32;
    #[cfg(feature = "primitives")]
    Scan<Prod>: f32;
    #[cfg(feature = "primitives")]
    Scan<Prod>: i32;
    #[cfg(feature = "primitives")]
    Scan<Prod>: u32;
    #[cfg(feature = "primitives")]
    Scan<Min>: f32;
    #[cfg(feature = "primitives")]
    Scan<Min>: i32;
    #[cfg(feature = "primitives")]
    Scan<Min>: u32;
    #[cfg(feature = "primitives")]
    Scan<Max>: f32;
    #[cfg(feature = "primitives")]
    Scan<Max>: i32;
    #[cfg(feature = "primitives")]
    Scan<Max>: u32;
};

impl Form {
    /// What will run on CUDA: as [`CudaOp::lower`].
    ///
    /// # Errors
    /// Those of the op; [`Unsupported`](crate::ErrorKind::Unsupported) for an op or a type that has no kernel on CUDA.
    pub fn lower_on_cuda(&self, profile: &CudaProfile) -> Result<CudaProgram> {
        let found = ALL.iter().find_map(|lowered| lowered(self, profile));
        found.unwrap_or_else(|| {
            let op = self.settings().map_or("this op", |settings| settings.op().name);
            Err(err!(
                Unsupported,
                "{op}: no kernel on CUDA for it with {}; run it on another backend, such as vulkan",
                self.dtype()
            ))
        })
    }
}

impl CudaGpu {
    /// Plans an op that was formed by names: as [`plan`](crate::Plannable::plan).
    ///
    /// # Errors
    /// As [`Form::lower_on_cuda`], and those of compiling its kernels.
    pub fn plan_form(&self, form: &Form) -> Result<CudaExecutable> {
        self.prepare_lowered(form.lower_on_cuda(self.profile())?)
    }
}
