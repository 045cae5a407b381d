//! The `shard` example: each job, its table, and its errors.

use super::program::{Example, Folder, path};
use crate::support::gpu;
use parts::cli;

#[path = "../../examples/shard"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod picture;
    mod table;
    mod work;
}

const PROGRAM: Example = Example("shard", cli::run);

/// A small matrix, symmetric and positive definite.
const MATRIX: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n4 4 7\n1 1 4\n2 1 1\n2 2 4\n3 2 1\n3 3 4\n4 3 1\n4 4 4\n";

#[test]
fn shard_runs_every_job_on_one_to_three_ranks() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("shard");
    let matrix = folder.file("a.mtx", MATRIX.as_bytes());
    let jobs: [(&[&str], &str); 6] = [
        (&["reduce", "--bytes", "100K"], "all-reduce of 0.102 MB"),
        (&["sort", "--items", "2^12"], "sort of 4096 u32 keys"),
        (&["gemm", "70"], "70 x 70"),
        (&["solve", "--grid", "6", "--max-iter", "9"], "Poisson on 6^3 points"),
        (&["solve", path(&matrix)], "4 rows, 10 entries"),
        (&["train", "--batch", "6"], "training steps of 6 images"),
    ];
    for (job, title) in jobs {
        let out = PROGRAM.succeeds(&[job, &["--ranks", "1,2,3", "--repeat", "1"]].concat());
        assert!(out.contains(title) && out.contains("all results are right"), "{job:?}: {out}");
        let rows: Vec<_> = out.lines().skip_while(|line| !line.contains("speed-up")).collect();
        assert_eq!(rows.len(), 5, "{job:?}: {out}");
        for (row, ranks) in rows[1..4].iter().zip(["1", "2", "3"]) {
            assert!(row.trim_start().starts_with(ranks), "{row}");
        }
    }
}

#[test]
fn shard_draws_timelines_and_takes_partitions() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("shard-parts");
    let (matrix, parts) = (folder.file("a.mtx", MATRIX.as_bytes()), folder.file("parts", b"1\n0\n1\n0\n"));
    let picture = folder.0.join("a.svg");
    let solve = ["solve", path(&matrix), "--partition", path(&parts), "--ranks", "2", "--repeat", "1"];
    let out = PROGRAM.succeeds(&[&solve[..], &["--timeline", picture.to_str().unwrap()]].concat());
    assert!(out.contains("2 elements of other ranks"), "{out}");
    assert!(out.contains("all results are right"), "{out}");
    let drawn = std::fs::read_to_string(&picture).unwrap();
    for text in ["<svg", "rank 0 device", "rank 1 link"] {
        assert!(drawn.contains(text), "no {text}");
    }
    // Lanes, legend and spans.
    assert!(drawn.matches("<rect").count() > 8, "{drawn}");
    PROGRAM.rejects(&["solve", path(&matrix), "--partition", "no such file", "--ranks", "2"], "no such file");
    let short = folder.file("short", b"1\n0\n");
    PROGRAM.rejects(&["solve", path(&matrix), "--partition", path(&short), "--ranks", "2"], "one for each row");
}

#[test]
fn shard_rejects_bad_input() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "name what to do"),
        (&["sell"], "name what to do"),
        (&["sort", "extra"], "sort takes no extra"),
        (&["sort", "--items", "0"], "--items 0"),
        (&["sort", "--items", "2^64"], "--items 2^64"),
        (&["sort", "--items", "5X"], "--items 5X"),
        (&["reduce", "--items", "5"], "belongs to `shard sort`"),
        (&["gemm", "0"], "gemm 0"),
        (&["gemm", "4", "5"], "one word too many"),
        (&["solve", "--grid", "2000"], "--grid 2000"),
        (&["solve", "a.mtx", "--grid", "2"], "name one of both"),
        (&["reduce", "--ranks", "2,0"], "--ranks 2,0"),
        (&["reduce", "--link", "mail"], "--link mail"),
        (&["reduce", "--repeat", "0"], "--repeat 0"),
        (&["reduce", "--timeline", "a.gif"], "must end with .svg or .png"),
        (&["reduce", "--partition", "a"], "belongs to `shard solve`"),
        (&["solve", "--partition", "a", "--ranks", "2"], "needs a matrix"),
        (&["solve", "a.mtx", "--partition", "a"], "one number of --ranks"),
        (&["reduce", "--unknown"], "unknown"),
    ];
    PROGRAM.rejects_early(cases);
    if gpu().is_some() {
        PROGRAM.rejects(&["solve", "no such file"], "no such file");
        PROGRAM.rejects(&["reduce", "--adapter", "no such device"], "no such device");
    }
}
