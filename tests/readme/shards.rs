//! What two and four devices gain over one, as the example `shard` measured it.

use super::{number, rows, text, time};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A row for each job, machine and link, or of one link: the time on one device, two and four, and the speed-up of each.
pub(super) fn table(link: Option<&str>) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with("-shard.json"));
    files.sort();
    let all: Vec<Value> = files.iter().flat_map(|file| rows(file)).collect();
    let mut table =
        "| work | link | one device | two | four | speed-up | devices |\n|---|---|---:|---:|---:|---|---|\n"
            .to_owned();
    let wanted = |row: &&Value| row["devices"] == 2 && link.is_none_or(|link| row["variant"] == link);
    for row in all.iter().filter(wanted) {
        let of = |devices: u64| {
            let same = |other: &&Value| {
                other["devices"] == devices
                    && ["size", "variant", "adapter", "date", "host"]
                        .iter()
                        .all(|key| other[*key] == row[*key])
            };
            all.iter().find(same).map(|row| number(row, "seconds"))
        };
        let [one, two, four] = [1, 2, 4].map(of);
        let gains: Vec<_> = [two, four].into_iter().flatten().filter_map(|x| Some(one? / x)).collect();
        let gains: Vec<_> = gains.iter().map(|gain| format!("**{gain:.2}**")).collect();
        let [one, two, four] = [one, two, four].map(|x| x.map_or("-".to_owned(), time));
        table += &format!(
            "| {} | {} | {one} | {two} | {four} | {} | {}, {} |\n",
            text(row, "size"),
            text(row, "variant"),
            if gains.is_empty() { "-".to_owned() } else { gains.join(", ") },
            text(row, "adapter"),
            text(row, "date")
        );
    }
    table
}
