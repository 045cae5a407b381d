//! Matrix Market files: the text format in which sparse matrices are published.
//!
//! [`read`] takes `coordinate` and `array` files, of `real`, `integer` and `pattern` values, `general`, `symmetric`
//! and `skew-symmetric`; comments, blank lines, both line ends, and .gz, recognised by its first bytes. Any other
//! file is an error that names the line and the fault. The format is that of R. F. Boisvert, R. Pozo and K. A.
//! Remington, *The Matrix Market Exchange Formats*, 1996.
//!
//! # Example
//! ```
//! use tilework::io::matrix_market::{self, Matrix, Triplets};
//!
//! let text = "%%MatrixMarket matrix coordinate real symmetric\n% two springs\n2 2 2\n1 1 4\n2 1 -1\n";
//! let Matrix::Sparse(springs) = matrix_market::read(text.as_bytes())? else { panic!("it is sparse") };
//! // The entry that the file leaves out is there.
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

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// Of a `coordinate` file.
    Sparse(Triplets),
    /// Of an `array` file.
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

/// Entries that room is made for before they are read: what a header says need not be so.
const TRUSTED: usize = 1 << 20;

/// Lines longer than this are none of the format.
const LONGEST_LINE: usize = 1 << 12;

/// Reads a matrix.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) with the line and what is wrong;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for complex values and for graphs of other kinds;
/// [`Io`](crate::ErrorKind::Io) where the source fails.
pub fn read(mut source: impl BufRead) -> Result<Matrix> {
    let start = source.fill_buf().map_err(|e| err!(Io, "matrix market: cannot read: {e}"))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Lines::new(BufReader::new(MultiGzDecoder::new(source))).matrix();
    }
    Lines::new(source).matrix()
}

/// [`read`] from a file.
///
/// # Errors
/// As [`read`]; the text names the file.
pub fn read_file(path: impl AsRef<Path>) -> Result<Matrix> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|e| err!(Io, "cannot open {}: {e}", path.display()))?;
    read(BufReader::with_capacity(1 << 20, file)).map_err(|e| e.context(&path.display().to_string()))
}

/// Writes a matrix as a `general` file of `real` values, entries in the order given, each with as many digits as make
/// it come back the same.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) if lists differ in length or an index is beyond the matrix;
/// [`Io`](crate::ErrorKind::Io) where the target fails.
pub fn write(target: impl Write, matrix: &Matrix) -> Result<()> {
    let mut target = BufWriter::with_capacity(1 << 20, target);
    match matrix {
        Matrix::Sparse(matrix) => write_sparse(&mut target, matrix)?,
        Matrix::Dense(matrix) => write_dense(&mut target, matrix)?,
    }
    target.flush().map_err(|e| failed(&e))
}

