//! The command line of `wordcount`.

use super::common::chunks::{chunk_bytes, progress, rate};
use super::common::{Args, Failure, answer, open_file, open_gpu, say};
use super::counter::Counter;
use super::pieces::Pieces;
use super::words::Counts;
use indicatif::DecimalBytes;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::Instant;

const USAGE: &str = "\
usage: wordcount FILE... [--top N] [--check]

  --top N              print the N most frequent words (20)
  --check              compare the counts with the processor's
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
  --chunk MIB          maximum MiB on the device at a time (32; 8 for a software driver)

Words consist of ASCII letters (in lower case), ASCII digits, and other non-ASCII characters than U+0080 to U+00BF,
U+2000 to U+207F and U+3000 to U+303F (dashes, quotation marks): don't is two words, and naïve is one. Invalid UTF-8
belongs to words, and is printed as \u{fffd}.
";

const MIB: u64 = 1 << 20;

struct Options {
    files: Vec<PathBuf>,
    top: usize,
    check: bool,
    adapter: Option<String>,
    chunk: Option<u64>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("wordcount", USAGE), parse(args), wordcount, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let mut options = Options { files: Vec::new(), top: 20, check: false, adapter: None, chunk: None };
    while let Some(arg) = args.next()? {
        match arg {
            Long("top") => options.top = args.number(0..=usize::MAX)?,
            Long("check") => options.check = true,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Long("chunk") => options.chunk = Some(chunk_bytes(&args.value()?.string()?)?),
            Short('h') | Long("help") => return Ok(None),
            Value(file) => options.files.push(file.into()),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if options.files.is_empty() {
        return Err(Failure::bad_input("no file named; usage: wordcount FILE... (see --help)"));
    }
    Ok(Some(options))
}

fn wordcount(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    // Reject unreadable files before any work.
    let sizes = options.files.iter().map(|path| Ok(open_file(path)?.1));
    let size = sizes.sum::<Result<u64, Failure>>()?;
    let gpu = open_gpu(options.adapter.clone())?;
    let usual = if gpu.profile().is_cpu() { 8 } else { 32 } * MIB;
    // Some files do not report their length.
    let chunk = options.chunk.unwrap_or(usual).min(size.max(MIB));
    let counter = Counter::new(&gpu, chunk)?;
    let mut pieces = Pieces::new(options.files.clone(), counter.chunk());
    let bar = progress(size);
    let begin = Instant::now();
    let mut bytes = 0;
    let counts = counter.count(
        |piece| pieces.next(piece),
        |n| {
            bytes += n;
            bar.set_position(bytes);
        },
    )?;
    let took = begin.elapsed().as_secs_f64();
    bar.finish_and_clear();
    // A newline was added to each file.
    bytes -= options.files.len() as u64;

    let ranked = counts.ranked();
    let all = counts.all();
    let mut text = String::new();
    if options.top > 0 && all > 0 {
        let width = ranked[0].1.to_string().len().max("count".len());
        text += &format!("{:>width$}  share  word\n", "count");
        for (word, count) in ranked.iter().take(options.top) {
            let share = 100.0 * *count as f64 / all as f64;
            text += &format!("{count:>width$} {share:5.2}%  {}\n", String::from_utf8_lossy(word));
        }
        text += "\n";
    }
    text += &format!(
        "{all} words, {} different, in {}; {took:.3} s, {} on {}\n",
        counts.different(),
        DecimalBytes(bytes),
        rate(bytes, took),
        counter.adapter()
    );
    let mut same = true;
    if options.check {
        let begin = Instant::now();
        let found = counts.difference(&count_on_host(&options.files)?);
        let took = begin.elapsed().as_secs_f64();
        text += &match &found {
            None => format!("  checked: same counts as on the processor, in {took:.3} s\n"),
            Some(difference) => format!("  DIFFERS from the processor's counts: {difference}\n"),
        };
        same = found.is_none();
    }
    say(out, &text)?;
    Ok(if same { 0 } else { 1 })
}

fn count_on_host(files: &[PathBuf]) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    for path in files {
        let (file, _) = open_file(path)?;
        counts.add_lines(BufReader::new(file)).map_err(|e| Failure::file(path, &e))?;
    }
    Ok(counts)
}
