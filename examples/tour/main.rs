//! Every op on every adapter of this machine, on real bytes, checked against the reference and timed.
//!
//! ```sh
//! cargo run --release --example tour
//! cargo run --release --example tour -- photo.raw --adapter nvidia --json rows.json
//! ```
//!
//! Without files it works on its own sources. What runs is listed in `cases.rs`. Exit code 1 if a result is wrong
//! or an op fails, 2 for bad arguments or files, 3 if this machine has no adapter.

mod cases;
mod material;

use cases::{CASES, Case, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use material::{Material, Source};
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use tilework::gpu::AdapterFilter;
use tilework::program::DeviceProfile;
use tilework::{Gpu, GpuOptions};

const USAGE: &str = "\
usage: tour [FILE...] [--adapter SUBSTRING] [--json FILE] [--markdown]

  FILE...              work on the bytes of these files instead of the program's own sources
  --adapter SUBSTRING  only adapters with this in their name or driver
  --json FILE          write the rows there as well
  --markdown           print the tables as Markdown
";

struct Options {
    files: Vec<PathBuf>,
    adapter: String,
    json: Option<PathBuf>,
    markdown: bool,
}

fn main() -> ExitCode {
    match parse().and_then(|options| options.map_or(Ok(ExitCode::SUCCESS), |o| tour(&o))) {
        Ok(code) => code,
        Err(e) => {
            tell(&format!("tour: {e}\n"));
            ExitCode::from(2)
        }
    }
}

/// The options, or nothing if `--help` has been answered.
fn parse() -> Result<Option<Options>, Box<dyn Error>> {
    use lexopt::prelude::*;
    let mut options = Options { files: Vec::new(), adapter: String::new(), json: None, markdown: false };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("adapter") => options.adapter = parser.value()?.string()?.to_lowercase(),
            Long("json") => options.json = Some(parser.value()?.into()),
            Long("markdown") => options.markdown = true,
            Short('h') | Long("help") => {
                say(USAGE);
                return Ok(None);
            }
            Value(file) => options.files.push(file.into()),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(options))
}

/// Prints to standard output; a reader that has gone away is no failure.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints to standard error.
fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn open(adapter: AdapterFilter) -> tilework::Result<Gpu> {
    pollster::block_on(Gpu::request(GpuOptions { adapter, ..Default::default() }))
}