/// [`write()`] to a file by [`write_aside`]; compressed if its name ends with `.gz`.
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
            "matrix market: {n} row indices, {n_cols} column indices and {n_values} values; there must be as many of each"
        ));
    }
    writeln!(target, "%%MatrixMarket matrix coordinate real general\n{rows} {cols} {n}")
        .map_err(|e| failed(&e))?;
    for ((&row, &col), value) in row_idxs.iter().zip(col_idxs).zip(values) {
        if row as usize >= *rows || col as usize >= *cols {
            return Err(err!(
                Shape,
                "matrix market: an entry at row {row} and column {col} of a matrix of {rows} x {cols}"
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
            "matrix market: {} values for a matrix of {rows} x {cols}; there must be one for each element",
            values.len()
        ));
    }
    writeln!(target, "%%MatrixMarket matrix array real general\n{rows} {cols}").map_err(|e| failed(&e))?;
    // Columns of no rows are no lines, however many.
    for col in 0..if *rows == 0 { 0 } else { *cols } {
        for row in 0..*rows {
            writeln!(target, "{}", values[row * cols + col]).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

/// Lines of a source, counted.
struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// Reads the next line; false at the end.
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

    /// Reads the next line that is neither blank nor a comment; false at the end.
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

    /// The line, for an error.
    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.line.trim_ascii()).into_owned();
        if text.chars().count() <= 60 { text } else { text.chars().take(57).chain("...".chars()).collect() }
    }

    fn matrix(mut self) -> Result<Matrix> {
        let (sparse, field, symmetry) = self.banner()?;
        if !self.next()? {
            return Err(self.wrong("the file ends before the line of sizes"));
        }
        let (rows, cols, entries) = self.sizes(sparse)?;
        if symmetry != Symmetry::General && rows != cols {
            return Err(self.wrong(&format!("{rows} x {cols} is not square, as a symmetric matrix is")));
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

    /// The first line: whether the matrix is sparse, of what values, and how symmetric.
    fn banner(&mut self) -> Result<(bool, ValueField, Symmetry)> {
        self.advance()?;
        let text = String::from_utf8_lossy(&self.line).to_lowercase();
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        let unsupported = |what: &str| err!(Unsupported, "matrix market: line 1: {what}");
        let &["%%matrixmarket", "matrix", format, field, symmetry] = words.as_slice() else {
            return Err(self.wrong(&format!(
                "`{}` is not `%%MatrixMarket matrix FORMAT VALUES SYMMETRY`, with which such a file begins",
                self.shown()
            )));
        };
        let sparse = match format {
            "coordinate" => true,
            "array" => false,
            _ => return Err(self.wrong(&format!("the format `{format}`; there are coordinate and array"))),
        };
        let field = match field {
            "real" | "double" => ValueField::Real,
            "integer" => ValueField::Integer,
            "pattern" if sparse => ValueField::Pattern,
            "pattern" => return Err(self.wrong("a pattern has no values, and an array nothing else")),
            "complex" => return Err(unsupported("complex values; there are real, integer and pattern")),
            _ => {
                return Err(self.wrong(&format!("values of `{field}`; there are real, integer and pattern")));
            }
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field != ValueField::Pattern => Symmetry::Skew,
            "skew-symmetric" => return Err(self.wrong("a pattern has no signs to be skew-symmetric in")),
            "hermitian" => return Err(unsupported("a hermitian matrix, which is complex")),
            _ => {
                return Err(self.wrong(&format!(
                    "the symmetry `{symmetry}`; there are general, symmetric and skew-symmetric"
                )));
            }
        };
        Ok((sparse, field, symmetry))
    }

    /// Rows, columns and entries in the file.
    fn sizes(&self, sparse: bool) -> Result<(usize, usize, usize)> {
        let words: Vec<_> = self.line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
        let count = |word: &[u8]| {
            whole(word).ok_or_else(|| self.wrong(&format!("`{}`: sizes are whole numbers", self.shown())))
        };
        let sizes = words.iter().map(|w| count(w)).collect::<Result<Vec<_>>>()?;
        let most = 1u64 << 32;
        match (sparse, sizes.as_slice()) {
            (_, &[rows, cols, ..]) if rows > most || cols > most => {
                Err(self.wrong(&format!("{rows} x {cols}: an index has 32 bits")))
            }
            (true, &[rows, cols, entries]) => {
                let entries = usize::try_from(entries).map_err(|_| self.wrong("more entries than memory"))?;
                Ok((rows as usize, cols as usize, entries))
            }
            (false, &[rows, cols]) => {
                let entries = (rows as usize).checked_mul(cols as usize);
                let entries = entries.ok_or_else(|| self.wrong("more elements than memory"))?;
                Ok((rows as usize, cols as usize, entries))
            }
            (true, _) => Err(self.wrong(&format!("`{}` is not `ROWS COLUMNS ENTRIES`", self.shown()))),
            (false, _) => Err(self.wrong(&format!("`{}` is not `ROWS COLUMNS`", self.shown()))),
        }
    }

    fn sparse(
        &mut self,
        rows: usize,
        cols: usize,
        entries: usize,
        field: ValueField,
        symmetry: Symmetry,
    ) -> Result<Triplets> {
        let room = entries.min(TRUSTED);
        let (row_idxs, col_idxs) = (with_room(OP, room)?, with_room(OP, room)?);
        let mut matrix = Triplets { rows, cols, row_idxs, col_idxs, values: with_room(OP, room)? };
        // The halves that a symmetric file leaves out, which come behind the others.
        let mut mirrored = Vec::new();
        for read in 0..entries {
            if !self.next()? {
                return Err(self.wrong(&format!("the file ends after {read} of {entries} entries")));
            }
            let (row, col, value) = self.entry(rows, cols, field)?;
            if symmetry == Symmetry::Skew && row == col && value != 0.0 {
                return Err(self.wrong(&format!(
                    "`{}` lies on the diagonal, which is 0 in a skew-symmetric matrix",
                    self.shown()
                )));
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

    /// Row, column and value of the line.
    fn entry(&self, rows: usize, cols: usize, field: ValueField) -> Result<(u32, u32, f32)> {
        let mut words = self.line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let parts = (words.next(), words.next(), words.next(), words.next());
        let index = |word: &[u8], extent: usize, what: &str| -> Result<u32> {
            let number = whole(word).ok_or_else(|| {
                self.wrong(&format!("`{}`: a {what} is a whole number from 1 on", self.shown()))
            })?;
            if number == 0 || number > extent as u64 {
                return Err(self.wrong(&format!("{what} {number} of a matrix of {rows} x {cols}")));
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
            (
                std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok()).map(|x| x as f32),
                "integer",
            )
        } else {
            (number(word), "number")
        };
        value.ok_or_else(|| self.wrong(&format!("`{}` is no {kind}", String::from_utf8_lossy(word))))
    }

    fn dense(&mut self, rows: usize, cols: usize, field: ValueField, symmetry: Symmetry) -> Result<Dense> {
        // Columns one after the other, of which a symmetric file has the lower part.
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

/// Adds an element to a list of which a file decides how long it becomes.
fn push<T>(list: &mut Vec<T>, element: T) -> Result<()> {
    make_room(OP, list, 1)?;
    list.push(element);
    Ok(())
}

/// A whole number without a sign.
fn whole(word: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for digit in word {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    (!word.is_empty()).then_some(number)
}

/// A number, also with Fortran's exponent.
fn number(word: &[u8]) -> Option<f32> {
    let text = std::str::from_utf8(word).ok()?;
    match text.parse::<f64>() {
        Ok(number) => Some(number as f32),
        Err(_) => text.replace(['d', 'D'], "e").parse::<f64>().ok().map(|number| number as f32),
    }
}

#[cfg(test)]
mod tests;
