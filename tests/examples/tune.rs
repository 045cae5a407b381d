//! The `tune` example: its command line, its results, and what it saves.

use super::program::Example;
use crate::support::gpu;
use parts::cli;

#[path = "../../examples/tune"]
mod parts {
    use super::super::common;

    mod cases;
    pub(super) mod cli;
}

const PROGRAM: Example = Example("tune", cli::run);

#[test]
fn tune_prints_a_line_for_each_shape() {
    if gpu().is_none() {
        return;
    }
    let (code, out, err) = PROGRAM.run(&["--ops", "zip,transpose", "--sizes", "small", "--budget", "0.2", "--verbose"]);
    assert!(code == 0 && err.is_empty(), "{out}{err}");
    for words in ["add 262144 f32", "512 x 512 f32", "default", "best: ", "Nothing is kept"] {
        assert!(out.contains(words), "`{words}` is not in: {out}");
    }
    let lines: Vec<_> = out.lines().filter(|l| l.starts_with("zip  ") || l.starts_with("transpose  ")).collect();
    assert_eq!(lines.len(), 2, "{out}");
}

#[test]
fn tune_reports_that_nothing_was_saved() {
    if gpu().is_none() {
        return;
    }
    let (code, out, err) = PROGRAM.run(&["--ops", "transpose", "--sizes", "small", "--budget", "0", "--save"]);
    assert!(code == 0 && err.is_empty(), "{out}{err}");
    // Unless the default is already as fast as the roofline, which is then saved.
    assert!(out.contains("Nothing to keep") || out.contains("  roofline\n"), "{out}");
}

#[test]
fn tune_rejects_bad_input() {
    let cases: &[(&[&str], &str)] = &[
        (&["--ops", "zip,frob"], "--ops frob: cannot be tuned; there are attention, blur"),
        (&["--sizes", "medium"], "must be small or large"),
        (&["--budget", "-1"], "0 or more"),
        (&["--budget", "x"], "0 or more"),
        (&["--save", "--save"], "--save is given twice"),
        (&["--frob"], "--frob"),
        (&["zip"], "zip"),
    ];
    PROGRAM.rejects_early(cases);
}
