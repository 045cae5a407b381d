//! The command line of `overlap`.

use super::common::pictures::{is_png, save};
use super::common::{Args, Failure, bar, exit_code, open_file, open_gpu, say};
use super::picture::{Panel, TimelinePicture};
use super::work::{Add, Bytes, MAX_ROUNDS, Work};
use indicatif::HumanBytes;
use std::io::Write;
use std::path::PathBuf;
use tilework::Gpu;
use tilework::io::{check_outputs, shown};
use tilework::stream::{Stage, Timeline};

const USAGE: &str = "\
usage: overlap [--only add|histogram] [--file FILE] [--balance] [-o PICTURE.svg] ...

  --only NAME          add (sums of two vectors) or histogram (of bytes); both if it is not given
  --file FILE          whose bytes the histogram counts (some that are made up)
  --size BYTES         of each vector, and of what is made up (512M; 16M on a software driver)
  --chunk BYTES,...    of the longest input, of a chunk (4M,16M,64M; 256K,1M on a software driver)
  --in-flight N,...    chunks in flight (2,3,4); one after another is always measured
  --balance            makes kernels heavier until the device takes as long as the slower host copy
  --rounds N           makes kernels heavier by N rounds
  --repeat N           runs of each, of which the fastest counts (3)
  -o PICTURE           draws what ran when, of the fastest chunk size, as .svg or .png
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

BYTES may end in K, M or G.
";

/// Chunks that a trial of `--balance` and a picture have.
const FEW: usize = 10;

struct Options {
    only: Option<String>,
    file: Option<PathBuf>,
    size: Option<u64>,
    chunks: Vec<u64>,
    in_flight: Vec<usize>,
    balance: bool,
    rounds: Option<u32>,
    repeat: usize,
    picture: Option<PathBuf>,
    adapter: Option<String>,
}

/// Runs the program and gives its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => overlap(&options, out),
        None => say(out, USAGE).map(|()| 0),
    });
    exit_code("overlap", result, err)
}

/// The options, or nothing if `--help` is asked for.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let mut options = Options {
        only: None,
        file: None,
        size: None,
        chunks: Vec::new(),
        in_flight: vec![2, 3, 4],
        balance: false,
        rounds: None,
        repeat: 3,
        picture: None,
        adapter: None,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => {
                let name = args.value()?.string()?;
                if !["add", "histogram"].contains(&name.as_str()) {
                    return Err(Failure::bad_input(format!("--only {name}: must be add or histogram")));
                }
                options.only = Some(name);
            }
            Long("file") => options.file = Some(args.value()?.into()),
            Long("size") => options.size = Some(bytes("--size", &args.value()?.string()?)?),
            Long("chunk") => options.chunks = list(&args.value()?.string()?, |t| bytes("--chunk", t))?,
            Long("in-flight") => {
                options.in_flight = list(&args.value()?.string()?, |t| {
                    t.parse().ok().filter(|n| (2..=64).contains(n)).ok_or_else(|| {
                        Failure::bad_input(format!("--in-flight {t}: must be whole numbers from 2 to 64"))
                    })
                })?;
            }
            Long("balance") => options.balance = true,
            Long("rounds") => options.rounds = Some(args.number(0..=MAX_ROUNDS)?),
            Long("repeat") => options.repeat = args.number(1..=1000)?,
            Short('o') => {
                let path = PathBuf::from(args.value()?);
                is_png(&path).map_err(Failure::bad_input)?;
                options.picture = Some(path);
            }
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    text.split(',').map(one).collect()
}

/// `64K`, `4M`, `1G` or a number of bytes; at least 4 and at most 1 TiB.
fn bytes(key: &str, text: &str) -> Result<u64, Failure> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((end, 'K')) => (&text[..end], 10),
        Some((end, 'M')) => (&text[..end], 20),
        Some((end, 'G')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|n| *n <= 1 << 40).map(|n| n << shift);
    number.filter(|n| (4..=1 << 40).contains(n)).ok_or_else(|| {
        Failure::bad_input(format!("{key} {text}: must be 4 bytes to 1024G, as 64K, 4M or 1G"))
    })
}

