//! The command line of `compare`.

use super::backends::{Backend, Found, Outcome, find, share_roofs};
use super::cases::{CASES, Case};
use super::common::pictures::whole;
use super::common::{Args, Failure, bar, exit_code, say};
use super::draw;
use super::rows::{self, Row};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tilework::io::{check_outputs, shown};

const USAGE: &str = "\
usage: compare [--ops LIST] [--sizes LIST] [--backends LIST] [--out DIR]
       compare --list

  --ops LIST       ops separated by commas, as in --list: gemm is every gemm, gemm-f16 one of them
  --sizes LIST     sizes for all ops, such as 256,1024 or 64K,1M; --list explains them
  --backends LIST  backends by name, or by a part of it: vulkan, llvmpipe, cuda, cpu
  --out DIR        folder for rows.json and the pictures, as SVG and PNG (target/compare)
  --list           list all ops with their sizes, and the backends of this machine

Exit code 1 if a result is wrong, 2 for bad arguments.
";

struct Options {
    cases: Vec<&'static Case>,
    sizes: Option<Vec<usize>>,
    found: Vec<Found>,
    /// Whether a backend was named, so that it must not be missing.
    asked: bool,
    out: PathBuf,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args, out).and_then(|options| options.map_or(Ok(0), |o| compare(o, out)));
    exit_code("compare", result, err)
}

/// Returns the options, or `None` after `--list` or `--help`.
fn parse(args: lexopt::Parser, out: &mut dyn Write) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut ops, mut sizes, mut backends) = (None, None, None);
    let mut folder = PathBuf::from("target/compare");
    while let Some(arg) = args.next()? {
        match arg {
            Long("ops") => ops = Some(args.value()?.string()?),
            Long("sizes") => sizes = Some(args.value()?.string()?),
            Long("backends") => backends = Some(args.value()?.string()?),
            Long("out") => folder = args.value()?.into(),
            Long("list") => {
                say(out, &list())?;
                return Ok(None);
            }
            Short('h') | Long("help") => {
                say(out, USAGE)?;
                return Ok(None);
            }
            _ => return Err(arg.unexpected().into()),
        }
    }
    let cases = ops.map_or_else(|| Ok(CASES.iter().collect()), |ops| cases(&ops))?;
    let sizes = sizes.map(|text| text.split(',').map(size).collect::<Result<Vec<_>, _>>()).transpose()?;
    let asked = backends.is_some();
    let found = chosen(find(), backends.as_deref())?;
    Ok(Some(Options { cases, sizes, found, asked, out: folder }))
}

fn cases(list: &str) -> Result<Vec<&'static Case>, Failure> {
    let mut chosen: Vec<&'static Case> = Vec::new();
    for name in list.split(',').map(str::trim) {
        let before = chosen.len();
        chosen.extend(CASES.iter().filter(|case| case.op == name || case.id() == name));
        if chosen.len() == before {
            let names: Vec<_> = CASES.iter().map(Case::id).collect();
            return Err(Failure::bad_input(format!("--ops {name}: there are {}", names.join(", "))));
        }
    }
    // Each op once, in the order of the list.
    chosen = CASES.iter().filter(|case| chosen.iter().any(|c| c.id() == case.id())).collect();
    Ok(chosen)
}

/// Parses `256`, `64K` or `1M`.
fn size(text: &str) -> Result<usize, Failure> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        _ => (text, 0),
    };
    match digits.parse::<usize>() {
        // No device addresses more elements.
        Ok(n) if n > 0 && n <= (1 << 30) >> shift => Ok(n << shift),
        _ => Err(Failure::bad_input(format!("--sizes {text}: must be a whole number from 1 to 1024M"))),
    }
}

fn chosen(found: Vec<Found>, list: Option<&str>) -> Result<Vec<Found>, Failure> {
    let Some(list) = list else { return Ok(found) };
    let names: Vec<_> = list.split(',').map(|name| name.trim().to_lowercase()).collect();
    for name in &names {
        let mut fits = found.iter().filter(|f| !name.is_empty() && f.name.contains(name)).peekable();
        if fits.peek().is_none() {
            let there: Vec<_> = found.iter().map(|f| f.name.as_str()).collect();
            return Err(Failure::bad_input(format!("--backends {name}: there are {}", there.join(", "))));
        }
        // A missing backend is an error only if nothing else matches.
        let missing: Vec<_> = fits.map(Found::missing).collect();
        if let Some(why) = missing.iter().copied().collect::<Option<Vec<_>>>() {
            return Err(Failure::bad_input(format!("--backends {name}: not here: {}", why[0])));
        }
    }
    Ok(found.into_iter().filter(|f| names.iter().any(|name| f.name.contains(name))).collect())
}

/// Lists all ops with their sizes, and all backends.
fn list() -> String {
    let mut text = String::from("ops, with sizes for every backend, and more for cards\n");
    let words = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    for case in CASES {
        let (sizes, large) = (words(case.sizes), words(case.large));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<16} {}: {sizes}; {large}", case.id(), case.axis);
    }
    text += "\nbackends\n";
    for found in find() {
        let missing = if found.missing().is_some() { "not here: " } else { "" };
        let _ = writeln!(text, "  {:<24} {missing}{}", found.name, found.about);
    }
    text
}

/// Comparisons left out, grouped by reason.
#[derive(Default)]
struct LeftOut {
    reasons: Vec<(String, Vec<String>)>,
}

