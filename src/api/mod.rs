//! One-line calls, matrices on a device, and solvers.

mod calls;
#[cfg(feature = "cuda")]
mod cuda_forms;
mod driven;
mod forms;
mod matrix;
mod solver;

#[cfg(feature = "cuda")]
pub use cuda_forms::CudaFormed;
pub use driven::{Driven, MatrixJob};
pub use forms::{AnyBuffer, Formed};
pub use matrix::DeviceMatrix;
pub use solver::Solver;
