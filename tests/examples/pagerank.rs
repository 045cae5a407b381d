//! The `pagerank` example: ranks of graphs from files, and its errors.

use super::common;
use super::rows::Folder;
use super::solve::springs;
use crate::support::gpu;
use std::path::Path;
use tilework::io::matrix_market::{self, Matrix};

#[path = "../../examples/pagerank/cli.rs"]
mod cli;

/// Runs the program: exit code, output, errors.
fn run(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let adapter = std::env::var("TILEWORK_ADAPTER").unwrap_or_default();
    let line = [&["pagerank", "--adapter", &adapter], args].concat();
    let code = cli::run(lexopt::Parser::from_iter(line), &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Two pages link to a third, which links to nothing; the second link is heavy.
const THREE: &str = "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 3 1\n2 3 3\n2 1 9\n";

#[test]
fn pagerank_lists_the_highest_ranks() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("pagerank");
    let graph = folder.file("three.mtx", THREE.as_bytes());
    let [ranks, spy, plot] = ["r.mtx", "g.png", "g.svg"].map(|name| folder.0.join(name));
    let (code, out, err) = run(&[
        path(&graph),
        "--top",
        "2",
        "-o",
        path(&ranks),
        "--spy",
        path(&spy),
        "--plot",
        path(&plot),
        "--history",
        "--unweighted",
        "--damping",
        "0.5",
    ]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("three.mtx: 3 nodes, 3 links, 1 nodes without"), "{out}");
    // With c = (1 + x3 / ...) for each: x2 = c, x1 = 5/4 c, x3 = 15/8 c, by hand.
    let sum = 1.0 + 1.25 + 1.875;
    let Matrix::Dense(column) = matrix_market::read_file(&ranks).unwrap() else {
        panic!("a column is dense")
    };
    for (rank, part) in column.values.iter().zip([1.25, 1.0, 1.875]) {
        assert!((rank - part / sum).abs() < 1e-5, "{column:?}");
    }
    let lines: Vec<_> = out.lines().skip_while(|line| !line.contains("links out")).skip(1).take(3).collect();
    assert!(
        lines[0].split_whitespace().nth(1) == Some("3") && lines[1].split_whitespace().nth(1) == Some("1")
    );
    assert!(lines[2].ends_with("the residuals") && spy.exists() && plot.exists(), "{out}");
    // With weights, the first node gets three times the share of the third from the second.
    let (code, out, _) = run(&[path(&graph), "--top", "1", "--format", "csr"]);
    assert!(code == 0 && out.contains("stored as csr (asked for by name)"), "{out}");
    let start = folder.file("s.mtx", b"%%MatrixMarket matrix coordinate real general\n3 1 1\n1 1 5\n");
    let (code, _, _) = run(&[path(&graph), "--start", path(&start), "-o", path(&ranks)]);
    let Matrix::Dense(column) = matrix_market::read_file(&ranks).unwrap() else {
        panic!("a column is dense")
    };
    assert!(code == 0 && column.values[1] == 0.0 && column.values[0] > column.values[2], "{column:?}");
    let (code, out, _) = run(&[path(&graph), "--max-iter", "2"]);
    assert!(code == 1 && out.contains("the maximum number of iterations is reached"), "{out}");
}

#[test]
fn pagerank_rejects_bad_input() {
    let folder = Folder::new("pagerank-bad");
    let good = folder.file("g.mtx", THREE.as_bytes());
    let negative = folder.file("n.mtx", springs(4).as_bytes());
    let start = folder.file("s.mtx", b"%%MatrixMarket matrix array real general\n3 1\n1\n-1\n1\n");
    let refused = |args: &[&str], part: &str| {
        let (code, _, err) = run(args);
        assert_eq!((code, err.lines().count()), (2, 1), "{args:?}: {err}");
        assert!(err.starts_with("pagerank: ") && err.contains(part), "{err}");
    };
    refused(&[], "0 files named");
    refused(&[path(&good), path(&good)], "2 files named");
    refused(&[path(&negative)], "has the value -1");
    refused(&[path(&good), "--start", path(&start)], "s.mtx: values must be finite and not negative");
    refused(&[path(&good), "--start", path(&negative)], "a column of 3 elements is wanted");
    refused(&[path(&good), "--format", "dia"], "there are auto, coo");
    refused(&[path(&good), "--top", "x"], "x");
    refused(&[path(&good), "--unweighted", "--unweighted"], "--unweighted is given twice");
    if gpu().is_some() {
        refused(&[path(&good), "--damping", "1.5"], "the damping is 1.5");
        refused(&[path(&good), "--spy", path(&folder.0.join("no/a.png"))], "a.png");
    }
}
