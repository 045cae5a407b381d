//! Matrix Market files: the text format in which sparse matrices are published.
//!
//! [`read`] takes `coordinate` and `array` files, of `real`, `integer` and `pattern` values, `general`, `symmetric` and
//! `skew-symmetric`; comments, blank lines, both line ends, and .gz, which is told by its first bytes. A file that is
//! not so is an error with the number of the line and what is wrong with it. The format is that of R. F. Boisvert, R.
//! Pozo and K. A. Remington, *The Matrix Market Exchange Formats*, 1996.
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

/// A sparse matrix as a list of entries, in no order; a position may come more than once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Triplets {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The row of each entry, from 0.
    pub row_idxs: Vec<u32>,
    /// The column of each entry, from 0.
    pub col_idxs: Vec<u32>,
    /// The value of each entry: 1 in a `pattern` file; of an integer the nearest f32.
    pub values: Vec<f32>,
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
/// [`Malformed`](crate::ErrorKind::Malformed) with the line and what is wrong; [`Unsupported`](crate::ErrorKind::Unsupported)
/// for complex values and for graphs of other kinds; [`Io`](crate::ErrorKind::Io) where the source fails.
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
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::fs;

    fn sparse(text: &str) -> Triplets {
        match read(text.as_bytes()).unwrap() {
            Matrix::Sparse(matrix) => matrix,
            Matrix::Dense(_) => panic!("it is dense"),
        }
    }

    fn dense(text: &str) -> Dense {
        match read(text.as_bytes()).unwrap() {
            Matrix::Dense(matrix) => matrix,
            Matrix::Sparse(_) => panic!("it is sparse"),
        }
    }

    fn entries(matrix: &Triplets) -> Vec<(u32, u32, f32)> {
        let at = matrix.row_idxs.iter().zip(&matrix.col_idxs);
        at.zip(&matrix.values).map(|((&row, &col), &value)| (row, col, value)).collect()
    }

    #[test]
    fn sparse_files_of_every_kind() {
        let general = "%%MatrixMarket matrix coordinate real general\r\n% made by hand\r\n\r\n 3 2 3 \r\n\
                       1 1 1.5\r\n%a comment between\r\n3\t2   -2e-3\r\n2 1 1.0D+02";
        let matrix = sparse(general);
        assert_eq!((matrix.rows, matrix.cols), (3, 2));
        assert_eq!(entries(&matrix), [(0, 0, 1.5), (2, 1, -2e-3), (1, 0, 100.0)]);
        let pattern = sparse("%%matrixmarket MATRIX Coordinate Pattern Symmetric\n3 3 2\n1 1\n3 1\n");
        assert_eq!(entries(&pattern), [(0, 0, 1.0), (2, 0, 1.0), (0, 2, 1.0)]);
        let skew = sparse("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 7\n");
        assert_eq!(entries(&skew), [(1, 0, 7.0), (0, 1, -7.0)]);
        for size in ["0 0 0", "5 0 0", "4294967296 1 0"] {
            let empty = sparse(&format!("%%MatrixMarket matrix coordinate real general\n{size}\n\n"));
            assert!(entries(&empty).is_empty());
        }
    }

    #[test]
    fn dense_files_run_down_columns() {
        let general = dense("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
        assert_eq!(general, Dense { rows: 2, cols: 3, values: vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0] });
        let symmetric = dense("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n");
        assert_eq!(symmetric.values, [1.0, 2.0, 2.0, 3.0]);
        let skew = dense("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
        assert_eq!(skew.values, [0.0, -1.0, -2.0, 1.0, 0.0, -3.0, 2.0, 3.0, 0.0]);
        assert!(dense("%%MatrixMarket matrix array real general\n0 7\n").values.is_empty());
        // So many columns of nothing take no time.
        let wide = dense("%%MatrixMarket matrix array real general\n0 4294967296\n");
        assert!(wide.cols == 1 << 32 && wide.values.is_empty());
        write(std::io::sink(), &Matrix::Dense(wide)).unwrap();
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let head = "%%MatrixMarket matrix coordinate real general\n";
        for (text, line, reason) in [
            ("", 1, "with which such a file begins"),
            ("1 1 1\n1 1 1\n", 1, "with which such a file begins"),
            ("%%MatrixMarket matrix list real general\n", 1, "the format `list`"),
            ("%%MatrixMarket matrix coordinate text general\n", 1, "values of `text`"),
            ("%%MatrixMarket matrix coordinate real diagonal\n", 1, "the symmetry `diagonal`"),
            ("%%MatrixMarket matrix array pattern general\n", 1, "a pattern has no values"),
            ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "no signs"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", 2, "2 x 3 is not square"),
            ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n", 3, "on the diagonal"),
            ("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", 3, "`1.5` is no integer"),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", 6, "after 3 of 4 values"),
            ("%%MatrixMarket matrix array real general\n2 2 4\n", 2, "is not `ROWS COLUMNS`"),
            (&format!("{head}% nothing more\n"), 3, "before the line of sizes"),
            (&format!("{head}2 2\n"), 2, "is not `ROWS COLUMNS ENTRIES`"),
            (&format!("{head}2 -2 1\n"), 2, "sizes are whole numbers"),
            (&format!("{head}2 4294967297 1\n"), 2, "an index has 32 bits"),
            (&format!("{head}2 2 2\n1 1 1\n"), 4, "the file ends after 1 of 2 entries"),
            (&format!("{head}2 2 1\n1 1 1\n\n2 2 1\n"), 5, "`2 2 1` after the last of 1 entries"),
            (&format!("{head}2 2 1\n3 1 1\n"), 3, "row 3 of a matrix of 2 x 2"),
            (&format!("{head}2 2 1\n1 0 1\n"), 3, "column 0 of a matrix of 2 x 2"),
            (&format!("{head}2 2 1\n1 1.0 1\n"), 3, "a column is a whole number"),
            (&format!("{head}2 2 1\n1 1\n"), 3, "is not `ROW COLUMN VALUE`"),
            (&format!("{head}2 2 1\n1 1 1 1\n"), 3, "is not `ROW COLUMN VALUE`"),
            (&format!("{head}2 2 1\n1 1 x\n"), 3, "`x` is no number"),
            (&format!("{head}2 2 1\n{}\n", "1".repeat(5000)), 3, "a line of more than"),
        ] {
            let e = read(text.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Malformed, "{e}");
            assert!(e.to_string().starts_with(&format!("matrix market: line {line}: ")), "{text}: {e}");
            assert!(e.to_string().contains(reason), "{e}");
        }
        for text in ["coordinate complex general", "array complex hermitian", "coordinate real hermitian"] {
            let e = read(format!("%%MatrixMarket matrix {text}\n").as_bytes()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
        }
    }

    #[test]
    fn sizes_that_a_file_only_declares_take_no_memory() {
        let big = [10u64.pow(9), (1 << 32) - 1, 1 << 32];
        for (rows, entries) in big.into_iter().flat_map(|rows| big.map(|entries| (rows, entries))) {
            let text = format!("{rows} {rows} {entries}\n1 1 1\n");
            let e = read(format!("%%MatrixMarket matrix coordinate real symmetric\n{text}").as_bytes())
                .unwrap_err();
            assert!(e.to_string().contains(&format!("the file ends after 1 of {entries} entries")), "{e}");
        }
        for extent in [10u64.pow(9), (1 << 32) - 1] {
            for symmetry in ["general", "symmetric", "skew-symmetric"] {
                let text = format!("%%MatrixMarket matrix array real {symmetry}\n{extent} {extent}\n1\n");
                assert!(read(text.as_bytes()).unwrap_err().to_string().contains("the file ends after 1 of"));
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let text = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 4\n2 1 -1\n3 2 5e2\n";
        let mut state = 1u32;
        let mut random = |most: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % most
        };
        for _ in 0..20_000 {
            let mut broken = text.to_vec();
            for _ in 0..1 + random(3) {
                let at = random(broken.len());
                match random(3) {
                    0 => broken[at] = random(256) as u8,
                    1 => drop(broken.remove(at)),
                    _ => broken.insert(at, b"0123456789 \n.-e%"[random(16)]),
                }
            }
            let _ = read(broken.as_slice());
        }
    }

    #[test]
    fn what_is_written_is_read_the_same() {
        let values = [1.0, -0.1, f32::MIN_POSITIVE / 8.0, f32::MAX, f32::INFINITY, 1.0 / 3.0];
        let triplets = Triplets {
            rows: 6,
            cols: 9,
            row_idxs: (0..6).collect(),
            col_idxs: (0..6).map(|i| 8 - i).collect(),
            values: values.to_vec(),
        };
        let dense = Dense { rows: 2, cols: 3, values: values.to_vec() };
        for matrix in [Matrix::Sparse(triplets), Matrix::Dense(dense)] {
            let mut bytes = Vec::new();
            write(&mut bytes, &matrix).unwrap();
            assert_eq!(read(bytes.as_slice()).unwrap(), matrix);
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&bytes).unwrap();
            assert_eq!(read(packed.finish().unwrap().as_slice()).unwrap(), matrix);
        }
    }

    #[test]
    fn files_are_whole_or_not_there() {
        let folder = std::env::temp_dir().join(format!("tilework-mtx-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.mtx");
        let mut matrix =
            Triplets { rows: 2, cols: 2, row_idxs: vec![1], col_idxs: vec![0], values: vec![2.5] };
        write_file(&path, &Matrix::Sparse(matrix.clone())).unwrap();
        assert_eq!(read_file(&path).unwrap(), Matrix::Sparse(matrix.clone()));
        let packed = folder.join("a.mtx.gz");
        write_file(&packed, &Matrix::Sparse(matrix.clone())).unwrap();
        assert!(fs::read(&packed).unwrap().starts_with(&[0x1f, 0x8b]));
        assert_eq!(read_file(&packed).unwrap(), Matrix::Sparse(matrix.clone()));
        fs::remove_file(packed).unwrap();
        matrix.col_idxs[0] = 2;
        let other = folder.join("b.mtx");
        let e = write_file(&other, &Matrix::Sparse(matrix)).unwrap_err();
        assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("b.mtx"), "{e}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let e = read_file(folder.join("none.mtx")).unwrap_err();
        assert!(e.kind() == ErrorKind::Io && e.to_string().contains("none.mtx"), "{e}");
        fs::write(&other, "nothing").unwrap();
        let e = read_file(&other).unwrap_err();
        assert!(e.kind() == ErrorKind::Malformed && e.to_string().contains("b.mtx"), "{e}");
        fs::remove_dir_all(folder).unwrap();
    }
}
