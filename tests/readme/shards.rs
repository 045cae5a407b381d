//! What several devices gain over one, as the example `shard` measured it.

use super::{number, rows, text, time};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// All rows.
fn measured() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with("-shard.json"));
    files.sort();
    files.iter().flat_map(|file| rows(file)).collect()
}

/// The row of the same job, machine and run on other devices.
fn on<'a>(all: &'a [Value], row: &Value, devices: u64) -> Option<&'a Value> {
    all.iter().find(|other| {
        other["devices"] == devices
            && ["size", "variant", "adapter", "date", "host"].iter().all(|key| other[*key] == row[*key])
    })
}

/// A row for each job, machine and link, or of one link: the time on one device, two and four, and the speed-up of
/// each.
pub(super) fn table(link: Option<&str>) -> String {
    let all = measured();
    let mut table =
        "| work | link | one device | two | four | speed-up | devices |\n|---|---|---:|---:|---:|---|---|\n".to_owned();
    let wanted = |row: &&Value| row["devices"] == 2 && link.is_none_or(|link| row["variant"] == link);
    for row in all.iter().filter(wanted) {
        let of = |devices| on(&all, row, devices).map(|row| number(row, "seconds"));
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

const WIDTH: f64 = 860.0;
/// Where speed-ups of 0 and 4 are, and the first row.
const AXIS: (f64, f64) = (370.0, 780.0);
const TOP: f64 = 84.0;
const ROW: f64 = 22.0;

fn place(gain: f64) -> f64 {
    AXIS.0 + (AXIS.1 - AXIS.0) * gain / 4.0
}

/// Draws a bar from 0 to the speed-up of each job on two and four devices, and a line where the model predicts it. Jobs
/// that the model predicts were measured on one device, two and four in one run.
pub(super) fn chart() -> String {
    let all = measured();
    let ones = all.iter().filter(|row| row["devices"] == 1 && row["predicted"].is_number());
    let jobs: Vec<&Value> = ones.filter(|row| on(&all, row, 4).is_some()).collect();
    let mut bars = Vec::new();
    for job in &jobs {
        for devices in [2u64, 4] {
            let Some(row) = on(&all, job, devices) else { continue };
            let gain = |key| number(job, key) / number(row, key);
            bars.push((text(job, "size"), devices, gain("seconds"), gain("predicted")));
        }
    }
    let bottom = TOP + ROW * bars.len() as f64;
    let height = bottom + 46.0;
    let card = jobs.first().map_or("", |job| text(job, "adapter"));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"#24292f\">\n\
         <title>Speed of two and four devices against one</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"bold\">Speed-up on two and four devices</text>\n\
         <text x=\"16\" y=\"46\" fill=\"#57606a\">Bar: measured. Line: predicted by the model. {card}, one host.</text>\n"
    );
    for gain in 0..=4 {
        let x = place(f64::from(gain));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#d8dee4\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#57606a\">{gain}</text>",
            TOP - 8.0,
            bottom + 18.0
        );
    }
    let mut last = "";
    for (i, (job, devices, gain, predicted)) in bars.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.5);
        let (color, end) = (if *devices == 2 { "#54aeff" } else { "#0969da" }, place(*gain));
        // A job is named once.
        let name = if *job == last { "" } else { short(job) };
        last = job;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#57606a\">{devices}</text>\n\
             <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" fill=\"{color}\"/>\n\
             <line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#24292f\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"bold\">{gain:.2}</text>",
            AXIS.0 - 32.0,
            y + 4.5,
            AXIS.0 - 12.0,
            y + 4.5,
            AXIS.0,
            y - 7.0,
            end - AXIS.0,
            place(*predicted),
            y - 9.0,
            place(*predicted),
            y + 9.0,
            AXIS.1 + 16.0,
            y + 4.5
        );
    }
    svg + "</svg>\n"
}

/// A job without what its times are of.
fn short(job: &str) -> &str {
    job.split_once(';').map_or(job, |(name, _)| name)
}
