//! The README's tables are those that the committed measurements give. `UPDATE_README=1` writes them.

use serde_json::Value;
use std::fs;
use std::path::Path;

fn rows(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results").join(file);
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
    match text(row, "op").starts_with("gemm") {
        true => format!("{:.0} GFLOP/s", number(row, "gflops")),
        false => format!("{:.0} GB/s", number(row, "gbps")),
    }
}

fn tour() -> String {
    let mut table =
        "| op | type | size | variant | time | rate | ceiling | error |\n|---|---|---:|---|---:|---:|---:|---:|\n"
            .to_owned();
    for row in rows("tour-h100-vulkan.json") {
        assert_eq!(row["passed"], true, "{row}");
        let [op, dtype, size, variant] = ["op", "dtype", "size", "variant"].map(|k| text(&row, k));
        let (percent, error) = (number(&row, "percent"), number(&row, "error"));
        let error = if error == 0.0 { "0".to_owned() } else { format!("{error:.1e}") };
        let time = time(number(&row, "seconds"));
        table += &format!(
            "| {op} | {dtype} | {size} | {variant} | {time} | {} | {percent:.0} % | {error} |\n",
            rate(&row)
        );
    }
    table
}

/// The fastest variant of each case that has a peer.
fn peers() -> String {
    let mut best: Vec<Value> = Vec::new();
    let files = ["h100-vulkan.json", "h100-vulkan-primitives.json"].map(rows);
    for row in files.into_iter().flatten().filter(|r| r["peer_seconds"].is_number()) {
        match best.iter_mut().find(|b| ["op", "dtype", "size"].iter().all(|k| b[k] == row[k])) {
            Some(b) if number(&row, "seconds") < number(b, "seconds") => *b = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    let mut table =
        "| op | type | size | variant | tilework | rate | peer | its time | its time / ours |\n|---|---|---:|---|---:|---:|---|---:|---:|\n"
            .to_owned();
    for row in best {
        let [op, dtype, size, variant, peer] =
            ["op", "dtype", "size", "variant", "peer"].map(|k| text(&row, k));
        let (ours, its) = (number(&row, "seconds"), number(&row, "peer_seconds"));
        table += &format!(
            "| {op} | {dtype} | {size} | {variant} | {} | {} | {peer} | {} | {:.2} |\n",
            time(ours),
            rate(&row),
            time(its),
            its / ours
        );
    }
    table
}

#[test]
fn tables_are_those_of_the_measurements() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let mut readme = fs::read_to_string(&path).unwrap();
    let written = readme.clone();
    for (name, table) in [("tour", tour()), ("peers", peers())] {
        let begin = readme.find(&format!("<!-- {name} -->\n")).unwrap() + name.len() + 10;
        let end = begin + readme[begin..].find("<!-- end -->").unwrap();
        readme.replace_range(begin..end, &table);
    }
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(&path, &readme).unwrap();
    } else {
        assert!(readme == written, "README.md differs; run this test with UPDATE_README=1");
    }
}
