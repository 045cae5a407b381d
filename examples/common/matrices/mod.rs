//! What `solve` and `pagerank` share: matrices from files and to a device, vectors, a progress bar, and pictures.

mod picture;

use super::matrix_file::{read, read_sparse};
use super::pictures::is_png;
use super::{Args, Failure, bar, exit_code, room_for, say};
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

/// What `--format` may be.
pub(crate) const FORMATS: [&str; 9] =
    ["auto", "textbook", "coo", "csr", "csc", "ell", "jds", "hybrid", "sell"];

/// Does what is asked for, or prints the usage, and gives the exit code.
pub(crate) fn run<R>(
    (program, usage): (&str, &str),
    request: Result<Option<R>, Failure>,
    work: impl FnOnce(&R, &mut dyn Write) -> Result<u8, Failure>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = request.and_then(|request| match request {
        Some(request) => work(&request, out),
        None => say(out, &format!("{usage}{USAGE}")).map(|()| 0),
    });
    exit_code(program, result, err)
}

/// A sparse and square matrix; entries at one position are added up.
pub(crate) fn read_square(path: &Path) -> Result<Csr, Failure> {
    let triplets = read_sparse(path)?;
    if triplets.rows != triplets.cols || triplets.rows == 0 {
        let (rows, cols) = (triplets.rows, triplets.cols);
        return Err(Failure::bad_input(format!("{rows} x {cols}; it must be square, and not empty")).at(path));
    }
    let (rows, entries) = (triplets.rows, triplets.values.len());
    // Pointers and some vectors, of which those of the check have 8 bytes an element; the entries, in two formats.
    let words = rows.saturating_mul(12).saturating_add(entries.saturating_mul(6));
    room_for(&format!("{rows} rows with {entries} entries"), words, 4).map_err(|e| e.at(path))?;
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

/// Brings a matrix to the device in this format, or the one that suits it; and says which, and why.
pub(crate) fn upload(gpu: &Gpu, csr: &Csr, format: &str) -> Result<(DeviceMatrix, String), Failure> {
    let seen = csr.analyse();
    let (name, why) = match format {
        "auto" => seen.format(gpu.profile()),
        "textbook" => seen.textbook_format(),
        _ => (format, "asked for by name".to_owned()),
    };
    let mut a = gpu.upload_matrix(csr)?;
    if let Some(target) = Target::named(name).filter(|target| *target != Target::Csr) {
        a = gpu.convert_matrix(&a, target)?;
    }
    Ok((a, format!("{name} ({why})")))
}

/// What both programs can be told.
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

/// What the usage of a program says of them.
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

    /// Takes the option `--name`, which is none of the program's own.
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

    /// Checks that all files that are asked for can be written.
    pub(crate) fn check_outputs(&self) -> Result<(), Failure> {
        Ok(check_outputs([&self.output, &self.plot, &self.spy].into_iter().flatten())?)
    }

    /// Draws where a matrix has entries, if that is asked for.
    pub(crate) fn draw_pattern(&self, csr: &Csr, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(path) = &self.spy else { return Ok(()) };
        picture::spy(path, csr)?;
        say(out, &format!("{}: where the matrix has entries\n", shown(path)))
    }

    /// Runs a solver under a bar of iterations, prints what it came to, and gives it.
    pub(crate) fn watch(
        &self,
        out: &mut dyn Write,
        solve: impl FnOnce(&mut dyn FnMut(usize, f64)) -> tilework::Result<Solution>,
    ) -> Result<Solution, Failure> {
        // The last residual stands behind.
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

    /// Draws the residuals of `matrix` and writes the result, where that is asked for; then the exit code.
    pub(crate) fn finish(
        &self,
        matrix: &Path,
        what: &str,
        solution: &Solution,
        result: Vec<f32>,
        gpu: &Gpu,
        out: &mut dyn Write,
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

/// The iteration of the first residual: some solvers have one before they begin.
fn first(solution: &Solution) -> usize {
    usize::from(solution.history.len() == solution.iterations)
}
