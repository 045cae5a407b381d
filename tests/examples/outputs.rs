//! All examples: output that cannot be printed, and files that cannot be written.

use super::common::{Failure, exit_code, main, say};
use super::program::Folder;
use crate::support::gpu;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Accepts bytes and fails on flush.
struct Failing(io::ErrorKind);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

#[test]
fn write_errors_set_the_exit_code() {
    let (full, closed) = (io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe);
    for (kind, code, wanted) in [(full, 0, 1), (closed, 0, 0), (full, 3, 3), (closed, 2, 2)] {
        let got = main("outputs", Failing(kind), |_, out, _| {
            out.write_all(b"text without an end").unwrap();
            code
        });
        assert_eq!(got, ExitCode::from(wanted), "{kind}, {code}");
    }
    let mut err = Vec::new();
    assert_eq!(exit_code("outputs", say(&mut Failing(full), "text").map(|()| 0), &mut err), 1);
    assert!(err.starts_with(b"outputs: writing the result: "), "{}", err.escape_ascii());
    let boxed: Box<dyn std::error::Error> = Failure::output(&closed.into()).into();
    assert_eq!(exit_code("outputs", Err(boxed.into()), &mut err), 0);
}

/// Every example built beside this test: `cargo test` builds all of them, `cargo test --test integration` none.
fn examples() -> Vec<(String, PathBuf)> {
    let me = std::env::current_exe().unwrap();
    let built = me.parent().unwrap().parent().unwrap().join("examples");
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let names = sources.map(|entry| entry.unwrap().path()).filter_map(|path| {
        let program = path.extension().is_some_and(|ending| ending == "rs") || path.join("main.rs").exists();
        program.then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
    });
    let mut found: Vec<_> = names.map(|name| (name.clone(), built.join(name))).collect();
    found.retain(|(_, path)| path.exists());
    found
}

/// Exit code and errors of a program whose output goes to `out`.
fn run(program: &Path, args: &[&str], out: impl Into<Stdio>) -> (Option<i32>, String) {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stdout(out).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn examples_fail_on_a_full_output_and_end_quietly_on_a_closed_pipe() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("full");
    let text = folder.file("a.txt", b"one\ntwo\n");
    let svg = folder.0.join("a.svg");
    let [text, svg] = [&text, &svg].map(|path| path.to_str().unwrap());
    let also: &[(&str, &[&str])] = &[
        ("rows", &[text]),
        ("rows", &[text, "--line", "2"]),
        ("wordcount", &[text]),
        ("op", &["--list"]),
        ("explain", &["--list"]),
        ("device", &["--no-measure"]),
        ("ladder", &["8", "--out", svg]),
        ("own_kernel", &[]),
        ("block", &["2", "300"]),
    ];
    for (name, path) in examples() {
        let usual: &[&str] = match name.as_str() {
            "own_device" => &[],
            "own_kernel" => &["--print"],
            _ => &["--help"],
        };
        let also = also.iter().filter(|(of, _)| *of == name).map(|(_, args)| *args);
        for args in also.chain([usual]) {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let (code, err) = run(&path, args, full);
            let last = err.lines().last().unwrap_or_default();
            assert!(code == Some(1), "{name} {args:?}: {code:?}, {err}");
            assert!(last.starts_with(&format!("{name}: writing the result: No space left")), "{name}: {err}");
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            let (code, err) = run(&path, args, writer);
            assert!(code == Some(0) && !err.contains(&format!("{name}: writing")), "{name} {args:?}: {code:?}, {err}");
        }
    }
}

