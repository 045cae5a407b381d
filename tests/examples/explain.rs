//! The `explain` example: its report, its picture, and its errors.

use super::program::{Example, Folder};
use crate::support::coverage::{all, turn};
use crate::support::gpu;
use parts::cli;
use std::fs;
use tilework::gpu::AdapterFilter;
use tilework::program::{DeviceProfile, Op, Program, Requires};
use tilework::tune::{TuningOptions, tune};
use tilework::{Gpu, GpuOptions, Zip, ZipFn};

#[path = "../../examples/explain"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod inputs;
    mod occupancy;
    mod table;
}

const PROGRAM: Example = Example("explain", cli::run);

/// The line of the first table that begins with this word, split into words.
fn line<'a>(out: &'a str, word: &str) -> Vec<&'a str> {
    let found = out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|w| w.first() == Some(&word));
    found.unwrap_or_else(|| panic!("no line of {word}: {out}"))
}

#[test]
fn occupancy_of_a_workgroup_is_calculated() {
    let occupancy =
        |line: &str| PROGRAM.run(&[&["occupancy"], &line.split_whitespace().collect::<Vec<_>>()[..]].concat());
    let of = |line: &str| {
        let (code, out, err) = occupancy(line);
        assert_eq!((code, err.as_str()), (0, ""), "{line}");
        out.lines().find(|l| l.contains("occupancy")).unwrap().to_owned()
    };
    let block = "--threads 288 --shared 10K --registers 9K";
    assert_eq!(
        of(&format!("{block} --device h100")),
        "7 at a time, 63 of 64 warps: occupancy 98.4 %, bound by threads"
    );
    assert_eq!(of(block), of(&format!("{block} --device H100")));
    let small = "--limits 1024,8,16K,16K";
    assert_eq!(of(&format!("{block} {small}")), "1 at a time, 9 of 32 warps: occupancy 28.1 %, bound by shared memory");
    // The best of four blocks is 14 warps of 32.
    for (block, warps) in [
        ("--threads 160 --shared 7K --registers 1K", "10 of 32 warps: occupancy 31.2 %"),
        ("--threads 224 --shared 8K --registers 6K", "14 of 32 warps: occupancy 43.8 %"),
        ("--threads 96 --shared 4K --registers 2K", "12 of 32 warps: occupancy 37.5 %"),
    ] {
        let line = of(&format!("{block} {small}"));
        assert!(line.contains(warps), "{line}");
    }
    // 10 registers a thread fill 1536 threads, 12 leave room for 5 blocks, and 8 blocks are the most.
    for (block, held) in [
        ("--threads 256 --registers 2560", "6 at a time, 48 of 48"),
        ("--threads 256 --registers 3K", "5 at a time, 40 of 48"),
        ("--threads 512 --registers 5632", "2 at a time, 32 of 48"),
        ("--threads 128", "8 at a time, 32 of 48"),
    ] {
        let line = of(&format!("{block} --limits 1536,8,16K,16K"));
        assert!(line.starts_with(held), "{line}");
    }
    // 100 threads take 4 warps.
    assert_eq!(
        of("--threads 100 --limits 1024,16,16K,16K"),
        "8 at a time, 32 of 32 warps: occupancy 100.0 %, bound by threads"
    );
    assert_eq!(of("--threads 4096"), "0 at a time, 0 of 64 warps: occupancy 0.0 %, bound by threads");
    assert!(occupancy("--help").1.starts_with("usage: explain occupancy"));
    for (line, part) in [
        ("", "give --threads"),
        ("--threads 0", "give --threads"),
        ("--threads x", "must be a whole number"),
        ("--threads 5000000K", "must be a whole number"),
        ("--threads 32 --device banana", "no limits of `banana`"),
        ("--threads 32 --limits 1,2,3", "four numbers"),
        ("--threads 32 --limits 1,2,3,4 --device h100", "give one"),
        ("--threads 32 --banana 3", "no key --banana"),
    ] {
        let (code, out, err) = occupancy(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains(part), "{line}: {err}");
    }
}

#[test]
fn limits_are_taken_from_the_device() {
    let Some(_) = gpu().filter(|gpu| !gpu.profile().name.contains("H100")) else { return };
    let many = ["histogram", "--shape", "100:u32", "--bins", "9000", "--variant", "privatized", "--no-measure"];
    let (_, out, err) = PROGRAM.run(&many);
    assert!(!out.contains("H100") && !err.contains("H100"), "{out}{err}");
}

