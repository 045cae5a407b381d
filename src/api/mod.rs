//! One-line calls, matrices on a device, and solvers.

mod calls;
#[cfg(feature = "cuda")]
mod cuda_forms;
#[cfg(feature = "sparse")]
mod driven;
mod forms;
#[cfg(feature = "sparse")]
mod matrix;
#[cfg(feature = "attention")]
mod pages;
#[cfg(feature = "sparse")]
mod solver;

#[cfg(feature = "cuda")]
pub use cuda_forms::CudaFormed;
#[cfg(feature = "sparse")]
pub use driven::{Driven, MatrixJob};
pub use forms::{AnyBuffer, Formed};
#[cfg(feature = "sparse")]
pub use matrix::{DeviceList, DeviceMatrix};
#[cfg(feature = "sparse")]
pub use solver::Solver;
