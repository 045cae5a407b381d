//! Writes the tables and the chart of the README, of `benches/RESULTS.md` and of the guides, from the measurements and
//! the catalogue of ops, if `UPDATE_README=1` is set; otherwise checks that they are up to date.

mod cards;
mod families;
mod shards;
mod sweep;

use serde_json::Value;
use std::fs;
use std::path::Path;
use tilework::program::Translation;

fn rows(path: &Path) -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

/// Three digits and a unit.
fn time(seconds: f64) -> String {
    let (value, unit) = if seconds < 1e-3 { (seconds * 1e6, "us") } else { (seconds * 1e3, "ms") };
    format!("{value:.*} {unit}", if value < 10.0 { 2 } else { usize::from(value < 100.0) })
}

/// GFLOP/s where arithmetic bounds the op, GB/s elsewhere.
fn rate(row: &Value) -> String {
    let (gflops, gbps) = (number(row, "gflops"), number(row, "gbps"));
    match text(row, "op").starts_with("gemm") || gflops > 10.0 * gbps {
        true if gflops < 9999.5 => format!("{gflops:.0} GFLOP/s"),
        true => format!("{:.1} TFLOP/s", gflops / 1e3),
        false => format!("{gbps:.0} GB/s"),
    }
}

/// Whether kernels of CUDA were measured: what they and those of WGSL do stands in lines of its own.
fn by_cuda(row: &Value) -> bool {
    text(row, "backend").starts_with("cuda")
}

/// What a case is without its size; products and convolutions stay apart, whose sizes are not more of the same.
fn kind(row: &Value) -> ([String; 3], bool) {
    let sized = ["gemm", "conv"].iter().any(|op| text(row, "op").starts_with(op));
    let size = text(row, "size").replace(|c: char| !sized && c.is_ascii_digit(), "");
    ([text(row, "op").to_owned(), text(row, "dtype").to_owned(), size], by_cuda(row))
}

