//! The `solve` example: systems from files, its pictures, and its errors.

use super::common::{self, matrices};
use super::program::{Example, Folder, path};
use crate::support::gpu;
use std::fs;
use tilework::io::matrix_market::{self, Matrix};
use tilework::sparse::Csr;

#[path = "../../examples/solve/cli.rs"]
mod cli;

const PROGRAM: Example = Example("solve", cli::run);

/// A chain of springs, as a symmetric file.
pub(super) fn springs(n: usize) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", 2 * n - 1);
    for i in 1..=n {
        text += &format!("{i} {i} 2.5\n");
        if i > 1 {
            text += &format!("{i} {} -1\n", i - 1);
        }
    }
    text
}

#[test]
fn solve_writes_the_solution_and_pictures() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("solve");
    let a = folder.file("a.mtx", springs(300).as_bytes());
    let [x, spy, plot] = ["x.mtx", "a.png", "a.svg"].map(|name| folder.0.join(name));
    let files = [path(&a), "-o", path(&x), "--spy", path(&spy), "--plot", path(&plot)];
    let out = PROGRAM.succeeds(&[&files[..], &["--history", "--tol", "1e-6"]].concat());
    assert!(out.contains("a.mtx: 300 x 300, 898 entries") && out.contains("converged after"), "{out}");
    assert!(out.contains("\n      0 1.0") && out.contains("the solution is 1 everywhere"), "{out}");
    let Matrix::Dense(solution) = matrix_market::read_file(&x).unwrap() else { panic!("a column is dense") };
    assert!(solution.rows == 300 && solution.values.iter().all(|x| (x - 1.0).abs() < 1e-4));
    let picture = ::image::open(&spy).unwrap();
    assert_eq!((picture.width(), picture.height()), (626, 626));
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("a.mtx: converged on"), "{svg}");
    // The right side from a file gives the same; every format does.
    for (i, format) in matrices::FORMATS.into_iter().enumerate() {
        let b = folder.0.join("b.mtx");
        let column = matrix_market::Dense { rows: 300, cols: 1, values: vec![1.0; 300] };
        matrix_market::write_file(&b, &Matrix::Dense(column)).unwrap();
        let precond = ["jacobi", "none"][i % 2];
        let out = PROGRAM.succeeds(&[path(&a), path(&b), "--format", format, "--precond", precond]);
        let chosen = match format {
            "auto" => "", // depends on the device
            "textbook" => "ell",
            named => named,
        };
        assert!(out.contains(&format!("stored as {chosen}")), "{out}");
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 5);
}

#[test]
fn solve_reports_unsolved_systems() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("solve-not");
    let a = folder.file("a.mtx", springs(300).as_bytes());
    let (code, out, _) = PROGRAM.run(&[path(&a), "--max-iter", "3"]);
    assert!(code == 1 && out.contains("the maximum number of iterations is reached after 3 iterations"), "{out}");
    let indefinite = folder.file("i.mtx", springs(30).replace("2.5", "-2.5").as_bytes());
    let (code, out, _) = PROGRAM.run(&[path(&indefinite), "--precond", "none"]);
    assert!(code == 1 && out.contains("not positive definite: p^T A p = -"), "{out}");
    let (code, out, _) = PROGRAM.run(&[path(&indefinite)]);
    assert!(code == 1 && out.contains("the diagonal element of row 0"), "{out}");
}

