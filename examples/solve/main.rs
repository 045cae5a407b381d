//! Solves a sparse linear system on the device.
//!
//! ```sh
//! cargo run --release --example solve -- bcsstk16.mtx --spy bcsstk16.png --plot residuals.svg
//! cargo run --release --example solve -- A.mtx b.mtx -o x.mtx --tol 1e-6
//! ```
//!
//! The matrix must be symmetric positive definite. The solver is conjugate gradients, whose dot products and step
//! lengths stay on the device. Without `b` the right side is chosen so that the solution is all ones. The processor
//! computes the residual of the result in f64. Exit code 1 if it does not converge or the device fails, 2 for bad
//! input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("solve", std::io::stdout().lock(), cli::run)
}
