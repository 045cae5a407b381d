//! Matrix Market files: the text format in which sparse matrices are published.
//!
//! [`read`] takes `coordinate` and `array` files with `real`, `integer` or `pattern` values that are `general`,
//! `symmetric` or `skew-symmetric`; comments, blank lines, both line ends, and gzip, detected by the first bytes. For
//! any other file the error names the line and the fault. The format: R. F. Boisvert, R. Pozo and K. A. Remington, *The
//! Matrix Market Exchange Formats*, 1996.
//!
//! # Example
//! ```
//! use tilework::io::matrix_market::{self, Matrix, Triplets};
//!
//! let text = "%%MatrixMarket matrix coordinate real symmetric\n% two springs\n2 2 2\n1 1 4\n2 1 -1\n";
//! let Matrix::Sparse(springs) = matrix_market::read(text.as_bytes())? else { panic!("a dense matrix") };
//! // Symmetric files omit the upper half; the reader adds it.
//! assert_eq!(springs.row_idxs, [0, 1, 0]);
//! assert_eq!(springs.col_idxs, [0, 0, 1]);
//! assert_eq!(springs.values, [4.0, -1.0, -1.0]);
//!
//! let mut written = Vec::new();
//! matrix_market::write(&mut written, &Matrix::Sparse(springs))?;
//! assert!(written.starts_with(b"%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4\n"));
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! [`Csr::from_triplets`](crate::sparse::Csr::from_triplets) sorts the entries, and
//! [`Gpu::upload_matrix`](crate::Gpu::upload_matrix) puts the matrix on the device, for products and solvers:
//! ```no_run
//! use tilework::io::matrix_market::{self, Matrix};
//! use tilework::prelude::*;
//! use tilework::sparse::{Csr, Duplicates};
//!
//! let Matrix::Sparse(entries) = matrix_market::read_file("bcsstk01.mtx.gz")? else { panic!("it is sparse") };
//! let gpu = Gpu::new()?;
//! let a = gpu.upload_matrix(&Csr::from_triplets(&entries, Duplicates::Sum)?)?;
//! let (b, x) = (gpu.upload(&vec![1.0f32; entries.rows])?, gpu.alloc_zeroed::<f32>(entries.rows)?);
//! let solution = gpu.conjugate_gradient(&ConjugateGradient::new(a.layout()))?.solve(&a, &b, &x, |_, _| ())?;
//! println!("{:?}: {:?}", solution.outcome, x.read()?);
//! # Ok::<(), tilework::Error>(())
//! ```

pub use super::triplets::Triplets;
use super::write_aside;
use crate::error::{Result, err, filled, make_room, with_room};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

/// A matrix from a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// From a `coordinate` file.
    Sparse(Triplets),
    /// From an `array` file.
    Dense(Dense),
}

/// A dense matrix, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dense {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// rows x cols values.
    pub values: Vec<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueField {
    Real,
    Integer,
    Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

const OP: &str = "matrix market";

/// Maximum entries to allocate before reading them, because the header may be wrong.
const TRUSTED: usize = 1 << 20;

/// Longer lines are malformed.
const LONGEST_LINE: usize = 1 << 12;

/// Reads a matrix.
///
/// # Errors
/// - [`Malformed`](crate::ErrorKind::Malformed): the text names the line and the fault.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): complex values.
/// - [`Io`](crate::ErrorKind::Io): the source fails.
pub fn read(mut source: impl BufRead) -> Result<Matrix> {
    let start = source.fill_buf().map_err(|e| err!(Io, "matrix market: cannot read: {e}"))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Lines::new(BufReader::new(MultiGzDecoder::new(source))).matrix();
    }
    Lines::new(source).matrix()
}

/// Reads a file: see [`read`].
///
/// # Errors
/// As [`read`]; the text names the file.
pub fn read_file(path: impl AsRef<Path>) -> Result<Matrix> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|e| err!(Io, "cannot open {}: {e}", path.display()))?;
    read(BufReader::with_capacity(1 << 20, file)).map_err(|e| e.context(&path.display().to_string()))
}

/// Writes a matrix as a `general` file of `real` values, in the order given. Reading it back gives the same values.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) if lists differ in length or an index is out of range;
/// [`Io`](crate::ErrorKind::Io) if the target fails.
pub fn write(target: impl Write, matrix: &Matrix) -> Result<()> {
    let mut target = BufWriter::with_capacity(1 << 20, target);
    match matrix {
        Matrix::Sparse(matrix) => write_sparse(&mut target, matrix)?,
        Matrix::Dense(matrix) => write_dense(&mut target, matrix)?,
    }
    target.flush().map_err(|e| failed(&e))
}