#[test]
fn explain_compares_variants_with_the_roofline() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("explain");
    let path = folder.0.join("gemm.svg");
    let variants = ["naive", "tiled", "register"].map(|v| ["--variant", v]).concat();
    let args = ["gemm", "--shape", "64x48", "--alpha", "0.5", "--reports", "-o", path.to_str().unwrap()];
    let out = PROGRAM.succeeds(&[&args[..], &variants].concat());
    assert!(out.starts_with("gemm: ") && out.contains("inputs   (64, 48) of f32, (48, 64) of f32"), "{out}");
    // 2 x 64 x 64 x 48 operations on the bytes of three matrices.
    let naive = line(&out, "naive");
    assert_eq!(naive[1..5], ["1", "0.0003932", "0.04096", "9.600"], "{out}");
    assert!(out.contains("measured: the median") && !out.contains("not here"), "{out}");
    assert!(out.contains("\ngemm on ") && out.contains("  workgroups  "), "the reports too: {out}");
    let analysis = &out[out.find("\nanalysis").unwrap()..];
    assert_eq!(line(analysis, "naive")[2], "1", "the definition loads each element for each use: {out}");
    assert!(line(analysis, "tiled")[2].parse::<f64>().unwrap() > 1.0, "{out}");
    assert!(out.contains("coalescing: % used of the 32-byte sectors"), "{out}");
    // Predictions differ by variant: each requests other bytes.
    let predicted = |variant| line(&out, variant).iter().rev().nth(3).unwrap().parse::<f64>().unwrap();
    assert!(predicted("naive") > predicted("tiled"), "{out}");
    let svg = fs::read_to_string(&path).unwrap();
    for part in ["<svg", "GFLOP/s", "operations per byte requested by workgroups", "GB/s", "naive (", "register ("] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
}

#[test]
fn explain_predicts_without_running() {
    if gpu().is_none() {
        return;
    }
    let out = PROGRAM.succeeds(&["reduce", "--shape", "100000:u32", "--op", "max", "--no-measure"]);
    let row = line(&out, "interleaved");
    assert_eq!(row.last(), Some(&"-"), "{out}");
    assert!(!out.contains("measured:") && out.contains("coarsened *"), "{out}");
    assert!(out.contains("*: chosen by auto"), "{out}");
    assert!(out.contains("joins: at the least") && out.contains("divergent: of "), "{out}");
}

/// Runs the ignored test in a process with a cache directory of its own.
#[test]
fn explain_takes_options_that_only_the_named_variant_has() {
    if gpu().is_none() {
        return;
    }
    let words = "gemm --shape 64x64 --variant coarsened --thread-tile 1,4 --tile 16,64,16 --no-measure";
    let (code, out, err) = PROGRAM.run(&words.split(' ').collect::<Vec<_>>());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("auto     none: ") && !out.contains("chosen by auto"), "{out}");
    line(&out, "coarsened");
}

