//! What `benches/sweep.rs` measured: shapes that nobody chose, a file for each card in `benches/results/sweep`.

use super::{number, rows, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Rows of each file.
fn cards() -> Vec<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/sweep");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| rows(file)).filter(|rows| !rows.is_empty()).collect()
}

/// The geometric mean, and the worst: the largest of `regret`, the smallest of `ratio`.
fn mean_and_worst(rows: &[&Value], key: &str) -> Option<[f64; 2]> {
    let known: Vec<_> = rows.iter().map(|row| number(row, key)).filter(|x| x.is_finite()).collect();
    let mean = (known.iter().map(|x| x.ln()).sum::<f64>() / known.len() as f64).exp();
    let worst = known.iter().copied().reduce(if key == "regret" { f64::max } else { f64::min })?;
    Some([mean, worst])
}

/// The day of the rows, or the first and the last.
fn span_of_dates(rows: &[Value]) -> String {
    let dates: BTreeSet<_> = rows.iter().map(|row| text(row, "date")).collect();
    let ends: Vec<_> = dates.first().into_iter().chain(dates.last().filter(|_| dates.len() > 1)).copied().collect();
    ends.join(" to ")
}

/// A row for each card.
pub(super) fn summary() -> String {
    let mut table = "| device | drawn | shapes | regret: mean | worst | peers' time / ours: mean | worst |\n\
                     |---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for card in cards() {
        let all: Vec<_> = card.iter().collect();
        let (name, shapes, drawn) = (text(&card[0], "adapter"), card.len(), span_of_dates(&card));
        let [regret, ratio] = ["regret", "ratio"].map(|key| shown(&all, key));
        table += &format!("| {name} | {drawn} | {shapes} | {regret} | {ratio} |\n");
    }
    table
}

/// The cells of the mean and the worst.
fn shown(rows: &[&Value], key: &str) -> String {
    mean_and_worst(rows, key).map_or("- | -".to_owned(), |[mean, worst]| format!("{mean:.2} | {worst:.2}"))
}

/// Regret and ratio of each op and type on each card.
pub(super) fn table() -> String {
    let mut table = "| card | op | type | shapes | regret | worst | peer's time / ours | worst | where |\n\
                     |---|---|---|---:|---:|---:|---:|---:|---|\n"
        .to_owned();
    for card in cards() {
        let mut kinds: Vec<[&str; 2]> = Vec::new();
        for row in &card {
            let kind = ["op", "dtype"].map(|key| text(row, key));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for [op, dtype] in kinds {
            let of: Vec<_> = card.iter().filter(|row| text(row, "op") == op && text(row, "dtype") == dtype).collect();
            let ratio = |row: &&&Value| number(row, "ratio");
            let worst = of.iter().filter(|row| ratio(row).is_finite()).min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
            table += &format!(
                "| {} | {op} | {dtype} | {} | {} | {} | {} |\n",
                text(&card[0], "adapter"),
                of.len(),
                shown(&of, "regret"),
                shown(&of, "ratio"),
                worst.map_or("-", |row| text(row, "size"))
            );
        }
    }
    table
}
