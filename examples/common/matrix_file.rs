//! Matrix Market files.

use super::{Failure, open_file};
use std::io::BufReader;
use std::path::Path;
use tilework::io::matrix_market::{self, Matrix, Triplets};

/// Reads a dense or a sparse matrix.
pub(crate) fn read(path: &Path) -> Result<Matrix, Failure> {
    let (file, _) = open_file(path)?;
    let matrix = matrix_market::read(BufReader::with_capacity(1 << 20, file));
    matrix.map_err(|e| Failure::from(e).at(path))
}

/// Reads the entries of a coordinate file.
pub(crate) fn read_sparse(path: &Path) -> Result<Triplets, Failure> {
    match read(path)? {
        Matrix::Sparse(triplets) => Ok(triplets),
        Matrix::Dense(_) => Err(Failure::bad_input("is an array file; expected a coordinate file").at(path)),
    }
}
