//! The `overlap` example: its table, its picture, and its errors.

use super::common::room_for;
use super::program::{Example, Folder};
use crate::support::gpu;
use parts::cli;
use std::fs;

#[path = "../../examples/overlap"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod picture;
    mod work;
}

const PROGRAM: Example = Example("overlap", cli::run);

#[test]
fn overlap_measures_and_draws_both_workloads() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("overlap");
    let picture = folder.0.join("a.svg");
    let small = ["--size", "200001", "--chunk", "16K,30000", "--in-flight", "2,3", "--repeat", "1"];
    let drawn = [&small[..], &["-o", picture.to_str().unwrap()]].concat();
    let (code, out, err) = PROGRAM.run(&drawn);
    assert_eq!(code, 0, "{out}{err}");
    for part in ["vector addition", "histogram of bytes", "serial", "every element", "every count"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert_eq!(out.matches("as on the processor").count(), 2, "{out}");
    let svg = fs::read_to_string(&picture).unwrap();
    for part in ["one chunk after another", "chunks in flight", "one queue", "fill (host)"] {
        assert!(svg.contains(part), "{part}");
    }

    let file = folder.file("bytes", &[b'a'; 70_001]);
    let only = ["--only", "histogram", "--file", file.to_str().unwrap(), "--rounds", "3"];
    let (code, out, err) = PROGRAM.run(&[&only[..], &small[2..]].concat());
    assert!(code == 0 && out.contains("68.36 KiB to and from"), "{out}{err}");
    let (code, out, err) = PROGRAM.run(&[&["--only", "add", "--balance"], &small[..]].concat());
    assert!(code == 0 && out.contains("as on the processor"), "{out}{err}");
    let empty = folder.file("empty", b"");
    let (code, out, err) = PROGRAM.run(&["--only", "histogram", "--file", empty.to_str().unwrap()]);
    assert!(code == 0 && out.contains("as on the processor") && !out.contains("-0.0"), "{out}{err}");
}

#[test]
fn overlap_rejects_bad_input() {
    let cases: &[(&[&str], &str)] = &[
        (&["--only", "sort"], "--only sort"),
        (&["--size", "0"], "--size 0"),
        (&["--chunk", "4M,x"], "--chunk x"),
        (&["--chunk", "2000G"], "--chunk 2000G"),
        (&["--in-flight", "1"], "--in-flight 1"),
        (&["--file", "no such file"], "no such file"),
        (&["--rounds", "-1"], "--help"),
        (&["-o", "a.pdf"], "a.pdf: must end with .svg or .png"),
        (&["--repeat", "0"], "--repeat 0: must be a whole number from 1 to 1000"),
        (&["--repeat", "1001"], "--repeat 1001"),
        (&["--rounds", "8193"], "--rounds 8193"),
        (&["--size", "4M", "--size", "4M"], "--size is given twice"),
        (&["--frob"], "--frob"),
        (&["something"], "something"),
    ];
    PROGRAM.rejects_early(cases);
    if gpu().is_some() {
        PROGRAM.rejects(&["--chunk", "900G"], "a binding holds");
        for only in ["add", "histogram"] {
            if room_for("", 1 << 40, 1).is_ok() {
                return;
            }
            PROGRAM.rejects(&["--size", "1024G", "--only", only], "exceed this machine's memory");
        }
    }
}
