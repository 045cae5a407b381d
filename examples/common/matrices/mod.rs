//! Matrices, vectors, progress and pictures: shared by `solve` and `pagerank`.

mod picture;

use super::matrix_file::{read, read_sparse};
use super::pictures::is_png;
use super::{Args, Failure, bar, room_for, say};
#[cfg(test)]
pub(crate) use picture::pattern;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilework::io::check_outputs;
use tilework::io::matrix_market::{self, Dense, Matrix};
use tilework::io::shown;
use tilework::sparse::{Csr, Duplicates, Outcome, Solution, Target};
use tilework::{DeviceMatrix, Gpu};

/// Values of `--format`.
pub(crate) const FORMATS: [&str; 9] = ["auto", "textbook", "coo", "csr", "csc", "ell", "jds", "hybrid", "sell"];

/// Reads a sparse, square matrix. Duplicate entries are summed.
pub(crate) fn read_square(path: &Path) -> Result<Csr, Failure> {
    let triplets = read_sparse(path)?;
    if triplets.rows != triplets.cols || triplets.rows == 0 {
        let (rows, cols) = (triplets.rows, triplets.cols);
        return Err(Failure::bad_input(format!("{rows} x {cols}; it must be square, and not empty")).at(path));
    }
    let (rows, entries) = (triplets.rows, triplets.values.len());
    // Pointers and vectors, some of 8 bytes per element for the check; entries in two formats.
    let words = rows.saturating_mul(12).saturating_add(entries.saturating_mul(6));
    room_for(&format!("{rows} rows with {entries} entries"), words, 4).map_err(|e| e.at(path))?;
    Ok(Csr::from_triplets(&triplets, Duplicates::Sum)?)
}

/// Reads a vector of `n` elements: a row or a column, dense or sparse.
pub(crate) fn read_vector(path: &Path, n: usize) -> Result<Vec<f32>, Failure> {
    let matrix = read(path)?;
    let (rows, cols) = match &matrix {
        Matrix::Sparse(triplets) => (triplets.rows, triplets.cols),
        Matrix::Dense(dense) => (dense.rows, dense.cols),
    };
    if rows.min(cols) != 1 || rows.max(cols) != n {
        return Err(Failure::bad_input(format!("{rows} x {cols}; expected a column of {n} elements")).at(path));
    }
    Ok(match matrix {
        Matrix::Dense(dense) => dense.values,
        Matrix::Sparse(triplets) => {
            let mut values = vec![0.0; n];
            for ((row, col), value) in triplets.row_idxs.iter().zip(&triplets.col_idxs).zip(&triplets.values) {
                values[*row.max(col) as usize] += value;
            }
            values
        }
    })
}

/// Uploads a matrix in this format, or the most suitable one, and says which and why.
pub(crate) fn upload(gpu: &Gpu, csr: &Csr, format: &str) -> Result<(DeviceMatrix, String), Failure> {
    let seen = csr.analyse();
    let (name, why) = match format {
        "auto" => seen.format(gpu.profile()),
        "textbook" => seen.textbook_format(),
        _ => (format, "requested by name".to_owned()),
    };
    let mut a = gpu.upload_matrix(csr)?;
    if let Some(target) = Target::named(name).filter(|target| *target != Target::Csr) {
        a = gpu.convert_matrix(&a, target)?;
    }
    Ok((a, format!("{name} ({why})")))
}

/// Options of both programs.
pub(crate) struct Options {
    pub(crate) output: Option<PathBuf>,
    pub(crate) tolerance: f32,
    pub(crate) iterations: usize,
    pub(crate) format: String,
    pub(crate) adapter: Option<String>,
    history: bool,
    plot: Option<PathBuf>,
    spy: Option<PathBuf>,
}

/// Their usage.
pub(crate) const USAGE: &str = "  --format NAME        auto, textbook, coo, csr, csc, ell, jds, hybrid or sell (auto)
  --history            print the residual of every iteration
  --plot FILE          draw the residuals, as SVG or PNG
  --spy FILE.png       draw where the matrix has entries
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one); also --device
";

impl Options {
    pub(crate) fn new(tolerance: f32, iterations: usize) -> Self {
        Self {
            output: None,
            tolerance,
            iterations,
            format: "auto".into(),
            adapter: None,
            history: false,
            plot: None,
            spy: None,
        }
    }

