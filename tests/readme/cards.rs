//! What `tour` measured on the cards that somebody has run it on: a file each in `benches/results/tour`.

use super::{number, rate, rows, text, time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Rows of each file, by name of the file.
fn cards() -> Vec<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/tour");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| rows(file)).collect()
}

/// A column for each card and a row for each op and type: rate, time, and how much of the card's ceiling that is.
pub(super) fn table() -> String {
    let cards = cards();
    let key = |row: &Value| (text(row, "op").to_owned(), text(row, "dtype").to_owned());
    let mut seen = BTreeSet::new();
    let cases: Vec<_> = cards.iter().flatten().map(key).filter(|case| seen.insert(case.clone())).collect();
    let (mut head, mut rule, mut notes) = ("| op | type |".to_owned(), "|---|---|".to_owned(), String::new());
    for card in &cards {
        let first = &card[0];
        head += &format!(" {} |", text(first, "adapter"));
        rule += "---:|";
        let failed = card.iter().filter(|row| row["passed"] != true).count();
        notes += &format!(
            "- {}: {}, {}, {}; {} of {} results are right\n",
            text(first, "adapter"),
            text(first, "backend"),
            text(first, "driver"),
            text(first, "date"),
            card.len() - failed,
            card.len()
        );
    }
    let mut table = format!("{head}\n{rule}\n");
    for case in cases {
        table += &format!("| {} | {} |", case.0, case.1);
        for card in &cards {
            let cell = card.iter().find(|row| key(row) == case).map_or("-".to_owned(), |row| {
                if row["passed"] != true {
                    return "failed".to_owned();
                }
                format!("{}, {}, {:.0} %", rate(row), time(number(row, "seconds")), number(row, "percent"))
            });
            table += &format!(" {cell} |");
        }
        table += "\n";
    }
    format!("{table}\n{notes}")
}
