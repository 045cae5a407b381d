//! The `tune` example: its command line, its results, and what it saves.

use crate::support::gpu;
use parts::cli;

#[path = "../../examples/tune"]
mod parts {
    use super::super::common;

    mod cases;
    pub(super) mod cli;
}

/// Runs the program: exit code, output, errors.
fn run(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let adapter = std::env::var("TILEWORK_ADAPTER").unwrap_or_default();
    let line = [&["tune", "--adapter", &adapter], args].concat();
    let code = cli::run(lexopt::Parser::from_iter(line), &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn tune_prints_a_line_for_each_shape() {
    if gpu().is_none() {
        return;
    }
    let (code, out, err) =
        run(&["--ops", "zip,transpose", "--sizes", "small", "--budget", "0.2", "--verbose"]);
    assert!(code == 0 && err.is_empty(), "{out}{err}");
    for words in ["add 262144 f32", "512 x 512 f32", "default", "best: ", "Nothing is kept"] {
        assert!(out.contains(words), "`{words}` is not in: {out}");
    }
    let lines: Vec<_> =
        out.lines().filter(|l| l.starts_with("zip  ") || l.starts_with("transpose  ")).collect();
    assert_eq!(lines.len(), 2, "{out}");
}

#[test]
fn tune_reports_that_nothing_was_saved() {
    if gpu().is_none() {
        return;
    }
    let (code, out, err) = run(&["--ops", "transpose", "--sizes", "small", "--budget", "0", "--save"]);
    assert!(code == 0 && err.is_empty(), "{out}{err}");
    // Unless the default is already as fast as the roofline, which is then saved.
    assert!(out.contains("Nothing to keep") || out.contains("  roofline\n"), "{out}");
}

#[test]
fn tune_rejects_bad_input() {
    let cases: &[(&[&str], &str)] = &[
        (&["--ops", "zip,frob"], "--ops frob: no such op here; there are attention, blur"),
        (&["--sizes", "medium"], "must be small or large"),
        (&["--budget", "-1"], "0 or more"),
        (&["--budget", "x"], "0 or more"),
        (&["--save", "--save"], "--save is given twice"),
        (&["--frob"], "--frob"),
        (&["zip"], "zip"),
    ];
    for (args, text) in cases {
        let (code, out, err) = run(args);
        assert!(code == 2 && out.is_empty() && err.contains(text), "{args:?}: {code} {out} {err}");
    }
    assert!(run(&["--help"]).1.starts_with("usage: tune"));
}