    /// Parses the common option `--name`.
    pub(crate) fn take(&mut self, name: &str, args: &mut Args) -> Result<(), Failure> {
        use lexopt::prelude::*;
        match name {
            "tol" => self.tolerance = args.value()?.parse()?,
            "max-iter" => self.iterations = args.value()?.parse()?,
            "format" => {
                let format = args.value()?.string()?;
                if !FORMATS.contains(&format.as_str()) {
                    let text = format!("--format {format}: there are {}", FORMATS.join(", "));
                    return Err(Failure::bad_input(text));
                }
                self.format = format;
            }
            "history" => self.history = true,
            "plot" => {
                let path = PathBuf::from(args.value()?);
                is_png(&path).map_err(Failure::bad_input)?;
                self.plot = Some(path);
            }
            "spy" => {
                let path = PathBuf::from(args.value()?);
                if !is_png(&path).is_ok_and(|png| png) {
                    return Err(Failure::bad_input("--spy: must end with .png").at(&path));
                }
                self.spy = Some(path);
            }
            "adapter" | "device" => {
                if self.adapter.replace(args.value()?.string()?).is_some() {
                    return Err(Failure::bad_input("--adapter and --device are given, which are the same"));
                }
            }
            _ => return Err(lexopt::Arg::Long(name).unexpected().into()),
        }
        Ok(())
    }

    /// Checks that all output files can be written.
    pub(crate) fn check_outputs(&self) -> Result<(), Failure> {
        Ok(check_outputs([&self.output, &self.plot, &self.spy].into_iter().flatten())?)
    }

    /// Draws the pattern of a matrix, if requested.
    pub(crate) fn draw_pattern(&self, csr: &Csr, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(path) = &self.spy else { return Ok(()) };
        picture::spy(path, csr)?;
        say(out, &format!("{}: where the matrix has entries\n", shown(path)))
    }

    /// Runs a solver with a progress bar, prints its result, and returns it.
    pub(crate) fn watch(
        &self, out: &mut dyn Write, solve: impl FnOnce(&mut dyn FnMut(usize, f64)) -> tilework::Result<Solution>,
    ) -> Result<Solution, Failure> {
        // The last residual comes after the message.
        let template = "{bar:30} {human_pos} of at most {human_len} iterations, residual {msg}";
        let bar = bar(self.iterations as u64, template, 100);
        let start = Instant::now();
        let solution = solve(&mut |iteration, residual| {
            bar.set_position(iteration as u64);
            bar.set_message(format!("{residual:.3e}"));
        });
        let milliseconds = 1e3 * start.elapsed().as_secs_f64();
        bar.finish_and_clear();
        let solution = solution?;
        if self.history {
            for (iteration, residual) in (first(&solution)..).zip(&solution.history) {
                say(out, &format!("{iteration:>7} {residual:.6e}\n"))?;
            }
        }
        let each = milliseconds / solution.iterations.max(1) as f64;
        say(out, &format!("{solution}; {milliseconds:.3} ms, {each:.3} ms an iteration\n"))?;
        Ok(solution)
    }

    /// Draws residuals and writes the result, if requested. Returns the exit code.
    pub(crate) fn finish(
        &self, matrix: &Path, what: &str, solution: &Solution, result: Vec<f32>, gpu: &Gpu, out: &mut dyn Write,
    ) -> Result<u8, Failure> {
        if let Some(path) = &self.plot {
            let name = shown(matrix.file_name().unwrap_or_default());
            let title = format!("{name}: {} on {}", solution.outcome, gpu.profile().name);
            let residuals = &solution.history;
            picture::Residuals { title, what, from: first(solution), residuals }.plot(path)?;
            say(out, &format!("{}: the residuals\n", shown(path)))?;
        }
        if let Some(path) = &self.output {
            let dense = Dense { rows: result.len(), cols: 1, values: result };
            matrix_market::write_file(path, &Matrix::Dense(dense))?;
            say(out, &format!("{}: the result\n", shown(path)))?;
        }
        Ok(u8::from(solution.outcome != Outcome::Converged))
    }
}

/// Returns the iteration of the first residual: 0 for solvers that start with one.
fn first(solution: &Solution) -> usize {
    usize::from(solution.history.len() == solution.iterations)
}