fn overlap(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    check_outputs(&options.picture)?;
    if let Some(path) = &options.file {
        open_file(path)?;
    }
    let gpu = open_gpu(options.adapter.clone())?;
    let software = gpu.profile().is_cpu();
    let size = options.size.unwrap_or(if software { 16 << 20 } else { 512 << 20 });
    let limits = &gpu.profile().limits;
    let most = limits.max_storage_binding.min(limits.max_buffer_size);
    let sizes = match &options.chunks[..] {
        [] if software => vec![256 << 10, 1 << 20],
        [] => vec![4 << 20, 16 << 20, 64 << 20],
        given => given.to_vec(),
    };
    if let Some(chunk) = sizes.iter().find(|chunk| **chunk > most) {
        return Err(Failure::bad_input(format!("--chunk {chunk}: a binding has at most {most} bytes")));
    }
    say(out, &format!("{} ({})\n", gpu.profile().name, gpu.profile().backend))?;
    if software {
        say(out, "the device is the processor itself: what overlaps shares its cores, and gains little\n")?;
    }
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    let mut panels = Vec::new();
    let mut right = true;
    if wanted("add") {
        let mut work = Work::Add(Add::new(size)?);
        right &= measure(&gpu, &mut work, &sizes, options, out, &mut panels)?;
    }
    if wanted("histogram") {
        let mut work = Work::Histogram(Box::new(Bytes::new(options.file.clone(), size)?));
        right &= measure(&gpu, &mut work, &sizes, options, out, &mut panels)?;
    }
    if let Some(path) = &options.picture {
        let picture = TimelinePicture { title: format!("Streams on {}", gpu.profile().name), panels };
        save(path, &picture).map_err(Failure::bad_input)?;
        say(out, &format!("drawn to {}\n", shown(path)))?;
    }
    Ok(if right { 0 } else { 1 })
}

/// A row of the table.
struct Row {
    chunk: u64,
    in_flight: usize,
    timeline: Timeline,
    rounds: u32,
}

/// Measures one work with all sizes of chunks. Says whether all results were right.
fn measure(
    gpu: &Gpu,
    work: &mut Work,
    sizes: &[u64],
    options: &Options,
    out: &mut dyn Write,
    panels: &mut Vec<Panel>,
) -> Result<bool, Failure> {
    let runs = sizes.len() * (1 + options.in_flight.len()) * options.repeat;
    let bar = bar(runs as u64, "{msg} {bar:30} {pos} of {len} runs, {eta} left", 0);
    bar.set_message(work.name());
    let (mut rows, mut right) = (Vec::new(), true);
    for &chunk in sizes {
        let rounds = match options.rounds {
            Some(rounds) => rounds.clamp(work.rounds().0, work.rounds().1),
            None if options.balance => balanced(gpu, work, chunk)?,
            None => work.rounds().0,
        };
        for in_flight in std::iter::once(1).chain(options.in_flight.iter().copied()) {
            let mut best: Option<Timeline> = None;
            // The first run allocates, and is not counted.
            work.run(gpu, (chunk, in_flight), rounds, in_flight)?;
            for _ in 0..options.repeat {
                let (timeline, same) = work.run(gpu, (chunk, in_flight), rounds, usize::MAX)?;
                right &= same;
                if best.as_ref().is_none_or(|b| timeline.seconds < b.seconds) {
                    best = Some(timeline);
                }
                bar.inc(1);
            }
            rows.extend(best.map(|timeline| Row { chunk, in_flight, timeline, rounds }));
        }
    }
    bar.finish_and_clear();
    say(out, &table(work, &rows))?;
    let verdict = if right { "as on the processor" } else { "DIFFERENT from the processor's" };
    let rounds = rows.iter().map(|r| r.rounds).max().unwrap_or(0);
    say(out, &format!("checked, {} of each run: {verdict}\n", work.checked(rounds)))?;
    // The chunk size and the number in flight that gain most, against one after another.
    let gain = |r: &&Row| serial(&rows, r.chunk).map_or(0.0, |s| s / r.timeline.seconds);
    let best = rows.iter().filter(|r| r.in_flight > 1).max_by(|a, b| gain(a).total_cmp(&gain(b)));
    if let (Some(best), true) = (best.map(|r| (r.chunk, r.in_flight, r.rounds)), options.picture.is_some()) {
        let (chunk, in_flight, rounds) = best;
        for in_flight in [1, in_flight] {
            let (timeline, _) = work.run(gpu, (chunk, in_flight), rounds, FEW)?;
            let how = if in_flight == 1 {
                "one chunk after another".into()
            } else {
                format!("{in_flight} chunks in flight")
            };
            let title = format!("{}, chunks of {}: {how}", work.name(), HumanBytes(chunk));
            panels.push(Panel { title, timeline });
        }
    }
    Ok(right)
}

