//! The outcome of every variant of every op on every adapter: `.ci/matrix` makes recordings, which are merged into
//! `benches/results/matrix.json`. `UPDATE_MATRIX=FOLDER` writes it from the recordings in that folder.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tilework::program::Operation;

/// The output of one test process.
struct Module {
    /// Lines of `support::recording`: the device, then the variants that ran.
    recording: String,
    /// The output of libtest.
    output: String,
    exit: i32,
    tests: usize,
    seconds: u64,
}

/// A column of the matrix: an adapter, opened one way.
#[derive(Default)]
struct Column {
    about: Map<String, Value>,
    /// The tests that ran each variant, and whether they failed.
    ran: BTreeMap<String, BTreeMap<String, bool>>,
    tests: usize,
    failed: BTreeSet<String>,
    seconds: u64,
}

impl Column {
    /// Adds a module's tests. If the process ended abnormally, all its tests have failed.
    fn add(&mut self, name: &str, module: &Module) {
        self.tests += module.tests;
        self.seconds += module.seconds;
        let listed = module.output.rsplit("\nfailures:\n").next().unwrap_or_default();
        let mut failed: BTreeSet<_> = match module.exit {
            101 => listed.lines().map_while(|l| l.strip_prefix("    ")).map(str::to_owned).collect(),
            _ => BTreeSet::new(),
        };
        if module.exit != 0 && failed.is_empty() {
            failed.insert(format!("{name} (exit code {})", module.exit));
        }
        let crashed = module.exit != 0 && module.exit != 101;
        for line in module.recording.lines() {
            // The last line of a killed process may be incomplete.
            let Ok(Value::Object(line)) = serde_json::from_str(line) else { continue };
            let text = |key: &str| line.get(key).and_then(Value::as_str);
            let Some(ran) = text("ran") else {
                self.about = line;
                continue;
            };
            // On a thread without a test's name, it may be any test of the module.
            let test = text("test").filter(|t| t.starts_with(name));
            let wrong = match test {
                Some(test) => crashed || failed.contains(test),
                None => module.exit != 0,
            };
            *self.ran.entry(ran.to_owned()).or_default().entry(test.unwrap_or(name).to_owned()).or_default() |= wrong;
        }
        self.failed.append(&mut failed);
    }

    fn read(folder: &Path) -> Self {
        let mut column = Self::default();
        let mut modules: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        modules.retain(|path| path.extension().is_some_and(|e| e == "end"));
        modules.sort();
        for path in modules {
            let text = |ending: &str| fs::read_to_string(path.with_extension(ending)).unwrap_or_default();
            let end: Vec<u64> = text("end").split_whitespace().map(|n| n.parse().unwrap()).collect();
            let [exit, tests, seconds] = end[..] else { panic!("{}: {end:?}", path.display()) };
            let module = Module {
                recording: text("jsonl"),
                output: text("out"),
                exit: exit as i32,
                tests: tests as usize,
                seconds,
            };
            column.add(&path.file_stem().unwrap().to_string_lossy().replace('.', "::"), &module);
        }
        column
    }

    /// The outcome of a variant: `pass`, `not run`, or the reason.
    fn outcome(&self, variant: &str) -> Value {
        let of = |wrong: bool| {
            let tests = self.ran.get(variant).into_iter().flatten().filter(move |t| *t.1 == wrong);
            tests.map(|t| t.0.as_str())
        };
        let failed: Vec<_> = of(true).collect();
        match (&self.about.get("unsupported").and_then(|all| all.get(variant)), failed.is_empty()) {
            (_, false) => json!({"fail": failed}),
            (Some(why), true) => json!({"not supported": why}),
            (None, true) => match of(false).count() {
                0 => json!("not run"),
                _ => json!("pass"),
            },
        }
    }
}

/// All ops, solvers included.
fn ops() -> impl Iterator<Item = &'static Operation> {
    tilework::operations()
}

