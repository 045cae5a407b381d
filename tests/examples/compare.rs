//! The `compare` example: a short run, its files, and its errors.

use super::common::measured::Check;
use super::program::{Example, Folder, path};
use crate::support::gpu;
use parts::backends::Outcome;
use parts::problem::{Array, Problem, Processor};
use parts::{backends, cases, cli, rows};
use serde_json::Value;
use std::fs;
use std::rc::Rc;
use tilework::program::Cost;

#[path = "../../examples/compare"]
mod parts {
    use super::super::common;

    pub(super) mod backends;
    pub(super) mod cases;
    mod chart;
    mod check;
    pub(super) mod cli;
    #[cfg(feature = "cuda")]
    mod cuda;
    mod draw;
    mod loops;
    pub(super) mod problem;
    pub(super) mod rows;
}

const PROGRAM: Example = Example("compare", cli::run);

#[test]
fn compare_checks_times_and_draws() {
    let Some(gpu) = gpu() else { return };
    let folder = Folder::new("compare");
    let to = folder.0.join("new/place");
    let id = gpu.profile().id();
    let backends = format!("{id},cpu");
    let args = ["--ops", "gemm-f32,scan,histogram,sort,spmv", "--sizes", "33,130", "--backends", &backends];
    let out = PROGRAM.succeeds(&[&args[..], &["--out", path(&to)]].concat());
    assert!(out.contains("results are right\n") && out.contains("nothing was left out"), "{out}");
    let rows: Vec<Value> = serde_json::from_str(&fs::read_to_string(to.join("rows.json")).unwrap()).unwrap();
    // Reference, loops, tiles and a crate compute the product, reference and loops the rest, the device all of them.
    let adapters = rows.iter().filter(|r| r["backend"].as_str().unwrap().starts_with(&id)).count();
    assert_eq!(rows.len() - adapters, 2 * (4 + 4 * 2), "{out}");
    assert!(adapters >= 2 * 5 && adapters % 10 == 0, "{out}");
    for row in &rows {
        assert!(row["passed"] == true && row["seconds"].as_f64().unwrap() > 0.0, "{row}");
        let known = ["op", "variant", "dtype", "size", "clock", "adapter", "driver", "date", "version"];
        assert!(known.iter().all(|key| row[key].is_string()), "{row}");
        assert!(row["gbps"].as_f64().unwrap() > 0.0 && row["min_seconds"].is_number(), "{row}");
    }
    for name in ["gemm-f32-time", "gemm-f32-throughput", "gemm-f32-bars", &format!("roofline-{id}")] {
        let svg = fs::read_to_string(to.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains(&id), "{name}: {svg}");
        // Text and lines were drawn.
        let picture = ::image::open(to.join(format!("{name}.png"))).unwrap().into_rgb8();
        let dark = picture.pixels().filter(|p| p.0.iter().all(|c| *c < 80)).count();
        assert!(picture.width() >= 960 && dark > 500, "{name}: {dark} dark pixels");
    }
    // Two image files, the rows, and no partial file.
    assert_eq!(fs::read_dir(&to).unwrap().count() % 2, 1);
    assert!(fs::read_dir(&to).unwrap().all(|f| !f.unwrap().file_name().to_string_lossy().ends_with(".part")));
}

#[test]
fn compare_rejects_unknown_arguments() {
    let folder = Folder::new("compare-not");
    let file = folder.file("file", b"");
    let to = folder.0.join("out");
    let line = |args: &[&str], words: &str| {
        assert_eq!(PROGRAM.rejects(&[args, &["--out", path(&to)]].concat(), words), "");
    };
    line(&["--ops", "gem"], "--ops gem: there are map-f32, ");
    line(&["--sizes", "0"], "--sizes 0: must be a whole number");
    line(&["--sizes", "64,9G"], "--sizes 9G");
    line(&["--sizes", "2048M"], "--sizes 2048M");
    line(&["--backends", "abacus"], "--backends abacus: there are ");
    line(&["--backends", "cpu,"], "--backends : there are ");
    if cfg!(not(feature = "cuda")) {
        line(&["--backends", "cuda"], "--backends cuda: not here: this program was built without the feature");
    }
    line(&["--ops", "map", "--ops", "map"], "--ops is given twice");
    line(&["--fast"], "invalid option '--fast'; see --help");
    assert!(!to.exists());
    PROGRAM.rejects(&["--ops", "map", "--out", path(&file)], "file: ");
    let out = PROGRAM.succeeds(&["--list"]);
    assert!(out.contains("gemm-f32-split") && out.contains("cpu-matrixmultiply"), "{out}");
}

#[test]
fn compare_does_not_time_wrong_results() {
    let output: Rc<dyn Array> = Rc::new(vec![0f32; 4]);
    let problem = Problem::of::<f32>(Cost::default(), "4".into(), vec![output], |got| {
        Ok(Check::exact(got, [1.0f32, 2.0, 3.0, 4.0].into_iter()))
    });
    let problem = problem.processor(Processor::Loops, 4, |y: &mut Vec<f32>| {
        y.fill(1.0);
        Ok(())
    });
    let loops = backends::find().into_iter().find(|f| f.name == "cpu-loops").unwrap();
    let mut backend = loops.open().unwrap();
    let Outcome::Wrong { variant, check } = backend.solve(&problem).unwrap() else { panic!("it is wrong") };
    assert!(!check.passed);
    let row = rows::Row {
        case: &cases::CASES[0],
        extent: 4,
        size: "4".into(),
        place: 0,
        variant,
        cost: problem.cost,
        error: check.error,
        timed: None,
    };
    assert!(rows::describe(&row, std::slice::from_ref(&backend)).contains("WRONG"));
    let json = rows::json(&[row], &[backend], "2000-01-01");
    assert!(json[0]["seconds"].is_null() && json[0]["passed"] == false, "{json}");
}