/// Seconds of the run with these chunks one after another.
fn serial(rows: &[Row], chunk: u64) -> Option<f64> {
    rows.iter().find(|r| (r.chunk, r.in_flight) == (chunk, 1)).map(|r| r.timeline.seconds)
}

/// Rounds with which the device takes as long as the slower host copy.
fn balanced(gpu: &Gpu, work: &mut Work, chunk: u64) -> Result<u32, Failure> {
    let (least, most) = work.rounds();
    let mut times = |rounds: u32| -> Result<(f64, f64), Failure> {
        // Chunks in flight keep the device busy and its clocks up.
        work.run(gpu, (chunk, 3), rounds, FEW)?;
        let (t, _) = work.run(gpu, (chunk, 3), rounds, 3 * FEW)?;
        Ok((t.busy(Stage::Device), t.busy(Stage::Fill).max(t.busy(Stage::Drain))))
    };
    let (base, mut copies) = times(least)?;
    let (mut low, mut high) = ((least, base), (least, base));
    while high.1 < copies && high.0 < most {
        low = high;
        high.0 = (high.0.max(8) * 2).min(most);
        (high.1, copies) = times(high.0)?;
    }
    if high.1 <= low.1 {
        return Ok(high.0);
    }
    let part = ((copies - low.1) / (high.1 - low.1)).clamp(0.0, 1.0);
    Ok(low.0 + (part * f64::from(high.0 - low.0)).round() as u32)
}

fn table(work: &Work, rows: &[Row]) -> String {
    let mut text = format!("\n{}, {} to and from the device\n", work.name(), HumanBytes(work.bytes()));
    text += &format!(
        "{:>10} {:>9} {:>7} {:>9} {:>7} {:>8}   {:>8} {:>8} {:>8}   {:>8} {:>7}\n",
        "chunk",
        "in flight",
        "rounds",
        "seconds",
        "GB/s",
        "speedup",
        "fill ms",
        "device",
        "drain",
        "period",
        "slowest"
    );
    for row in rows {
        let t = &row.timeline;
        let speedup = serial(rows, row.chunk).map_or(1.0, |serial| serial / t.seconds);
        let each = |stage| 1e3 * t.busy(stage) / t.chunks.max(1) as f64;
        let stages = [Stage::Fill, Stage::Device, Stage::Drain].map(each);
        let slowest = stages.iter().copied().fold(0.0, f64::max);
        // How much longer than its slowest stage a chunk takes in the steady state.
        let period = 1e3 * t.period().unwrap_or(0.0);
        let above =
            if period > 0.0 { format!("{:+.0} %", 100.0 * (period / slowest - 1.0)) } else { "-".into() };
        let in_flight = if row.in_flight == 1 { "serial".into() } else { row.in_flight.to_string() };
        text += &format!(
            "{:>10} {in_flight:>9} {:>7} {:>9.4} {:>7.2} {speedup:>8.2}   {:>8.3} {:>8.3} {:>8.3}   {period:>8.3} \
             {above:>7}\n",
            HumanBytes(row.chunk).to_string(),
            row.rounds,
            t.seconds,
            work.bytes() as f64 / t.seconds * 1e-9,
            stages[0],
            stages[1],
            stages[2],
        );
    }
    text
}