/// The fastest variant of each case that has a peer; of several sizes the last, which is the largest.
fn best() -> Vec<Value> {
    let mut best: Vec<Value> = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The matrix of drivers and the cards of `tour` have tables of their own.
    files.retain(|path| path.is_file() && !path.ends_with("matrix.json"));
    files.sort();
    let files = files.iter().map(|path| rows(path));
    // Matrices that a cache holds are multiplied faster than the peer's host asks for it: that compares hosts.
    // And tiles that were tried, with numbers behind the variant's name, are not what a user gets.
    let tried =
        |r: &Value| text(r, "variant").split(' ').skip(1).any(|form| form.contains(|c: char| c.is_ascii_digit()));
    let compared = |r: &Value| r["peer_seconds"].is_number() && !text(r, "size").ends_with(", resident") && !tried(r);
    for row in files.flatten().filter(compared) {
        let same =
            |b: &&mut Value| ["op", "dtype", "size"].iter().all(|k| b[k] == row[k]) && by_cuda(b) == by_cuda(&row);
        match best.iter_mut().find(same) {
            Some(b) if number(&row, "seconds") < number(b, "seconds") => *b = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    let last = |i: &usize| !best[i + 1..].iter().any(|other| kind(other) == kind(&best[*i]));
    let kept: Vec<_> = (0..best.len()).filter(last).collect();
    kept.into_iter().map(|i| best[i].clone()).collect()
}

/// A row for each of the fastest variants, beside its peer.
fn peers(best: &[Value]) -> String {
    let mut table =
        "| op | type | size | variant | tilework | rate | peer | its time | its time / ours |\n|---|---|---:|---|---:|---:|---|---:|---:|\n"
            .to_owned();
    for row in best {
        let [op, dtype, size, variant, peer] = ["op", "dtype", "size", "variant", "peer"].map(|k| text(row, k));
        let world = if by_cuda(row) { "CUDA: " } else { "" };
        let (ours, its) = (number(row, "seconds"), number(row, "peer_seconds"));
        table += &format!(
            "| {op} | {dtype} | {size} | {world}{variant} | {} | {} | {peer} | {} | {:.2} |\n",
            time(ours),
            rate(row),
            time(its),
            its / ours
        );
    }
    table
}

/// Every op and solver, with the types that it takes.
fn ops() -> String {
    let mut table = "| op | what it computes | types | shapes of outputs |\n|---|---|---|---|\n".to_owned();
    // Brackets would be links of the documentation.
    let plain = |text: &str| text.replace('|', "\\|").replace('[', "\\[").replace(']', "\\]");
    for op in tilework::operations() {
        let types: Vec<_> = op.types.iter().map(|t| t.name()).collect();
        let outputs: Vec<_> = op.outputs.iter().map(|(name, shape)| format!("{name} {shape}")).collect();
        let (about, outputs) = (plain(op.about), plain(&outputs.join(", ")));
        table += &format!("| `{}` | {about} | {} | {outputs} |\n", op.name, types.join(", "));
    }
    table
}

/// The variants that are not translated for every compiler, and why.
fn translations() -> String {
    let ops = tilework::operations();
    let variants = ops.flat_map(|op| (op.variants)().iter().map(move |v| (op, v)));
    let mut table = "| variant | translated for | why not for others |\n|---|---|---|\n".to_owned();
    for (op, v) in variants.filter(|(_, v)| v.translations != Translation::ALL) {
        assert!(v.requires.cooperative, "{} {}: no reason is known to leave out a compiler", op.name, v.name);
        let targets: Vec<_> = v.translations.iter().map(|t| format!("{t:?}")).collect();
        table += &format!(
            "| {} `{}` | {} | naga writes cooperative matrices for SPIR-V only, and Tint does not know them |\n",
            op.name,
            v.name,
            targets.join(", ")
        );
    }
    table
}

/// The limits that the catalogue knows: which ops take which types.
fn types() -> String {
    let all: Vec<_> = tilework::operations().filter(|op| !op.types.is_empty()).collect();
    let with = |name: &str| all.iter().filter(|op| op.types.iter().any(|t| t.name() == name)).count();
    let ([f32, f16, words, bytes], ops) = (["f32", "f16", "u32", "u8"].map(with), all.len());
    format!(
        "- Of {ops} ops, {f32} take f32, {f16} f16, {words} 32-bit integers, and {bytes} bytes: \
         [the list](src/guides/ops.md).\n"
    )
}

/// `text` with each table between its marks.
fn filled(file: &str, mut text: String, tables: &[(&str, String)]) -> String {
    for (mark, table) in tables {
        let open = format!("<!-- {mark} -->\n");
        let begin = text.find(&open).unwrap_or_else(|| panic!("{file} has no {open}")) + open.len();
        let end = begin + text[begin..].find("<!-- end -->").unwrap();
        text.replace_range(begin..end, table);
    }
    text
}

#[test]
fn tables_match_measurements_and_variants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let best = best();
    let families = families::grouped(&best);
    let written = [
        (
            "README.md",
            vec![
                ("families", families::table(&families)),
                ("sweep", sweep::summary()),
                ("shards", shards::table(Some("nccl"))),
                ("types", types()),
            ],
        ),
        (
            "benches/RESULTS.md",
            vec![
                ("peers", peers(&best)),
                ("sweep", sweep::table()),
                ("cards", cards::table()),
                ("shards", shards::table(None)),
                ("matrix", crate::matrix::table()),
                ("translations", translations()),
            ],
        ),
        ("src/guides/ops.md", vec![("ops", ops())]),
    ];
    let mut files: Vec<_> = written.iter().map(|(file, tables)| (*file, filled(file, read(file), tables))).collect();
    files.push(("benches/results.svg", families::chart(&families)));
    files.push(("benches/shards.svg", shards::chart()));
    for (file, text) in files {
        if std::env::var_os("UPDATE_README").is_some() {
            fs::write(root.join(file), text).unwrap();
        } else {
            assert!(text == read(file), "{file} differs; run this test with UPDATE_README=1");
        }
    }
}