#[test]
fn examples_check_output_paths_before_they_start() {
    let folder = Folder::new("places");
    let away = |name: &str| format!("{}/no/{name}", folder.0.display());
    let [mtx, svg, png, json, npy] = ["x.mtx", "x.svg", "x.png", "x.json", "x.npy"].map(away);
    // Most inputs are missing too; that error would come later.
    let cases: &[(&str, &[&str])] = &[
        ("solve", &["none.mtx", "-o", &mtx]),
        ("solve", &["none.mtx", "--plot", &svg]),
        ("pagerank", &["none.mtx", "--spy", &png]),
        ("quadtree", &["none.csv", "-o", &json]),
        ("quadtree", &["none.csv", "--picture", &png]),
        ("adaptive", &["--picture", &png]),
        ("cnn", &["train", "--data", "none", "--weights", &mtx]),
        ("image", &["none.png", &png, "--ops", "grey"]),
        ("overlap", &["--file", "none", "-o", &svg]),
        ("explain", &["gemm", "--shape", "64x64", "-o", &svg]),
        ("ladder", &["--out", &svg]),
        ("tour", &["--json", &json]),
        ("rows", &["Cargo.toml", "--index", &npy]),
        ("op", &["spconvert", "none.mtx", "-o", &npy]),
    ];
    for (name, path) in examples() {
        for (_, args) in cases.iter().filter(|(of, _)| *of == name) {
            let (code, err) = run(&path, args, Stdio::null());
            assert!(code == Some(2) && err.lines().count() == 1, "{name} {args:?}: {code:?}, {err}");
            assert!(err.contains("there is no folder"), "{name} {args:?}: {err}");
        }
    }
}

/// `op --emit` writes a program and its kernels for JavaScript, or nothing.
#[test]
fn op_emits_programs() {
    let folder = Folder::new("emit");
    let matrix = folder.file("a.mtx", super::solve::springs(5).as_bytes());
    // 100 u32.
    let header = "{'descr': '<u4', 'fortran_order': False, 'shape': (100,), }";
    let mut keys = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    keys.extend(format!("{header:<117}\n").bytes().chain([0; 400]));
    let keys = folder.file("keys.npy", &keys);
    let to = folder.0.join("sort");
    let [matrix, keys, to] = [&matrix, &keys, &to].map(|path| path.to_str().unwrap());
    for (_, path) in examples().iter().filter(|(name, _)| name == "op") {
        let line = ["sort", keys, "--emit", to];
        let (code, err) = run(path, &[&line[..], &["--descending"]].concat(), Stdio::null());
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let program: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(Path::new(to).join("program.json")).unwrap()).unwrap();
        assert_eq!(program["operands"][1]["length"], 100);
        assert_eq!(program["features"], serde_json::json!([]), "WebGPU's defaults");
        for kernel in program["kernels"].as_array().unwrap() {
            let text = fs::read_to_string(Path::new(to).join(kernel["file"].as_str().unwrap())).unwrap();
            assert!(text.contains(&format!("fn {}(", kernel["entry"].as_str().unwrap())), "{text}");
        }
        for (args, text) in [
            (&["sort", keys, "-o", keys, "--emit", to][..], "leave it out"),
            (&["sort", keys, "--variant", "onesweep", "--emit", to], "subgroup"),
            (&["sort", keys, "--backend", "cuda", "--emit", to], "programs of WebGPU"),
            (&["conjugate-gradient", matrix, keys, "--emit", to], "programs of WebGPU"),
            (&["sort", keys, "--emit", keys], "keys.npy"),
        ] {
            let (code, err) = run(path, args, Stdio::null());
            assert!(code == Some(2) && err.lines().count() == 1 && err.contains(text), "{args:?}: {code:?}, {err}");
        }
    }
}

/// Ops that the host drives are reported, timed and rejected like every op.
#[test]
fn op_reports_a_conversion_like_any_op() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("conversion");
    let a = folder.file("a.mtx", super::solve::springs(5).as_bytes());
    let to = folder.0.join("b.mtx");
    let [a, to] = [&a, &to].map(|path| path.to_str().unwrap());
    for (_, path) in examples().iter().filter(|(name, _)| name == "op") {
        let line = ["spconvert", a, "-o", to, "--through", "jds"];
        let (code, err) = run(path, &[&line[..], &["--report"]].concat(), Stdio::null());
        assert!(code == Some(0) && err.contains("dispatches") && err.contains("measured"), "{code:?}, {err}");
        assert!(fs::read_to_string(to).unwrap().contains("\n5 5 13\n"), "coordinates of all entries");
        let (code, err) = run(path, &[&line[..], &["--variant", "other"]].concat(), Stdio::null());
        assert!(code == Some(2) && err.contains("no variant `other`"), "{code:?}, {err}");
    }
}
