//! tilework
pub mod dense;
mod element;
pub mod elementwise;
mod error;
pub mod gpu;
mod plan;
pub mod primitives;
pub mod program;
pub mod reference;
pub mod shader;
mod shape;

pub use dense::{Activation, Gemm, GemmBias};
pub use element::{DType, Element};
pub use elementwise::{Axpy, Map, MapFn, Zip, ZipFn};
pub use error::{Error, ErrorKind, Result};
pub use gpu::{Buffer, Gpu, GpuOptions, Recorder, Slice};
pub use plan::{Plan, Plannable, Report};
pub use primitives::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Sum};

/// Everything that a program which records ops wants in scope.
pub mod prelude {
    pub use crate::gpu::Arg;
    pub use crate::{Activation, Axpy, Gemm, GemmBias, Map, MapFn, Zip, ZipFn};
    pub use crate::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Sum};
    pub use crate::{Buffer, Gpu, GpuOptions, Plannable, Recorder, Slice};
}

/// Every op, by family: the registry that tests, benches and the `op` example iterate.
pub fn ops() -> impl Iterator<Item = &'static program::OpInfo> {
    elementwise::OPS.iter().chain(primitives::OPS).chain(dense::OPS)
}
