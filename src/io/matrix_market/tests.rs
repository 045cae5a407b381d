//! Tests of reading and writing; compiled for tests only.

use super::*;
use crate::error::ErrorKind;
use std::fs;

fn sparse(text: &str) -> Triplets {
    match read(text.as_bytes()).unwrap() {
        Matrix::Sparse(matrix) => matrix,
        Matrix::Dense(_) => panic!("a dense matrix"),
    }
}

fn dense(text: &str) -> Dense {
    match read(text.as_bytes()).unwrap() {
        Matrix::Dense(matrix) => matrix,
        Matrix::Sparse(_) => panic!("a sparse matrix"),
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
    // Empty columns take no time.
    let wide = dense("%%MatrixMarket matrix array real general\n0 4294967296\n");
    assert!(wide.cols == 1 << 32 && wide.values.is_empty());
    write(std::io::sink(), &Matrix::Dense(wide)).unwrap();
}

#[test]
fn errors_name_the_line_and_the_fault() {
    let head = "%%MatrixMarket matrix coordinate real general\n";
    for (text, line, reason) in [
        ("", 1, "is not `%%MatrixMarket"),
        ("1 1 1\n1 1 1\n", 1, "is not `%%MatrixMarket"),
        ("%%MatrixMarket matrix list real general\n", 1, "the format `list`"),
        ("%%MatrixMarket matrix coordinate text general\n", 1, "values of `text`"),
        ("%%MatrixMarket matrix coordinate real diagonal\n", 1, "the symmetry `diagonal`"),
        ("%%MatrixMarket matrix array pattern general\n", 1, "a pattern has no values"),
        ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "no signs"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", 2, "2 x 3 is not square"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n", 3, "on the diagonal"),
        ("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", 3, "`1.5` is not an integer"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", 6, "after 3 of 4 values"),
        ("%%MatrixMarket matrix array real general\n2 2 4\n", 2, "is not `ROWS COLUMNS`"),
        (&format!("{head}% nothing more\n"), 3, "before the size line"),
        (&format!("{head}2 2\n"), 2, "is not `ROWS COLUMNS ENTRIES`"),
        (&format!("{head}2 -2 1\n"), 2, "sizes must be whole numbers"),
        (&format!("{head}2 4294967297 1\n"), 2, "indices have 32 bits"),
        (&format!("{head}2 2 2\n1 1 1\n"), 4, "the file ends after 1 of 2 entries"),
        (&format!("{head}2 2 1\n1 1 1\n\n2 2 1\n"), 5, "`2 2 1` after the last of 1 entries"),
        (&format!("{head}2 2 1\n3 1 1\n"), 3, "row 3 is outside the 2 x 2 matrix"),
        (&format!("{head}2 2 1\n1 0 1\n"), 3, "column 0 is outside the 2 x 2 matrix"),
        (&format!("{head}2 2 1\n1 1.0 1\n"), 3, "a column is a whole number"),
        (&format!("{head}2 2 1\n1 1\n"), 3, "is not `ROW COLUMN VALUE`"),
        (&format!("{head}2 2 1\n1 1 1 1\n"), 3, "is not `ROW COLUMN VALUE`"),
        (&format!("{head}2 2 1\n1 1 x\n"), 3, "`x` is not a number"),
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
        let e = read(format!("%%MatrixMarket matrix coordinate real symmetric\n{text}").as_bytes()).unwrap_err();
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
fn written_matrices_read_back_the_same() {
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
    let mut matrix = Triplets { rows: 2, cols: 2, row_idxs: vec![1], col_idxs: vec![0], values: vec![2.5] };
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