/// The matrix with these columns, which replace those of the same names.
fn joined(mut matrix: Value, columns: &BTreeMap<String, Column>, date: &str) -> Value {
    for (name, column) in columns {
        let about = |key: &str| column.about.get(key).cloned().unwrap_or_default();
        let variants = ops().flat_map(|op| (op.variants)().iter().map(move |v| format!("{}/{}", op.name, v.name)));
        let outcomes: Map<_, _> = variants.map(|v| (v.clone(), column.outcome(&v))).collect();
        matrix[name] = json!({
            "adapter": about("name"), "driver": about("driver"), "backend": about("backend"), "way": about("way"),
            "version": env!("CARGO_PKG_VERSION"), "date": date, "command": format!(".ci/matrix {name}"),
            "tests": column.tests, "failed": column.failed, "seconds": column.seconds, "outcomes": outcomes,
        });
    }
    matrix
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/matrix.json")
}

/// The committed matrix.
pub(crate) fn matrix() -> Value {
    fs::read_to_string(path()).map_or_else(|_| json!({}), |text| serde_json::from_str(&text).unwrap())
}

/// Why outcomes must not be committed: a failure, or an op that passes on no device with WebGPU's defaults.
fn complaints(matrix: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, column) in matrix.as_object().unwrap() {
        let failed = column["failed"].as_array().into_iter().flatten();
        found.extend(failed.map(|test| format!("{name}: {} failed", test.as_str().unwrap())));
        let outcomes = column["outcomes"].as_object().unwrap();
        let wrong = outcomes.iter().filter(|o| o.1.get("fail").is_some());
        found.extend(wrong.map(|(variant, o)| format!("{name}: {variant}: {o}")));
        if column["way"] == "WebGPU defaults" {
            let passes: BTreeSet<_> = (outcomes.iter().filter(|o| *o.1 == "pass"))
                .map(|(variant, _)| variant.split('/').next().unwrap())
                .collect();
            // An op newer than the matrix has no outcome yet.
            let known = ops().filter(|op| outcomes.keys().any(|v| v.split('/').next() == Some(op.name)));
            let without = known.filter(|op| !passes.contains(op.name));
            found.extend(without.map(|op| format!("{name}: no variant of {} passes", op.name)));
        }
    }
    found
}

#[test]
fn the_matrix_has_no_failures() {
    if let Some(folder) = std::env::var_os("UPDATE_MATRIX").map(PathBuf::from) {
        let folders = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|path| path.is_dir());
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let columns = folders.map(|path| (name(&path), Column::read(&path))).collect();
        let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        let matrix = joined(matrix(), &columns, now.split('T').next().unwrap());
        fs::write(path(), serde_json::to_string_pretty(&matrix).unwrap() + "\n").unwrap();
    }
    let complaints = complaints(&matrix());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Cells of an op's row: the number of its variants that pass in each column.
fn cells(matrix: &Map<String, Value>, op: &Operation) -> Vec<String> {
    let all = (op.variants)();
    let cell = |column: &Value| {
        let is = |what: &str| {
            let outcome = |v: &str| &column["outcomes"][format!("{}/{v}", op.name)];
            all.iter().filter(|v| outcome(v.name) == what || outcome(v.name).get(what).is_some()).count()
        };
        match (is("pass"), is("not supported"), is("fail")) {
            (_, _, 1..) => "FAIL".into(),
            (n, 0, _) if n == all.len() => "all".into(),
            (n, m, _) if n + m == all.len() => format!("{n} of {}", all.len()),
            (n, m, _) => format!("{n} of {}, {} not run", all.len(), all.len() - n - m),
        }
    };
    matrix.values().map(cell).collect()
}

