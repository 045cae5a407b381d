//! `op spconvert`: a matrix through a format and back, on the device.

use super::failure::Failure;
use super::{Request, measure};
use std::io::Write;
use tilework::io::matrix_market::{self, Matrix};
use tilework::prelude::*;
use tilework::sparse::{Csr, HostMatrix, Target};

/// Writes the one output.
pub(crate) fn run(
    gpu: &Gpu,
    request: &Request,
    matrix: &Csr,
    through: Target,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let a = gpu.upload_matrix(matrix)?;
    let there = gpu.convert_matrix(&a, through)?;
    let back = gpu.convert_matrix(&gpu.convert_matrix(&there, Target::Csr)?, Target::Coo)?;
    let coordinates = match back.read()? {
        HostMatrix::Coo(coordinates) => coordinates,
        other => other.to_csr()?.to_coo()?,
    };
    let coordinates = Matrix::Sparse(coordinates);
    request.outputs.iter().try_for_each(|path| matrix_market::write_file(path, &coordinates))?;
    let op = Spconvert::new(a.stored(), there.stored()).variant(&request.variant);
    let plan = op.plan::<f32>(gpu)?;
    measure(gpu, request, || plan.report(), |rec| plan.record(rec, &a, &there), out)
}
