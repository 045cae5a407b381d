//! `op spconvert`: a matrix through a format and back, on the device.

use super::array::refuse;
use super::failure::Failure;
use super::{Request, measure};
use std::path::Path;
use tilework::io::matrix_market::{self, Matrix};
use tilework::prelude::*;
use tilework::sparse::{Csr, HostMatrix, Target};

/// Where the matrix goes.
pub(crate) fn target(request: &Request) -> Result<&Path, Failure> {
    match request.outputs.as_slice() {
        [path] => Ok(path),
        others => Err(refuse!("spconvert: {} output files given with -o, 1 wanted", others.len())),
    }
}

pub(crate) fn run(gpu: &Gpu, request: &Request, matrix: &Csr, through: Target) -> Result<(), Failure> {
    let path = target(request)?;
    let a = gpu.upload_matrix(matrix)?;
    let there = gpu.convert_matrix(&a, through)?;
    let back = gpu.convert_matrix(&gpu.convert_matrix(&there, Target::Csr)?, Target::Coo)?;
    let coordinates = match back.read()? {
        HostMatrix::Coo(coordinates) => coordinates,
        other => other.to_csr().to_coo(),
    };
    matrix_market::write_file(path, &Matrix::Sparse(coordinates))?;
    let op = Spconvert::new(a.stored(), there.stored()).variant(&request.variant);
    let plan = op.plan::<f32>(gpu)?;
    measure(gpu, request, || plan.report(), |rec| plan.record(rec, &a, &there))
}