#[test]
fn explain_marks_tuned_choices() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("explain-tuned");
    let here = "examples::explain::explain_marks_tuned_choices_alone";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", here])
        .env("TILEWORK_CACHE", folder.0.join("cache"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by `explain_marks_tuned_choices`, with a cache directory of its own"]
fn explain_marks_tuned_choices_alone() {
    const N: usize = 1 << 18;
    /// Adds two vectors; its default variant repeats the work many times.
    struct Slow;
    impl Op<f32> for Slow {
        fn lower(&self, profile: &DeviceProfile) -> tilework::Result<Program> {
            let mut program = Op::<f32>::lower(&Zip::new(ZipFn::Add, N), profile)?;
            if program.variant() == "vec4" {
                program.dispatches = (0..20).flat_map(|_| program.dispatches.clone()).collect();
            }
            Ok(program)
        }
    }
    let explain = || PROGRAM.succeeds(&["zip", "--fn", "add", "--shape", &N.to_string(), "--no-measure"]);
    assert!(explain().contains("\nvec4 *"), "{}", explain());
    let name = gpu().unwrap().profile().name.clone();
    let options = GpuOptions { adapter: AdapterFilter::Name(name), ..GpuOptions::default() };
    let gpu = pollster::block_on(Gpu::request(options)).unwrap();
    let thorough = TuningOptions { near_roofline: 0.0, ..TuningOptions::default() };
    let best = tune::<f32, _>(&gpu, &Slow, &thorough).unwrap().best.variant;
    let out = explain();
    assert!(out.contains(&format!("\n{best} *")) && !out.contains("\nvec4 *"), "{out}");
    assert!(out.contains(&format!("auto     {best} (tuned on this device: ")), "{out}");
}

#[test]
fn explain_accepts_every_op_of_the_op_example() {
    if gpu().is_none() {
        return;
    }
    let mut taken = 0;
    let ops = tilework::operations().filter(|op| !op.solver).enumerate();
    for (_, op) in ops.filter(|(i, _)| turn(*i, 3)) {
        // One variant each: the tests of each op compile the others.
        let portable = (op.variants)().iter().find(|v| v.requires == Requires::NOTHING).unwrap();
        let shape = op.example.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let dtype = op.types[0].name();
        let mut args = vec![op.name, "--no-measure", "--variant", portable.name];
        if !shape.is_empty() {
            args.extend(["--shape", &shape, "--dtype", dtype]);
        }
        let options: Vec<_> = op
            .example
            .options
            .iter()
            .map(|(name, value)| {
                let name = if *name == "shape" { "op-shape" } else { name };
                (format!("--{name}"), *value)
            })
            .collect();
        args.extend(options.iter().flat_map(|(name, value)| [name.as_str(), *value]));
        let out = PROGRAM.succeeds(&args);
        assert!(line(&out, portable.name).len() >= 10 || out.contains("not here"), "{args:?}: {out}");
        taken += 1;
    }
    assert!(taken > if all() { 80 } else { 30 }, "{taken} ops");
}

#[test]
fn explain_measures_matrices_from_files_and_generated_ones() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("explain-matrix");
    let a = folder.file("a.mtx", super::solve::springs(50).as_bytes());
    let csr = ["--variant", "csr-scalar", "--runs", "1"];
    let out = PROGRAM.succeeds(&[&["spmv", "--matrix", a.to_str().unwrap()][..], &csr].concat());
    assert!(out.contains("a 50 x 50 matrix of 148 entries") && out.contains("suits the matrix: "), "{out}");
    assert!(line(&out, "csr-scalar").last().is_some_and(|cell| *cell == "%"), "{out}");
    let out = PROGRAM.succeeds(&[&["spmv", "--shape", "200x100x4"][..], &csr].concat());
    assert!(out.contains("a 200 x 100 matrix of ") && out.contains("(100,) of f32"), "{out}");
    // An op without arithmetic has no point on the roofline.
    let path = folder.0.join("no.svg");
    let out = PROGRAM.succeeds(&["transpose", "--shape", "9x5", "-o", path.to_str().unwrap()]);
    assert!(out.contains("no picture: ") && !path.exists(), "{out}");
}

#[test]
fn explain_reports_errors_in_one_line() {
    if gpu().is_none() {
        return;
    }
    let cases: &[(&[&str], &str)] = &[
        (&[], "no op named"),
        (&["gemm", "--reports", "--shape", "4x4", "--reports"], "--reports is given twice"),
        (&["gem"], "no op `gem`"),
        (&["gemm"], "--shape is missing"),
        (&["gemm", "--shape", "4x"], "--shape 4x"),
        (&["gemm", "--shape", "4x4:f64"], "f64: not an element type"),
        (&["gemm", "--shape", "4x5", "--shape", "4x5"], "columns of the first"),
        (&["gemm", "--shape", "4", "--shape", "4"], "must have 2 dimensions"),
        (&["gemm", "--shape", "4x4", "--dtype", "u8"], "takes f32 and f16"),
        (&["gemm", "--shape", "4x4", "--colour", "red"], "gemm has no key --colour; it has --alpha"),
        (&["--alpha", "2", "gemm"], "--alpha precedes"),
        (&["gemm", "--shape", "4x4", "--alpha", "x"], "--alpha x"),
        (&["gemm", "--shape", "4x4", "--variant", "fast"], "no variant `fast`; there are: naive"),
        (&["gemm", "--shape", "4x4", "--runs", "0"], "--runs 0"),
        (&["gemm", "--shape", "4x4", "-o", "a.jpg"], "a.jpg: must end with .svg or .png"),
        (&["gemm", "--shape", "4x4", "--matrix", "a.mtx"], "takes no sparse matrix"),
        (&["map", "--shape", "4", "--shape", "4"], "map: 2 inputs given"),
        (&["map", "--shape", "99999999999"], "take a smaller one"),
        (&["select", "--shape", "9:u8"], "select: the input is of u8; the op takes f32, f16, i32 and u32"),
        (&["partition", "--shape", "9:i8"], "partition: the input is of i8; the op takes f32, f16,"),
        (
            &["reduce-by-key", "--shape", "9:u32", "--shape", "9:u8"],
            "reduce-by-key: the input is of u8; the op takes f32, i32",
        ),
        (&["histogram", "--shape", "9", "--lo", "0", "--hi", "1e-320"], "the range 0.0 to 1e-320 is 0.0 to 0.0 in f32"),
        (&["spmv"], "give --matrix FILE.mtx"),
        (&["spmv", "--matrix", "/nowhere/a.mtx"], "/nowhere/a.mtx"),
        (&["spmv", "--shape", "5"], "ROWSxCOLS"),
        (&["top-k", "--shape", "10"], "--k is missing"),
        (&["map", "--shape", "4", "-o", "/nowhere/x.svg"], "/nowhere/x.svg"),
    ];
    for (args, words) in cases {
        PROGRAM.rejects(args, words);
    }
    let out = PROGRAM.succeeds(&["--list"]);
    assert!(out.contains("\ngemm: ") && out.contains("inputs"), "{out}");
    assert!(PROGRAM.succeeds(&["--help"]).starts_with("usage: explain OP"));
    let (code, _, err) = PROGRAM.run(&["map", "--shape", "4", "--adapter", "x"]);
    assert_eq!(code, 2, "--adapter twice: {err}");
}