impl LeftOut {
    /// For several sizes the first reason stands for all.
    fn add(&mut self, what: String, why: &str) {
        if self.reasons.iter().any(|(_, list)| list.contains(&what)) {
            return;
        }
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        match self.reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, list)) => list.push(what),
            None => self.reasons.push((why, vec![what])),
        }
    }

    fn describe(&self) -> String {
        if self.reasons.is_empty() {
            return "nothing was left out\n".into();
        }
        let line = |(why, what): &(String, Vec<String>)| format!("  {}: {why}\n", what.join(", "));
        "left out\n".to_owned() + &self.reasons.iter().map(line).collect::<String>()
    }
}

/// Makes the folder and tests that it is writable, before any work.
fn prepare(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
    Ok(check_outputs([folder.join("rows.json")])?)
}

fn compare(options: Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let Options { cases, sizes, found, asked, out: folder } = options;
    prepare(&folder)?;
    let mut left_out = LeftOut::default();
    let mut backends: Vec<Backend> = Vec::new();
    for one in found {
        if asked && one.missing().is_some() {
            continue;
        }
        let name = one.name.clone();
        match one.open() {
            Ok(backend) => backends.push(backend),
            Err(why) => left_out.add(name, &why),
        }
    }
    share_roofs(&mut backends);
    let cards = backends.iter().any(|b| b.card);
    let sizes_of = |case: &Case| match &sizes {
        Some(sizes) => sizes.clone(),
        None if cards => [case.sizes, case.large].concat(),
        None => case.sizes.to_vec(),
    };
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default().to_owned();
    say(out, &introduction(&backends, &date))?;

    let total: usize = cases.iter().map(|case| sizes_of(case).len() * backends.len()).sum();
    let bar = bar(total as u64, "{bar:30} {pos}/{len} {msg}", 200);
    let mut all: Vec<Row> = Vec::new();
    for case in cases.iter().copied() {
        for extent in sizes_of(case) {
            if extent > case.most {
                left_out.add(format!("{} of {extent}", case.id()), &format!("sizes above {}", case.most));
                bar.inc(backends.len() as u64);
                continue;
            }
            let problem = match (case.problem)(extent) {
                Ok(problem) => problem,
                Err(e) => {
                    left_out.add(format!("{} of {extent}", case.id()), &e.to_string());
                    bar.inc(backends.len() as u64);
                    continue;
                }
            };
            for place in 0..backends.len() {
                let backend = &mut backends[place];
                bar.set_message(format!("{} {} on {}", case.id(), problem.size, backend.name));
                bar.inc(1);
                if backend.gone {
                    left_out.add(format!("the rest on {}", backend.name), "its device was lost");
                    continue;
                }
                if sizes.is_none() && !backend.card && !case.sizes.contains(&extent) {
                    left_out
                        .add(format!("large sizes on {}", backend.name), "they are for cards (--sizes asks for them)");
                    continue;
                }
                let (variant, error, timed) = match backend.solve(&problem) {
                    Ok(Outcome::Missing) => continue,
                    #[cfg(feature = "cuda")]
                    Ok(Outcome::Failed(why)) => {
                        left_out.add(format!("{} on {}", case.id(), backend.name), &why);
                        continue;
                    }
                    Ok(Outcome::Wrong { variant, check }) => (variant, check.error, None),
                    Ok(Outcome::Timed(timed)) => (timed.variant.clone(), timed.check.error, Some(timed)),
                    Err(e) => {
                        left_out.add(format!("{} on {}", case.id(), backend.name), &e.to_string());
                        continue;
                    }
                };
                let (size, cost) = (problem.size.clone(), problem.cost);
                all.push(Row { case, extent, size, place, variant, cost, error, timed });
                let text = all.last().map_or_else(String::new, |row| rows::describe(row, &backends));
                bar.suspend(|| say(out, &text))?;
            }
        }
    }
    bar.finish_and_clear();

    let text = format!("{:#}\n", rows::json(&all, &backends, &date));
    whole(&folder.join("rows.json"), text.as_bytes()).map_err(Failure::bad_input)?;
    let pictures = draw::all(&folder, &cases, &all, &backends).map_err(Failure::bad_input)?;
    let wrong = all.iter().filter(|row| row.timed.is_none()).count();
    say(out, &format!("\n{}", left_out.describe()))?;
    say(out, &format!("\n{}: rows.json, and {pictures} pictures as SVG and PNG\n", shown(&folder)))?;
    say(
        out,
        &match wrong {
            0 => format!("all {} results are right\n", all.len()),
            _ => format!("{wrong} of {} results are WRONG, and not timed\n", all.len()),
        },
    )?;
    Ok(u8::from(wrong > 0))
}

fn introduction(backends: &[Backend], date: &str) -> String {
    let mut text = format!("tilework {}, {date}\n", env!("CARGO_PKG_VERSION"));
    for backend in backends {
        let roof = backend.roof.map_or_else(String::new, |roof| {
            format!("; copies {:.1} GB/s, f32 multiply-adds {:.0} GFLOP/s", roof.bandwidth * 1e-9, roof.peak * 1e-9)
        });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<24} {}, {}{roof}", backend.name, backend.adapter, backend.driver);
    }
    text + "roof: percent of what copies and f32 multiply-adds allow; error: relative to results above 1\n\n"
        + &rows::heading()
}
