//! Checks and times every op on every adapter of this machine, on real bytes.
//!
//! ```sh
//! cargo run --release --example tour
//! cargo run --release --example tour -- photo.raw --adapter nvidia --json rows.json
//! ```
//!
//! Without files it works on its own sources. `cases.rs` lists the rows. Exit code 1 if a result is wrong or an op
//! fails, 2 for bad arguments or files, 3 without an adapter.

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod material;
mod results;
mod table;

use cases::cases;
use common::{Args, Failure, exit_code, say};
use indicatif::{ProgressBar, ProgressStyle};
use material::{Material, Source};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use tilework::gpu::AdapterFilter;
use tilework::io::check_outputs;
use tilework::{Gpu, GpuOptions};

const USAGE: &str = "\
usage: tour [FILE...] [--adapter SUBSTRING] [--small] [--json FILE] [--markdown] [--variants]

  FILE...              work on the bytes of these files instead of the program's own sources
  --adapter SUBSTRING  only adapters of this backend, or with this in their name or driver
  --small              give cards no more data than software adapters
  --json FILE          also write the rows to a file
  --markdown           print the tables as Markdown
  --variants           run every variant of each op, not only auto
";

const LEGEND: &str = "\
time: the median; ceiling: percent of this adapter's maximum rate of copies or multiply-adds;
error: the largest difference from the CPU reference, relative to results above 1
";

struct Options {
    files: Vec<PathBuf>,
    adapter: String,
    json: Option<PathBuf>,
    markdown: bool,
    small: bool,
    variants: bool,
}

fn main() -> ExitCode {
    common::main("tour", std::io::stdout().lock(), |args, out, err| {
        let result = parse(args, out).and_then(|options| options.map_or(Ok(0), |o| tour(&o, out)));
        exit_code("tour", result.map_err(Failure::from), err)
    })
}

/// Returns the options, or `None` after `--help`.
fn parse(parser: lexopt::Parser, out: &mut dyn Write) -> Result<Option<Options>, Box<dyn Error>> {
    use lexopt::prelude::*;
    let mut options = Options {
        files: Vec::new(),
        adapter: String::new(),
        json: None,
        markdown: false,
        small: false,
        variants: false,
    };
    let mut parser = Args::new(parser, &[]);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("adapter") => options.adapter = parser.value()?.string()?,
            Long("json") => options.json = Some(parser.value()?.into()),
            Long("small") => options.small = true,
            Long("markdown") => options.markdown = true,
            Long("variants") => options.variants = true,
            Short('h') | Long("help") => {
                say(out, USAGE)?;
                return Ok(None);
            }
            Value(file) => options.files.push(file.into()),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn tour(options: &Options, out: &mut dyn Write) -> Result<u8, Box<dyn Error>> {
    let source = Source::read(&options.files)?;
    check_outputs(&options.json)?;
    let found = Gpu::adapters();
    if found.is_empty() {
        // The error says what is missing, and what to do.
        Gpu::new()?;
    }
    let filter = AdapterFilter::Name(options.adapter.clone());
    let adapters: Vec<_> = found.iter().enumerate().filter(|(i, p)| filter.fits(*i, p)).collect();
    if adapters.is_empty() {
        let names: Vec<_> = found.iter().map(|p| format!("{} ({})", p.name, p.driver)).collect();
        let there = names.join(", ");
        return Err(format!("--adapter {}: no adapter fits; there are: {there}", options.adapter).into());
    }
    let version = env!("CARGO_PKG_VERSION");
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default();
    say(out, &format!("tilework {version}, {date}, on {}, as u8 and as f32 in [-1, 1]\n", source.describe()))?;
    say(out, LEGEND)?;

    let cases = cases(options.variants);
    // Hidden if standard error is no terminal.
    let bar = ProgressBar::new((adapters.len() * cases.len()) as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut print = |text: String| bar.suspend(|| say(out, &text));
    let (mut rows, mut unopened, mut failed) = (Vec::new(), 0, 0);
    for (index, profile) in adapters {
        bar.set_message(format!("{}: measuring its ceilings", profile.name));
        let filter = AdapterFilter::Index(index);
        let gpu = match pollster::block_on(Gpu::request(GpuOptions { adapter: filter, ..Default::default() })) {
            Ok(gpu) => gpu,
            Err(e) => {
                print(format!("\n{}, {}\nFAILED to open: {e}\n", profile.name, profile.backend))?;
                bar.inc(cases.len() as u64);
                unopened += 1;
                continue;
            }
        };
        let material = Material::new(&source, gpu.profile(), options.small);
        print(table::heading(&gpu, &material, options.markdown))?;
        for case in &cases {
            bar.set_message(format!("{}: {} {}", profile.name, case.op.name, case.dtype));
            if let Some(missing) = case.missing(&gpu) {
                print(table::remark(case, &format!("not here: {missing}"), options.markdown))?;
            } else {
                let outcome = case.run(&gpu, &material).transpose();
                let Some(outcome) = outcome else {
                    bar.inc(1);
                    continue;
                };
                failed += usize::from(!matches!(&outcome, Ok(o) if o.check.passed));
                print(match &outcome {
                    Ok(o) => table::row(case, o, options.markdown),
                    Err(e) => table::remark(case, &format!("FAILED: {e}"), options.markdown),
                })?;
                rows.push(results::row(case, outcome.as_ref().ok(), profile, date, version));
            }
            bar.inc(1);
        }
        let cache = gpu.cache();
        print(format!(
            "kernels made ready in {:.1} s: {} compiled, {} found on disk\n",
            cache.seconds, cache.compiled, cache.found
        ))?;
        gpu.trim();
    }
    bar.finish_and_clear();
    if let Some(path) = &options.json {
        results::write(path, &rows)?;
    }
    let of = rows.len();
    let verdict = match (failed, unopened) {
        (0, 0) => format!("\nall {of} passed\n"),
        (_, 0) => format!("\n{failed} of {of} FAILED\n"),
        _ => format!("\n{failed} of {of} FAILED; {unopened} adapters could not be opened\n"),
    };
    say(out, &verdict)?;
    Ok(u8::from(failed + unopened > 0))
}
