//! Calls of one line, matrices on a device, solvers: what programs without GPU code use.

mod calls;
mod driven;
mod forms;
mod matrix;
mod solver;

pub use driven::{Driven, MatrixJob};
pub use forms::{AnyBuffer, Formed};
pub use matrix::DeviceMatrix;
pub use solver::Solver;
