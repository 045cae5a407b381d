//! Where a public name is: the rule that the page of `tilework::prelude` states, checked on the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const LIB: &str = include_str!("../src/lib.rs");

type Names = BTreeSet<String>;

/// Words that begin with a capital letter: names of types.
fn types(text: &str) -> Names {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// The names that `pub use` lines repeat, of one indentation; with `home`, only those of that module.
fn repeated(indent: &str, home: Option<&str>) -> Names {
    let start = match home {
        Some(home) => format!("\n{indent}pub use {home}::"),
        None => format!("\n{indent}pub use "),
    };
    let lists = LIB.split(start.as_str()).skip(1);
    lists.flat_map(|list| types(list.split(';').next().unwrap_or_default())).collect()
}

/// Names of ops and solvers, and of the types in the signatures of their public methods, of one family.
fn ops_and_their_types(family: &str) -> (Names, Names) {
    let (mut ops, mut taken) = (Names::new(), Names::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(family);
    for entry in fs::read_dir(folder).unwrap() {
        let Ok(text) = fs::read_to_string(entry.unwrap().path()) else { continue };
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        if !code.contains("INFO: Operation") && !code.contains("::INFO;") {
            continue;
        }
        for item in code.split("\npub struct ").skip(1) {
            let name: String = item.chars().take_while(|c| c.is_alphanumeric()).collect();
            let methods = code.split("\nimpl").filter(|part| {
                let head = part.split(" {\n").next().unwrap_or_default();
                head.contains(name.as_str()) && !head.contains(" for ")
            });
            let methods: Vec<_> = methods.map(|part| part.split("\n}").next().unwrap_or_default()).collect();
            // Other structs of the file are what an op's methods take.
            if methods.iter().any(|part| part.contains(" fn new(") || part.contains(" fn new<")) {
                ops.insert(name);
                for function in methods.iter().flat_map(|part| part.split("    pub ").skip(1)) {
                    let arguments = function.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
                    taken.extend(arguments.map(|(arguments, _)| types(arguments)).unwrap_or_default());
                }
            }
        }
    }
    (ops, taken)
}

#[test]
fn the_root_repeats_every_op_and_the_types_of_its_options() {
    let [mut root, mut public, mut ops, mut taken] = [const { Names::new() }; 4];
    for family in
        ["attention", "conv", "dense", "elementwise", "image", "nn", "primitives", "quantize", "sparse"]
    {
        let home = fs::read_to_string(format!("{}/src/{family}/mod.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let lists = home.split("\npub use ").skip(1).map(|list| list.split(';').next().unwrap_or_default());
        public.extend(lists.filter(|list| !list.starts_with("crate::")).flat_map(types));
        root.extend(repeated("", Some(family)));
        let (its_ops, their_types) = ops_and_their_types(family);
        ops.extend(its_ops);
        taken.extend(their_types);
    }
    assert_eq!(ops.len(), tilework::operations().count());
    taken.extend(["ArgMax", "ArgMin", "CustomOp", "Max", "Min", "Prod", "Sum"].map(str::to_owned));
    taken.retain(|name| public.contains(name) && !name.ends_with("Tile") && name != "Statistics"); // of tuning
    assert_eq!(root, &ops | &taken);
}

#[test]
fn the_prelude_repeats_the_root_without_errors_reports_and_training() {
    let errors_reports_and_types = "Error ErrorKind Result Report KernelReport Fact DType Element";
    let host_arrays_and_ops_by_name = "HostArray HostData AnyBuffer Formed CudaFormed";
    let what_calls_return = "CudaPlan Plans Driven MatrixJob Solver";
    let training = "Adam Sgd CrossEntropy SquaredError";
    let left_out = [errors_reports_and_types, host_arrays_and_ops_by_name, what_calls_return, training];
    let left_out = types(&left_out.join(" "));
    let mut root = repeated("", None);
    root.retain(|name| !left_out.contains(name) && !name.contains("Backward"));
    let prelude = repeated("    ", Some("crate"));
    assert_eq!(prelude, root);
}
