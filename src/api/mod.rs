//! Calls of one line, matrices on a device, solvers: what programs without GPU code use.

mod calls;
mod matrix;
mod solver;

pub use matrix::DeviceMatrix;
pub use solver::Solver;