fn tour(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let source = Source::read(&options.files)?;
    let date = iso_8601(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
    let fits =
        |p: &DeviceProfile| format!("{} {}", p.name, p.driver).to_lowercase().contains(&options.adapter);
    let adapters: Vec<_> = Gpu::adapters().into_iter().enumerate().filter(|(_, p)| fits(p)).collect();
    if adapters.is_empty() {
        // Opening what is not there says what is missing, and what to do.
        let named = AdapterFilter::Name(options.adapter.clone());
        if let Err(e) = open(if options.adapter.is_empty() { AdapterFilter::Best } else { named }) {
            tell(&format!("tour: {e}\n"));
        }
        return Ok(ExitCode::from(if Gpu::adapters().is_empty() { 3 } else { 2 }));
    }
    let version = env!("CARGO_PKG_VERSION");
    say(&format!("tilework {version}, {date}; input: {}\n", source.describe()));

    // Hidden where standard error is not a terminal.
    let bar = ProgressBar::new((adapters.len() * CASES.len()) as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let mut rows = Vec::new();
    let mut failed = 0;
    for (index, profile) in &adapters {
        let gpu = match open(AdapterFilter::Index(*index)) {
            Ok(gpu) => gpu,
            Err(e) => {
                bar.suspend(|| say(&format!("\n{}: FAILED to open: {e}\n", profile.name)));
                bar.inc(CASES.len() as u64);
                failed += 1;
                continue;
            }
        };
        bar.set_message(format!("{}: measuring ceilings", profile.name));
        let material = Material::new(&source, profile);
        bar.suspend(|| say(&heading(&gpu, &material, options.markdown)));
        for case in CASES {
            bar.set_message(format!("{}: {} {}", profile.name, case.op, case.form));
            let outcome = (case.run)(&gpu, &material);
            failed += usize::from(!matches!(&outcome, Ok(o) if o.passed));
            bar.suspend(|| say(&line(&cells(case, &outcome), options.markdown)));
            rows.push(row(case, &outcome, profile, &date, version));
            bar.inc(1);
        }
        gpu.trim();
    }
    bar.finish_and_clear();
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let of = rows.len();
    say(&match failed {
        0 => format!("\nall {of} passed\n"),
        _ => format!("\n{failed} of {of} FAILED\n"),
    });
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Titles and widths of the columns; numbers stand to the right.
const COLUMNS: [(&str, usize, bool); 9] = [
    ("op", 16, false),
    ("type", 4, false),
    ("size", 14, true),
    ("variant", 12, false),
    ("time", 11, true),
    ("rate", 15, true),
    ("of ceiling", 10, true),
    ("largest error", 13, true),
    ("result", 6, false),
];

fn heading(gpu: &Gpu, material: &Material, markdown: bool) -> String {
    let p = gpu.profile();
    let ceilings = gpu.ceilings().map_or_else(
        |e| format!("not measured: {e}"),
        |c| {
            let (copy, fma) = (c.copy_bytes_per_second * 1e-9, c.fma_flop_per_second * 1e-9);
            format!("copy {copy:.1} GB/s, multiply-add {fma:.1} GFLOP/s")
        },
    );
    let clock = if p.features.timestamps { "device" } else { "wall clock" };
    let (name, driver, backend) = (&p.name, &p.driver, &p.backend);
    let facts = format!(
        "ceilings: {ceilings}; time: {clock}, median; errors: relative above 1; {}",
        material.describe()
    );
    let titles = line(&COLUMNS.map(|(title, ..)| title.to_owned()), markdown);
    if markdown {
        let rule: String = COLUMNS
            .iter()
            .map(|(_, _, right)| if *right { "|---:" } else { "|---" })
            .chain(["|\n"])
            .collect();
        format!("\n**{name}** ({driver}, {backend}); {facts}\n\n{titles}{rule}")
    } else {
        format!("\n{name} ({driver}, {backend})\n{facts}\n{titles}")
    }
}

fn line(cells: &[String; COLUMNS.len()], markdown: bool) -> String {
    if markdown {
        return format!("| {} |\n", cells.join(" | "));
    }
    let aligned = cells.iter().zip(COLUMNS).map(|(cell, (_, width, right))| {
        if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

fn cells(case: &Case, outcome: &tilework::Result<Outcome>) -> [String; COLUMNS.len()] {
    let name = format!("{} {}", case.op, case.form).trim_end().to_owned();
    let o = match outcome {
        Ok(o) => o,
        Err(e) => {
            let mut cells = [const { String::new() }; COLUMNS.len()];
            cells[0] = name;
            cells[1] = case.dtype.to_string();
            cells[COLUMNS.len() - 1] = format!("FAILED: {e}");
            return cells;
        }
    };
    let rate = match o.report.bound() {
        Some("arithmetic") => format!("{:.1} GFLOP/s", o.gflops()),
        _ => format!("{:.1} GB/s", o.gbps()),
    };
    [
        name,
        case.dtype.to_string(),
        o.size.clone(),
        o.report.variant.to_owned(),
        format!("{:.1} us", o.seconds * 1e6),
        rate,
        o.percent().map_or_else(|| "-".to_owned(), |p| format!("{p:.0} %")),
        if o.error == 0.0 { "0".to_owned() } else { format!("{:.1e}", o.error) },
        if o.passed { "pass" } else { "FAILED" }.to_owned(),
    ]
}

fn row(
    case: &Case,
    outcome: &tilework::Result<Outcome>,
    profile: &DeviceProfile,
    date: &str,
    version: &str,
) -> Value {
    let mut row = json!({
        "adapter": profile.name,
        "driver": profile.driver,
        "backend": profile.backend,
        "date": date,
        "version": version,
        "op": case.op,
        "form": case.form,
        "dtype": case.dtype.to_string(),
        "passed": matches!(outcome, Ok(o) if o.passed),
    });
    let more = match outcome {
        Ok(o) => json!({
            "variant": o.report.variant,
            "size": o.size,
            "seconds": o.seconds,
            "gbps": o.gbps(),
            "gflops": o.gflops(),
            "percent": o.percent(),
            "error": o.error,
        }),
        Err(e) => json!({ "failure": e.to_string() }),
    };
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    row
}

/// `2025-03-01T12:34:56Z` of seconds since 1970: the days counted in years that begin in March, after
/// H. Hinnant, "chrono-compatible low-level date algorithms".
fn iso_8601(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}
