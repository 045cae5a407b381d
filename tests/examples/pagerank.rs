//! The `pagerank` example: ranks of graphs from files, and its errors.

use super::common;
use super::program::{Example, Folder, path};
use super::solve::springs;
use crate::support::gpu;
use tilework::io::matrix_market::{self, Matrix};

#[path = "../../examples/pagerank/cli.rs"]
mod cli;

const PROGRAM: Example = Example("pagerank", cli::run);

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
    let files = [path(&graph), "-o", path(&ranks), "--spy", path(&spy), "--plot", path(&plot)];
    let options = ["--top", "2", "--history", "--unweighted", "--damping", "0.5"];
    let out = PROGRAM.succeeds(&[&files[..], &options].concat());
    assert!(out.contains("three.mtx: 3 nodes, 3 links, 1 nodes without"), "{out}");
    // With c = (1 + x3 / ...) for each: x2 = c, x1 = 5/4 c, x3 = 15/8 c, by hand.
    let sum = 1.0 + 1.25 + 1.875;
    let Matrix::Dense(column) = matrix_market::read_file(&ranks).unwrap() else { panic!("a column is dense") };
    for (rank, part) in column.values.iter().zip([1.25, 1.0, 1.875]) {
        assert!((rank - part / sum).abs() < 1e-5, "{column:?}");
    }
    let lines: Vec<_> = out.lines().skip_while(|line| !line.contains("links out")).skip(1).take(3).collect();
    assert!(lines[0].split_whitespace().nth(1) == Some("3") && lines[1].split_whitespace().nth(1) == Some("1"));
    assert!(lines[2].ends_with("the residuals") && spy.exists() && plot.exists(), "{out}");
    // With weights, the first node gets three times the share of the third from the second.
    let (code, out, _) = PROGRAM.run(&[path(&graph), "--top", "1", "--format", "csr"]);
    assert!(code == 0 && out.contains("stored as csr (requested by name)"), "{out}");
    let start = folder.file("s.mtx", b"%%MatrixMarket matrix coordinate real general\n3 1 1\n1 1 5\n");
    let (code, _, _) = PROGRAM.run(&[path(&graph), "--start", path(&start), "-o", path(&ranks)]);
    let Matrix::Dense(column) = matrix_market::read_file(&ranks).unwrap() else { panic!("a column is dense") };
    assert!(code == 0 && column.values[1] == 0.0 && column.values[0] > column.values[2], "{column:?}");
    let (code, out, _) = PROGRAM.run(&[path(&graph), "--max-iter", "2"]);
    assert!(code == 1 && out.contains("the maximum number of iterations is reached"), "{out}");
}

#[test]
fn pagerank_rejects_bad_input() {
    let folder = Folder::new("pagerank-bad");
    let good = folder.file("g.mtx", THREE.as_bytes());
    let negative = folder.file("n.mtx", springs(4).as_bytes());
    let start = folder.file("s.mtx", b"%%MatrixMarket matrix array real general\n3 1\n1\n-1\n1\n");
    PROGRAM.rejects(&[], "0 files named");
    PROGRAM.rejects(&[path(&good), path(&good)], "2 files named");
    PROGRAM.rejects(&[path(&negative)], "has the value -1");
    PROGRAM.rejects(&[path(&good), "--start", path(&start)], "s.mtx: values must be finite and not negative");
    PROGRAM.rejects(&[path(&good), "--start", path(&negative)], "expected a column of 3 elements");
    PROGRAM.rejects(&[path(&good), "--format", "dia"], "there are auto, textbook, coo");
    PROGRAM.rejects(&[path(&good), "--top", "x"], "x");
    PROGRAM.rejects(&[path(&good), "--unweighted", "--unweighted"], "--unweighted is given twice");
    if gpu().is_some() {
        PROGRAM.rejects(&[path(&good), "--damping", "1.5"], "the damping is 1.5");
        PROGRAM.rejects(&[path(&good), "--spy", path(&folder.0.join("no/a.png"))], "a.png");
    }
}