/// Writes a file by [`write_aside`], compressed if its name ends with `.gz`.
///
/// # Errors
/// As [`write()`] and [`write_aside`]; the text names the file.
pub fn write_file(path: impl AsRef<Path>, matrix: &Matrix) -> Result<()> {
    let path = path.as_ref();
    let compressed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    write_aside(path, |file| {
        if !compressed {
            return write(file, matrix).map_err(io::Error::other);
        }
        let mut packed = GzEncoder::new(file, Compression::default());
        write(&mut packed, matrix).map_err(io::Error::other)?;
        packed.finish().map(drop)
    })
}

fn failed(e: &io::Error) -> crate::Error {
    err!(Io, "matrix market: cannot write: {e}")
}

fn write_sparse(target: &mut impl Write, matrix: &Triplets) -> Result<()> {
    let Triplets { rows, cols, row_idxs, col_idxs, values } = matrix;
    let [n, n_cols, n_values] = [row_idxs.len(), col_idxs.len(), values.len()];
    if n != n_cols || n != n_values {
        return Err(err!(
            Shape,
            "matrix market: {n} row indices, {n_cols} column indices and {n_values} values; the numbers must be equal"
        ));
    }
    writeln!(target, "%%MatrixMarket matrix coordinate real general\n{rows} {cols} {n}").map_err(|e| failed(&e))?;
    for ((&row, &col), value) in row_idxs.iter().zip(col_idxs).zip(values) {
        if row as usize >= *rows || col as usize >= *cols {
            return Err(err!(
                Shape,
                "matrix market: an entry at row {row}, column {col} is outside the {rows} x {cols} matrix"
            ));
        }
        writeln!(target, "{} {} {value}", u64::from(row) + 1, u64::from(col) + 1).map_err(|e| failed(&e))?;
    }
    Ok(())
}

