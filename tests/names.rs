//! Where a public name is: the rule that the page of `tilework::prelude` states, checked on the sources.

use std::collections::BTreeSet;
use std::fs;

const LIB: &str = include_str!("../src/lib.rs");

const FAMILIES: [&str; 9] =
    ["attention", "conv", "dense", "elementwise", "image", "nn", "primitives", "quantize", "sparse"];

/// Names of families that the root does not repeat, since no op is made with them in most programs.
const AT_HOME: [&str; 5] = [
    "CoopTile FlashTile ProductTile ThreadOutputs ThreadTile Statistics", // what tuning sets
    "Code Operator Reducer SparseMatrix",                                 // traits, and what implements them
    "Layout",                                                             // a field of `Image`
    "Coo Csc Csr Ell Hybrid Jds Sell Described Duplicates Format HostMatrix List Outcome Solution Target",
    "Sequential Forward Gradient Loss Optimizer Parameter Train", // networks
];

/// Names of the root that no family has: the runtime.
const RUNTIME: [&str; 6] = [
    "Arg Buffer Gpu GpuOptions Recorder Slice",
    "CudaPlan Fact KernelReport Plan Plannable Plans Report When",
    "DType Element HostArray HostData",
    "Error ErrorKind Result",
    "AnyBuffer CudaReadyCall ReadyCall", // ops by name
    "DeviceList DeviceMatrix Driven MatrixJob Solver",
];

/// Names that the root has and the prelude does not.
const NO_PRELUDE: [&str; 5] = [
    "Error ErrorKind Result Report KernelReport Fact DType Element", // errors, reports, types
    "HostArray HostData AnyBuffer ReadyCall CudaReadyCall",          // host arrays, and ops by name
    "CudaPlan Plans DeviceList Driven MatrixJob Solver",             // what calls return
    "PageMoves PagePool Paging ScoreStage SequenceId",               // caches and scores of attention
    // Training, with all gradients.
    "Adam Sgd CrossEntropy BinaryCrossEntropy SquaredError BatchNormTrain Pool2dBackwardWeights",
];

type Names = BTreeSet<String>;

/// Words that begin with a capital letter and are not constants: names of types.
fn types(text: &str) -> Names {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_type = |word: &&str| word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
    words.filter(is_type).map(str::to_owned).collect()
}

/// The names of lines that begin with `start`, in `text`.
fn repeated(text: &str, start: &str) -> Names {
    let start = format!("\n{start}");
    let lists = text.split(start.as_str()).skip(1);
    lists.flat_map(|list| types(list.split(';').next().unwrap_or_default())).collect()
}

#[test]
fn the_root_repeats_every_op_and_the_types_of_its_options() {
    let at_home = types(&AT_HOME.join(" "));
    let mut unknown = at_home.clone();
    unknown.remove("Coo"); // a name for a type of `io`
    let mut others = repeated(LIB, "pub use ");
    for family in FAMILIES {
        let home = fs::read_to_string(format!("{}/src/{family}/mod.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let own = home.replace("\npub use crate::", "\n"); // another family's
        let mut root = repeated(LIB, &format!("pub use {family}::"));
        for name in repeated(&own, "pub use ") {
            // Two families may have a name in common; the root repeats one of them.
            let (repeats, stays) = (root.remove(&name), at_home.contains(&name));
            others.remove(&name);
            assert!(repeats || stays, "{family}::{name}: repeat it in src/lib.rs, or list it in AT_HOME");
            unknown.remove(&name);
        }
        assert!(root.is_empty(), "{family} has no public {root:?}");
    }
    assert!(unknown.is_empty(), "AT_HOME: no family has {unknown:?}");
    assert_eq!(others, types(&RUNTIME.join(" ")), "names of the root that no family has: list them in RUNTIME");
}

#[test]
fn the_prelude_repeats_the_root_without_errors_reports_and_training() {
    let left_out = types(&NO_PRELUDE.join(" "));
    let mut root = repeated(LIB, "pub use ");
    let missing: Vec<_> = left_out.difference(&root).collect();
    assert!(missing.is_empty(), "NO_PRELUDE: the root has no {missing:?}");
    root.retain(|name| !left_out.contains(name) && !name.contains("Backward"));
    assert_eq!(repeated(LIB, "    pub use crate::"), root);
}

/// The documentation of an op lists its errors, and begins with an example that runs it. A method of the device runs
/// solvers and `Spinsert`.
#[test]
fn every_op_shows_in_its_first_20_lines_how_to_run_it() {
    let mut found = 0;
    for family in FAMILIES {
        let folder = format!("{}/src/{family}", env!("CARGO_MANIFEST_DIR"));
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let text = fs::read_to_string(&file).unwrap();
            let mut docs: Vec<&str> = Vec::new();
            for line in text.lines() {
                if line.starts_with("///") {
                    docs.push(line);
                    continue;
                }
                if line.starts_with("#[") {
                    continue;
                }
                let of = std::mem::take(&mut docs);
                let Some(name) = line.strip_prefix("pub struct ") else { continue };
                if !of.contains(&"/// # Errors") {
                    continue;
                }
                found += 1;
                let begin = of.iter().position(|line| *line == "/// ```").unwrap_or(of.len());
                assert!(begin < 20, "{}: {name} has no example in its first 20 lines", file.display());
                let example = of[begin + 1..].split(|line| *line == "/// ```").next().unwrap().join("\n");
                let runs = [".record(", ".record_", ".run(", ".solve(", "insert_entries("]
                    .iter()
                    .any(|call| example.contains(call));
                assert!(example.contains("Gpu::new()") && runs, "{name}: the example does not run it");
            }
        }
    }
    assert!(found > 80, "{found}");
}
