//! One-line calls, matrices on a device, and solvers.

mod calls;
#[cfg(feature = "cuda")]
mod cuda_op_calls;
#[cfg(feature = "sparse")]
mod driven;
#[cfg(feature = "sparse")]
mod matrix;
mod op_calls;
#[cfg(feature = "attention")]
mod pages;
#[cfg(feature = "sparse")]
mod solver;

#[cfg(feature = "cuda")]
pub use cuda_op_calls::CudaReadyCall;
#[cfg(feature = "sparse")]
pub use driven::{Driven, MatrixJob};
#[cfg(feature = "sparse")]
pub use matrix::{DeviceList, DeviceMatrix};
pub use op_calls::{AnyBuffer, ReadyCall};
#[cfg(feature = "sparse")]
pub use solver::Solver;