fn write_dense(target: &mut impl Write, matrix: &Dense) -> Result<()> {
    let Dense { rows, cols, values } = matrix;
    if rows.checked_mul(*cols) != Some(values.len()) {
        return Err(err!(
            Shape,
            "matrix market: {} values for a {rows} x {cols} matrix; use one for each element",
            values.len()
        ));
    }
    writeln!(target, "%%MatrixMarket matrix array real general\n{rows} {cols}").map_err(|e| failed(&e))?;
    // Without rows there are no lines, however many columns.
    for col in 0..if *rows == 0 { 0 } else { *cols } {
        for row in 0..*rows {
            writeln!(target, "{}", values[row * cols + col]).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// Reads the next line. Returns false at the end.
    fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let mut limited = io::Read::take(&mut self.source, LONGEST_LINE as u64);
        let read = limited
            .read_until(b'\n', &mut self.line)
            .map_err(|e| err!(Io, "matrix market: cannot read line {}: {e}", self.number))?;
        if read == LONGEST_LINE && self.line.last() != Some(&b'\n') {
            return Err(self.wrong(&format!("a line of more than {LONGEST_LINE} bytes")));
        }
        Ok(read > 0)
    }

    /// Reads the next line that is not blank or a comment. Returns false at the end.
    fn next(&mut self) -> Result<bool> {
        loop {
            if !self.advance()? {
                return Ok(false);
            }
            match self.line.trim_ascii_start().first() {
                None | Some(b'%') => {}
                Some(_) => return Ok(true),
            }
        }
    }

    fn wrong(&self, what: &str) -> crate::Error {
        err!(Malformed, "matrix market: line {}: {what}", self.number)
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.line.trim_ascii()).into_owned();
        if text.chars().count() <= 60 { text } else { text.chars().take(57).chain("...".chars()).collect() }
    }

    fn matrix(mut self) -> Result<Matrix> {
        let (sparse, field, symmetry) = self.banner()?;
        if !self.next()? {
            return Err(self.wrong("the file ends before the size line"));
        }
        let (rows, cols, entries) = self.sizes(sparse)?;
        if symmetry != Symmetry::General && rows != cols {
            return Err(self.wrong(&format!("{rows} x {cols} is not square; a symmetric matrix must be")));
        }
        let matrix = if sparse {
            Matrix::Sparse(self.sparse(rows, cols, entries, field, symmetry)?)
        } else {
            Matrix::Dense(self.dense(rows, cols, field, symmetry)?)
        };
        if self.next()? {
            return Err(self.wrong(&format!("`{}` after the last of {entries} entries", self.shown())));
        }
        Ok(matrix)
    }

    /// Reads the first line: whether the matrix is sparse, the value type and the symmetry.
    fn banner(&mut self) -> Result<(bool, ValueField, Symmetry)> {
        self.advance()?;
        let text = String::from_utf8_lossy(&self.line).to_lowercase();
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        let unsupported = |what: &str| err!(Unsupported, "matrix market: line 1: {what}");
        let &["%%matrixmarket", "matrix", format, field, symmetry] = words.as_slice() else {
            return Err(
                self.wrong(&format!("`{}` is not `%%MatrixMarket matrix FORMAT VALUES SYMMETRY`", self.shown()))
            );
        };
        let sparse = match format {
            "coordinate" => true,
            "array" => false,
            _ => return Err(self.wrong(&format!("the format `{format}`; use coordinate or array"))),
        };
        let field = match field {
            "real" | "double" => ValueField::Real,
            "integer" => ValueField::Integer,
            "pattern" if sparse => ValueField::Pattern,
            "pattern" => return Err(self.wrong("a pattern has no values, so it cannot be an array")),
            "complex" => return Err(unsupported("complex values; use real, integer or pattern")),
            _ => {
                return Err(self.wrong(&format!("values of `{field}`; use real, integer or pattern")));
            }
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field != ValueField::Pattern => Symmetry::Skew,
            "skew-symmetric" => {
                return Err(self.wrong("a pattern has no signs, so it cannot be skew-symmetric"));
            }
            "hermitian" => {
                return Err(unsupported("hermitian matrices are complex; use general, symmetric or skew-symmetric"));
            }
            _ => {
                return Err(self.wrong(&format!("the symmetry `{symmetry}`; use general, symmetric or skew-symmetric")));
            }
        };
        Ok((sparse, field, symmetry))
    }

    /// Parses rows, columns and entries.
    fn sizes(&self, sparse: bool) -> Result<(usize, usize, usize)> {
        let words: Vec<_> = self.line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
        let count = |word: &[u8]| {
            whole(word).ok_or_else(|| self.wrong(&format!("`{}`: sizes must be whole numbers", self.shown())))
        };
        let sizes = words.iter().map(|w| count(w)).collect::<Result<Vec<_>>>()?;
        let max = 1u64 << 32;
        match (sparse, sizes.as_slice()) {
            (_, &[rows, cols, ..]) if rows > max || cols > max => {
                Err(self.wrong(&format!("{rows} x {cols}: indices have 32 bits")))
            }
            (true, &[rows, cols, entries]) => {
                let entries = usize::try_from(entries).map_err(|_| self.wrong("the entries exceed memory"))?;
                Ok((rows as usize, cols as usize, entries))
            }
            (false, &[rows, cols]) => {
                let entries = (rows as usize).checked_mul(cols as usize);
                let entries = entries.ok_or_else(|| self.wrong("the elements exceed memory"))?;
                Ok((rows as usize, cols as usize, entries))
            }
            (true, _) => Err(self.wrong(&format!("`{}` is not `ROWS COLUMNS ENTRIES`", self.shown()))),
            (false, _) => Err(self.wrong(&format!("`{}` is not `ROWS COLUMNS`", self.shown()))),
        }
    }

    fn sparse(
        &mut self, rows: usize, cols: usize, entries: usize, field: ValueField, symmetry: Symmetry,
    ) -> Result<Triplets> {
        let room = entries.min(TRUSTED);
        let (row_idxs, col_idxs) = (with_room(OP, room)?, with_room(OP, room)?);
        let mut matrix = Triplets { rows, cols, row_idxs, col_idxs, values: with_room(OP, room)? };
        // Entries that a symmetric file omits. They are appended at the end.
        let mut mirrored = Vec::new();
        for read in 0..entries {
            if !self.next()? {
                return Err(self.wrong(&format!("the file ends after {read} of {entries} entries")));
            }
            let (row, col, value) = self.entry(rows, cols, field)?;
            if symmetry == Symmetry::Skew && row == col && value != 0.0 {
                return Err(self
                    .wrong(&format!("`{}` is on the diagonal, which is 0 in a skew-symmetric matrix", self.shown())));
            }
            if symmetry != Symmetry::General && row != col {
                push(&mut mirrored, matrix.values.len())?;
            }
            push(&mut matrix.row_idxs, row)?;
            push(&mut matrix.col_idxs, col)?;
            push(&mut matrix.values, value)?;
        }
        make_room(OP, &mut matrix.row_idxs, mirrored.len())?;
        make_room(OP, &mut matrix.col_idxs, mirrored.len())?;
        make_room(OP, &mut matrix.values, mirrored.len())?;
        for i in mirrored {
            let value = matrix.values[i];
            matrix.row_idxs.push(matrix.col_idxs[i]);
            matrix.col_idxs.push(matrix.row_idxs[i]);
            matrix.values.push(if symmetry == Symmetry::Skew { -value } else { value });
        }
        Ok(matrix)
    }

    fn entry(&self, rows: usize, cols: usize, field: ValueField) -> Result<(u32, u32, f32)> {
        let mut words = self.line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let parts = (words.next(), words.next(), words.next(), words.next());
        let index = |word: &[u8], extent: usize, what: &str| -> Result<u32> {
            let number = whole(word)
                .ok_or_else(|| self.wrong(&format!("`{}`: a {what} is a whole number of at least 1", self.shown())))?;
            if number == 0 || number > extent as u64 {
                return Err(self.wrong(&format!("{what} {number} is outside the {rows} x {cols} matrix")));
            }
            Ok((number - 1) as u32)
        };
        let (row, col, value) = match (field, parts) {
            (ValueField::Pattern, (Some(row), Some(col), None, None)) => (row, col, None),
            (ValueField::Real | ValueField::Integer, (Some(row), Some(col), Some(value), None)) => {
                (row, col, Some(value))
            }
            (ValueField::Pattern, _) => {
                return Err(self.wrong(&format!("`{}` is not `ROW COLUMN`", self.shown())));
            }
            _ => return Err(self.wrong(&format!("`{}` is not `ROW COLUMN VALUE`", self.shown()))),
        };
        let (row, col) = (index(row, rows, "row")?, index(col, cols, "column")?);
        let value = value.map_or(Ok(1.0), |word| self.value(word, field))?;
        Ok((row, col, value))
    }

    fn value(&self, word: &[u8], field: ValueField) -> Result<f32> {
        let (value, kind) = if field == ValueField::Integer {
            (std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok()).map(|x| x as f32), "an integer")
        } else {
            (number(word), "a number")
        };
        value.ok_or_else(|| self.wrong(&format!("`{}` is not {kind}", String::from_utf8_lossy(word))))
    }

    fn dense(&mut self, rows: usize, cols: usize, field: ValueField, symmetry: Symmetry) -> Result<Dense> {
        // Column-major. A symmetric file has only the lower part.
        let mut columns: Vec<f32> = with_room(OP, (rows * cols).min(TRUSTED))?;
        let total = match symmetry {
            Symmetry::General => rows * cols,
            Symmetry::Symmetric => cols * (cols + 1) / 2,
            Symmetry::Skew => cols * cols.saturating_sub(1) / 2,
        };
        for read in 0..total {
            if !self.next()? {
                return Err(self.wrong(&format!("the file ends after {read} of {total} values")));
            }
            let word = self.line.trim_ascii();
            push(&mut columns, self.value(word, field)?)?;
        }
        let mut values = filled(OP, rows * cols, 0.0)?;
        let mut next = columns.into_iter();
        for col in 0..if rows == 0 { 0 } else { cols } {
            let first = match symmetry {
                Symmetry::General => 0,
                Symmetry::Symmetric => col,
                Symmetry::Skew => col + 1,
            };
            for (row, value) in (first..rows).zip(&mut next) {
                values[row * cols + col] = value;
                match symmetry {
                    Symmetry::General => {}
                    Symmetry::Symmetric => values[col * cols + row] = value,
                    Symmetry::Skew => values[col * cols + row] = -value,
                }
            }
        }
        Ok(Dense { rows, cols, values })
    }
}

/// Appends to a list whose length the file determines.
fn push<T>(list: &mut Vec<T>, element: T) -> Result<()> {
    make_room(OP, list, 1)?;
    list.push(element);
    Ok(())
}

/// Parses a whole number without a sign.
fn whole(word: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for digit in word {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    (!word.is_empty()).then_some(number)
}

/// Parses a number, with Fortran exponents too.
fn number(word: &[u8]) -> Option<f32> {
    let text = std::str::from_utf8(word).ok()?;
    match text.parse::<f64>() {
        Ok(number) => Some(number as f32),
        Err(_) => text.replace(['d', 'D'], "e").parse::<f64>().ok().map(|number| number as f32),
    }
}

#[cfg(test)]
mod tests;
