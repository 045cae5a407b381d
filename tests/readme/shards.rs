//! What two devices gain over one, as the example `shard` measured it.

use super::{number, rows, text, time};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A row for each job and link: the time on one device, on two, and the speed-up.
pub(super) fn table() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with("-shard.json"));
    files.sort();
    let all: Vec<Value> = files.iter().flat_map(|file| rows(file)).collect();
    let mut table =
        "| work | link | one device | two | speed-up | devices |\n|---|---|---:|---:|---:|---|\n".to_owned();
    for row in all.iter().filter(|row| row["devices"] == 2) {
        let same = |other: &&Value| {
            other["devices"] == 1
                && ["size", "variant", "adapter", "date"].iter().all(|key| other[*key] == row[*key])
        };
        let (one, seconds) = (all.iter().find(same), number(row, "seconds"));
        let alone = one.map_or("-".to_owned(), |one| time(number(one, "seconds")));
        let gain = one.map_or("-".to_owned(), |one| format!("**{:.2}**", number(one, "seconds") / seconds));
        table += &format!(
            "| {} | {} | {alone} | {} | {gain} | {}, {} |\n",
            text(row, "size"),
            text(row, "variant"),
            time(seconds),
            text(row, "adapter"),
            text(row, "date")
        );
    }
    table
}
