//! The command line of `tune`.

use super::cases::{Case, cases};
use super::common::{Args, Failure, bar, exit_code, open_gpu, say};
use std::io::Write;
use std::time::Duration;
use tilework::ErrorKind;
use tilework::io::shown;
use tilework::tune::{Outcome, Stopped, TuningOptions, TuningReport};

const USAGE: &str = "\
usage: tune [--ops OP,OP...] [--sizes small|large] [--budget SECONDS] [--save]

  --ops OP,OP...       tune only these ops (all)
  --sizes small|large  shapes for processors or for cards (by the adapter)
  --budget SECONDS     time for the candidates of each shape (3)
  --save               keep the winners in the cache directory, where planning finds them
  --verbose            print every candidate of every shape
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

Prints, for each op and shape, the choice of the op's policy and the fastest correct variant. A row after a variant's
name is from its table of tiles.
";

struct Options {
    ops: Vec<String>,
    large: Option<bool>,
    budget: Duration,
    save: bool,
    verbose: bool,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => tune(&options, out, err),
        None => say(out, USAGE).map(|()| 0),
    });
    exit_code("tune", result, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let mut options = Options {
        ops: Vec::new(),
        large: None,
        budget: Duration::from_secs(3),
        save: false,
        verbose: false,
        adapter: None,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("ops") => {
                options.ops.extend(args.value()?.string()?.split(',').map(|op| op.trim().to_owned()));
            }
            Long("sizes") => {
                options.large = Some(match args.value()?.string()?.as_str() {
                    "small" => false,
                    "large" => true,
                    other => {
                        return Err(Failure::bad_input(format!("--sizes {other}: must be small or large")));
                    }
                });
            }
            Long("budget") => {
                let text = args.value()?.string()?;
                let seconds = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                options.budget = seconds.ok_or_else(|| {
                    Failure::bad_input(format!("--budget {text}: must be a number of seconds, 0 or more"))
                })?;
            }
            Long("save") => options.save = true,
            Long("verbose") => options.verbose = true,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn tune(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Failure> {
    let known = cases(false);
    if let Some(op) = options.ops.iter().find(|op| !known.iter().any(|case| case.op == **op)) {
        let mut names: Vec<_> = known.iter().map(|case| case.op).collect();
        names.dedup();
        return Err(Failure::bad_input(format!("--ops {op}: cannot be tuned; there are {}", names.join(", "))));
    }
    let mut gpu = open_gpu(options.adapter.clone())?;
    let large = options.large.unwrap_or(!gpu.profile().is_cpu());
    let wanted = |case: &Case| options.ops.is_empty() || options.ops.iter().any(|op| op == case.op);
    let cases: Vec<_> = cases(large).into_iter().filter(wanted).collect();
    let how = TuningOptions { budget: options.budget, save: options.save, ..TuningOptions::default() };

    let bar = bar(cases.len() as u64, "{bar:30} {pos} of {len} {msg}, {elapsed}", 100);
    let mut reports = Vec::new();
    let mut misses = Vec::new();
    for case in &cases {
        bar.set_message(format!("{} {}", case.op, case.shape));
        match case.tune(&gpu, &how) {
            Ok(report) => reports.push((case, report)),
            // A shape may exceed the device, and a variant its driver.
            Err(e) => {
                if e.kind() == ErrorKind::DeviceLost {
                    gpu = open_gpu(options.adapter.clone())?;
                }
                misses.push((case, e));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();

    let mut text = format!("{} ({})\n\n", gpu.profile().name, gpu.profile().driver);
    text += &table(&reports);
    for (case, e) in &misses {
        text += &format!("{} {}: {e}\n", case.op, case.shape);
    }
    if options.verbose {
        for (case, report) in &reports {
            text += &format!("\n{}, {}\n", case.shape, report);
        }
    }
    let denied: Vec<_> = reports.iter().flat_map(|(_, report)| &report.denied).collect();
    let lost = misses.iter().any(|(_, e)| e.kind() == ErrorKind::DeviceLost);
    // A search that ran out of time may have missed the winner.
    let known = |r: &TuningReport| r.stopped != Stopped::Budget || r.best != r.default;
    let found = lost || !denied.is_empty() || reports.iter().any(|(_, report)| known(report));
    let cache = gpu.cache();
    let kept = match (&cache.trouble, options.save, &cache.directory) {
        (_, false, _) => Ok("Nothing is kept; --save keeps it.".into()),
        (Some(trouble), ..) => Err(format!("NOT kept: {trouble}")),
        (None, true, None) => Err("NOT kept: there is no cache directory.".into()),
        (None, true, Some(_)) if !found => Ok("Nothing to keep: the time was up before a winner was found.".into()),
        (None, true, Some(directory)) => Ok(format!("Kept in {}.", shown(directory))),
    };
    let (Ok(line) | Err(line)) = &kept;
    text += &format!("\n{line}\n");
    say(out, &text)?;
    for variant in &denied {
        // Reported once: from now on it is denied here.
        let _ = writeln!(err, "tune: wrong on this driver, and denied: {variant}");
    }
    Ok(if denied.is_empty() && !lost && kept.is_ok() { 0 } else { 1 })
}

/// Formats a line per shape.
fn table(reports: &[(&Case, TuningReport)]) -> String {
    let head = ["op", "shape", "default", "us", "best", "us", "gain", "roofline", "tried", "left out", "wrong", "end"];
    let mut rows = vec![head.map(str::to_owned)];
    for (case, report) in reports {
        let count =
            |which: fn(&Outcome) -> bool| report.tried.iter().filter(|(_, outcome)| which(outcome)).count().to_string();
        let best = report.best != report.default;
        rows.push([
            case.op.to_owned(),
            case.shape.clone(),
            report.default.to_string(),
            micros(report.default_seconds),
            if best { report.best.to_string() } else { "the same".to_owned() },
            if best { micros(report.best_seconds) } else { String::new() },
            if best { format!("{:.2}", report.gain()) } else { String::new() },
            report.percent_of_roofline().map_or_else(|| "?".to_owned(), |p| format!("{p:.0} %")),
            count(|o| matches!(o, Outcome::Measured(_))),
            count(|o| matches!(o, Outcome::Skipped(_))),
            count(|o| matches!(o, Outcome::Wrong(_))),
            match report.stopped {
                Stopped::Done => "all tried",
                Stopped::NearRoofline => "roofline",
                Stopped::Budget => "time",
            }
            .to_owned(),
        ]);
    }
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    // Numbers are right-aligned.
    let right = [3, 5, 6, 7, 8, 9, 10];
    let cell = |(i, text): (usize, &String)| {
        let width = widths[i];
        if right.contains(&i) { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    let line = |row: &[String; 12]| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

fn micros(seconds: f64) -> String {
    let us = seconds * 1e6;
    if us < 1000.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}