/// The matrix for the README: ops with equal outcomes share a row.
pub(crate) fn table() -> String {
    let matrix = matrix();
    let columns = matrix.as_object().unwrap();
    let mut rows: Vec<(Vec<String>, Vec<&Operation>)> = Vec::new();
    for op in ops() {
        let cells = cells(columns, op);
        match rows.iter_mut().find(|(c, _)| *c == cells) {
            Some((_, ops)) => ops.push(op),
            None => rows.push((cells, vec![op])),
        }
    }
    rows.sort_by_key(|(_, ops)| ops.len());
    let heads: Vec<_> = columns.keys().map(String::as_str).collect();
    let mut text = format!("| ops | variants | {} |\n|---|---:|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for (cells, ops) in rows {
        let names: Vec<_> = ops.iter().map(|op| op.name).collect();
        let variants: usize = ops.iter().map(|op| (op.variants)().len()).sum();
        text += &format!("| {} | {variants} | {} |\n", names.join(", "), cells.join(" | "));
    }
    text += "\n";
    for (name, column) in columns {
        let of = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        let mut without: BTreeMap<&str, usize> = BTreeMap::new();
        for why in column["outcomes"].as_object().unwrap().values().filter_map(|o| o["not supported"].as_str()) {
            *without.entry(why.split(" (").next().unwrap().split(',').next().unwrap()).or_default() += 1;
        }
        let without: Vec<_> =
            without.iter().map(|(why, n)| format!("{why} ({n} variant{})", if *n == 1 { "" } else { "s" })).collect();
        let lacks = if without.is_empty() { "nothing".into() } else { without.join(", ") };
        text += &format!(
            "- `{name}`: {}, {} ({}, {}): {} tests, {}; lacks {lacks}\n",
            of("adapter"),
            of("driver"),
            of("backend"),
            of("way"),
            column["tests"],
            of("date"),
        );
    }
    text
}

fn module(recording: &str, output: &str, exit: i32) -> Module {
    Module { recording: recording.into(), output: output.into(), exit, tests: 2, seconds: 1 }
}

#[test]
fn recordings_merge_into_outcomes() {
    let about = r#"{"name": "x", "unsupported": {"gemm/coop": "matrices"}}"#;
    let ran = |test: &str| format!("{about}\n{{\"ran\": \"gemm/tiled\", \"test\": {test}}}\n");
    let gave = |recording: &str, output: &str, exit| {
        let mut column = Column::default();
        column.add("dense::gemm", &module(recording, output, exit));
        (column.outcome("gemm/tiled"), column.failed.len())
    };
    let named = ran("\"dense::gemm::a\"");
    assert_eq!(gave(&named, "", 0), (json!("pass"), 0));
    let failures = |test: &str| format!("failures:\nwhy\n\nfailures:\n    dense::gemm::{test}\n\ntest result\n");
    assert_eq!(gave(&named, &failures("a"), 101), (json!({"fail": ["dense::gemm::a"]}), 1));
    assert_eq!(gave(&named, &failures("b"), 101), (json!("pass"), 1));
    // A killed process, or a thread without a name, may be any test.
    assert_eq!(gave(&named, "", 139), (json!({"fail": ["dense::gemm::a"]}), 1));
    for thread in ["\"main\"", "null"] {
        assert_eq!(gave(&ran(thread), &failures("b"), 101), (json!({"fail": ["dense::gemm"]}), 1));
    }
    // An incomplete line, left by a killed process.
    assert_eq!(gave(&format!("{named}{{\"ran\": \"ge"), "", 0), (json!("pass"), 0));

    let mut column = Column::default();
    column.add("dense::gemm", &module(&named, "", 0));
    assert_eq!(column.outcome("gemm/naive"), json!("not run"));
    assert_eq!(column.outcome("gemm/coop"), json!({"not supported": "matrices"}));
    assert_eq!((column.tests, column.seconds), (2, 1));
}

#[test]
fn rejects_a_matrix_with_a_failure() {
    let column =
        |outcomes: Value, failed: &[&str]| json!({"way": "WebGPU defaults", "failed": failed, "outcomes": outcomes});
    let of = |outcomes, failed: &[&str]| complaints(&json!({"floor": column(outcomes, failed)}));
    assert!(of(json!({"map/scalar": "pass"}), &[]).is_empty());
    assert_eq!(of(json!({"map/scalar": "pass"}), &["map::x"]), ["floor: map::x failed"]);
    assert_eq!(of(json!({"map/scalar": "not run"}), &[]), ["floor: no variant of map passes"]);
    let both = of(json!({"map/scalar": "pass", "map/vec4": {"fail": ["map::x"]}}), &[]);
    assert_eq!(both, [r#"floor: map/vec4: {"fail":["map::x"]}"#]);
}