#[test]
fn solve_rejects_bad_input() {
    let folder = Folder::new("solve-bad");
    let good = folder.file("a.mtx", springs(5).as_bytes());
    let head = "%%MatrixMarket matrix coordinate real general\n";
    let wide = folder.file("wide.mtx", format!("{head}2 3 1\n1 1 1\n").as_bytes());
    let none = folder.file("none.mtx", format!("{head}0 0 0\n").as_bytes());
    let cut = folder.file("cut.mtx", format!("{head}2 2 2\n1 1 1\n").as_bytes());
    let dense = folder.file("dense.mtx", b"%%MatrixMarket matrix array real general\n1 1\n2\n");
    let text = folder.file("text.mtx", b"no matrix");
    if common::room_for("", 1 << 37, 1).is_err() {
        let text = format!("{head}4294967295 4294967295 1\n1 1 1\n");
        let large = folder.file("large.mtx", text.as_bytes());
        PROGRAM.rejects(&[path(&large)], "large.mtx: 4294967295 rows with 1 entries");
    }
    PROGRAM.rejects(&[], "name a matrix");
    PROGRAM.rejects(&["a", "b", "c"], "name a matrix");
    PROGRAM.rejects(&[path(&wide)], "2 x 3; it must be square");
    PROGRAM.rejects(&[path(&none)], "0 x 0; it must be square, and not empty");
    PROGRAM.rejects(&[path(&cut)], "line 4: the file ends after 1 of 2 entries");
    PROGRAM.rejects(&[path(&dense)], "an array file");
    PROGRAM.rejects(&[path(&text)], "line 1");
    PROGRAM.rejects(&[path(&folder.0)], "is a directory");
    PROGRAM.rejects(&[path(&folder.0.join("missing.mtx"))], "missing.mtx");
    PROGRAM.rejects(&[path(&good), path(&dense)], "1 x 1; expected a column of 5 elements");
    PROGRAM.rejects(&[path(&good), "--precond", "ilu"], "there are jacobi and none");
    PROGRAM.rejects(&[path(&good), "--format", "dia"], "there are auto, textbook, coo");
    PROGRAM.rejects(&[path(&good), "--tol", "x"], "x");
    PROGRAM.rejects(&[path(&good), "--frob"], "--frob");
    PROGRAM.rejects(&[path(&good), "--spy", "a.svg"], "a.svg: --spy: must end with .png");
    PROGRAM.rejects(&[path(&good), "--plot", "a.gif"], "a.gif: must end with .svg or .png");
    PROGRAM.rejects(&[path(&good), "--spy", path(&folder.0.join("no/a.png"))], "a.png");
    PROGRAM.rejects(&[path(&good), "--plot", path(&folder.0.join("no/a.svg"))], "a.svg");
    PROGRAM.rejects(&[path(&good), "-o", path(&folder.0.join("no/x.mtx"))], "x.mtx");
    let [a, b] = ["a.png", "./a.png"].map(|name| folder.0.join(name));
    PROGRAM.rejects(&[path(&good), "--spy", path(&a), "--plot", path(&b)], "a.png are the same file");
    PROGRAM.rejects(&[path(&good), "--tol", "1e-5", "--tol", "1e-6"], "--tol is given twice");
    PROGRAM.rejects(&[path(&good), "-o", "x.mtx", "-o", "y.mtx"], "-o is given twice");
    PROGRAM.rejects(&[path(&good), "--device", "x"], "--adapter and --device");
    if gpu().is_some() {
        PROGRAM.rejects(&[path(&good), "--tol", "-1"], "the tolerance is -1");
        PROGRAM.rejects(&[path(&good), "--max-iter", "0"], "0 iterations");
    }
    let out = PROGRAM.succeeds(&["--help"]);
    assert!(out.starts_with("usage: solve"));
    assert!(out.lines().filter(|line| line.contains("--")).all(|line| line.starts_with("  --")), "{out}");
}

#[test]
fn patterns_show_where_entries_are() {
    let matrix = |rows: usize, cols: usize, entries: &[(u32, u32)]| {
        let triplets = tilework::sparse::Coo {
            rows,
            cols,
            row_idxs: entries.iter().map(|e| e.0).collect(),
            col_idxs: entries.iter().map(|e| e.1).collect(),
            values: vec![1.0; entries.len()],
        };
        Csr::from_triplets(&triplets, tilework::sparse::Duplicates::Sum).unwrap()
    };
    let (white, frame, dark) = ([255; 3], [110; 3], [8, 24, 88]);
    // Enlarged: a cell is 400 pixels wide.
    let small = matrices::pattern(&matrix(2, 2, &[(0, 1)]));
    assert_eq!((small.width, small.height), (826, 826));
    assert_eq!((small.get(413 + 1, 13), small.get(812, 412), small.get(412, 13)), (dark, dark, white));
    assert_eq!((small.get(12, 12), small.get(813, 813), small.get(0, 0)), (frame, frame, white));
    // Wide, unchanged; folded: 3000 columns, four per cell.
    let wide = matrices::pattern(&matrix(600, 3000, &[(0, 0), (0, 1), (1, 0), (599, 2999)]));
    assert_eq!((wide.width, wide.height), (776, 176));
    assert_eq!((wide.get(13, 13), wide.get(762, 162), wide.get(14, 13)), (dark, [150, 190, 235], white));
    // No hairlines.
    let row = matrices::pattern(&matrix(1, 3000, &[(0, 2999)]));
    assert_eq!((row.width, row.height, row.get(762, 20)), (776, 34, dark));
}
