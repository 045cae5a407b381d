//! What `solve` and `pagerank` share: matrices from files and to a device, vectors, a progress bar, and pictures.

mod picture;

use super::failure::open_file;
pub(crate) use super::failure::{Failure, exit_code, open_gpu};
use indicatif::{ProgressBar, ProgressStyle};
#[cfg(test)]
pub(crate) use picture::pattern;
pub(crate) use picture::{plot, spy};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;
use tilework::io::matrix_market::{self, Dense, Matrix};
use tilework::sparse::{Csr, Duplicates};
use tilework::{DeviceMatrix, Gpu};

/// What `--format` may be.
pub(crate) const FORMATS: [&str; 8] = ["auto", "coo", "csr", "csc", "ell", "jds", "hybrid", "sell"];

fn read(path: &Path) -> Result<Matrix, Failure> {
    let (file, _) = open_file(path)?;
    let matrix = matrix_market::read(BufReader::with_capacity(1 << 20, file));
    matrix.map_err(|e| Failure::from(e).at(path))
}

/// A sparse and square matrix; entries at one position are added up.
pub(crate) fn read_square(path: &Path) -> Result<Csr, Failure> {
    let Matrix::Sparse(triplets) = read(path)? else {
        return Err(Failure::bad_input("an array file; a coordinate file is wanted").at(path));
    };
    if triplets.rows != triplets.cols || triplets.rows == 0 {
        let (rows, cols) = (triplets.rows, triplets.cols);
        return Err(Failure::bad_input(format!("{rows} x {cols}; it must be square, and not empty")).at(path));
    }
    Ok(Csr::from_triplets(&triplets, Duplicates::Sum)?)
}

/// A vector of `n` elements: a column or a row, as an array or by coordinates.
pub(crate) fn read_vector(path: &Path, n: usize) -> Result<Vec<f32>, Failure> {
    let matrix = read(path)?;
    let (rows, cols) = match &matrix {
        Matrix::Sparse(triplets) => (triplets.rows, triplets.cols),
        Matrix::Dense(dense) => (dense.rows, dense.cols),
    };
    if rows.min(cols) != 1 || rows.max(cols) != n {
        return Err(
            Failure::bad_input(format!("{rows} x {cols}; a column of {n} elements is wanted")).at(path)
        );
    }
    Ok(match matrix {
        Matrix::Dense(dense) => dense.values,
        Matrix::Sparse(triplets) => {
            let mut values = vec![0.0; n];
            for ((row, col), value) in triplets.row_idxs.iter().zip(&triplets.col_idxs).zip(&triplets.values)
            {
                values[*row.max(col) as usize] += value;
            }
            values
        }
    })
}

/// Writes a column.
pub(crate) fn write_vector(path: &Path, values: Vec<f32>) -> Result<(), Failure> {
    let dense = Dense { rows: values.len(), cols: 1, values };
    Ok(matrix_market::write_file(path, &Matrix::Dense(dense))?)
}

/// Brings a matrix to the device in this format, or the one that suits it; and says which, and why.
pub(crate) fn upload(gpu: &Gpu, csr: &Csr, format: &str) -> Result<(DeviceMatrix, String), Failure> {
    let seen = csr.analyse();
    let (name, why) = match format {
        "auto" => seen.format(),
        _ => (format, "asked for by name".to_owned()),
    };
    let a = match name {
        "coo" => gpu.upload_matrix(&csr.to_coo())?,
        "csc" => gpu.upload_matrix(&csr.to_csc())?,
        "ell" => gpu.upload_matrix(&csr.to_ell()?)?,
        "jds" => gpu.upload_matrix(&csr.to_jds())?,
        "hybrid" => gpu.upload_matrix(&csr.to_hybrid(seen.hybrid_width)?)?,
        "sell" => gpu.upload_matrix(&csr.to_sell(32, 1024)?)?,
        _ => gpu.upload_matrix(csr)?,
    };
    Ok((a, format!("{name} ({why})")))
}

/// A `--format` that there is.
pub(crate) fn known_format(format: String) -> Result<String, Failure> {
    if FORMATS.contains(&format.as_str()) {
        return Ok(format);
    }
    Err(Failure::bad_input(format!("--format {format}: there are {}", FORMATS.join(", "))))
}

/// A bar of iterations on standard error, with the last residual; hidden where that is not a terminal.
pub(crate) fn progress(iterations: usize) -> ProgressBar {
    let bar = ProgressBar::new(iterations as u64);
    let template = "{bar:30} {human_pos} of at most {human_len} iterations, residual {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
