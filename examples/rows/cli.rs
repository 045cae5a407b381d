//! The command line of `rows`.

use super::common::chunks::{chunk_bytes, progress, rate};
use super::common::{Args, Failure, exit_code, open_file, open_gpu, say};
use super::index::{Index, Indexer};
use super::saved::{self, Saved};
use indicatif::DecimalBytes;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilework::io::{check_outputs, shown};

const USAGE: &str = "\
usage: rows FILE... [--line N]... [--range A..B]... [--index INDEX] [--check]

  --line N             print line N, counted from 1
  --range A..B         print lines A to B inclusive; A.. to the end, ..B from the start
  -n                   print each line's number before it
  --index INDEX        use this index of the file if it is intact and up to date; else write it
  --check              compare the index with the processor's
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
  --chunk MIB          maximum MiB on the device at a time (64)

A line ends with a newline or with the file. Its newline, with a carriage return before it, is not printed; invalid
UTF-8 is printed as \u{fffd}. Lines are numbered per file.
";

/// Bytes of a line in memory at a time.
const PIECE: u64 = 1 << 16;
const MIB: u64 = 1 << 20;

struct Options {
    files: Vec<PathBuf>,
    /// Ranges of lines from 1, inclusive; the end may be open.
    wanted: Vec<(u64, Option<u64>)>,
    numbers: bool,
    index: Option<PathBuf>,
    check: bool,
    adapter: Option<String>,
    chunk: u64,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => rows(&options, out, err),
        None => say(out, USAGE).map(|()| 0),
    });
    exit_code("rows", result, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &["line", "range"]);
    let mut options = Options {
        files: Vec::new(),
        wanted: Vec::new(),
        numbers: false,
        index: None,
        check: false,
        adapter: None,
        chunk: 64 * MIB,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("line") => {
                let text = args.value()?.string()?;
                let n = line_number("--line", &text)?;
                options.wanted.push((n, Some(n)));
            }
            Long("range") => options.wanted.push(range(&args.value()?.string()?)?),
            Short('n') => options.numbers = true,
            Long("index") => options.index = Some(args.value()?.into()),
            Long("check") => options.check = true,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Long("chunk") => options.chunk = chunk_bytes(&args.value()?.string()?)?,
            Short('h') | Long("help") => return Ok(None),
            Value(file) => options.files.push(file.into()),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if options.files.is_empty() {
        return Err(Failure::bad_input("no file named; usage: rows FILE... [--line N]... (see --help)"));
    }
    if options.index.is_some() && options.files.len() > 1 {
        return Err(Failure::bad_input("--index holds one file's lines; name only one file"));
    }
    Ok(Some(options))
}

fn line_number(key: &str, text: &str) -> Result<u64, Failure> {
    text.parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Failure::bad_input(format!("{key} {text}: must be a whole number, 1 or more")))
}

/// Parses `A..B`, `A..` or `..B`.
fn range(text: &str) -> Result<(u64, Option<u64>), Failure> {
    let Some((a, b)) = text.split_once("..").filter(|ends| *ends != ("", "")) else {
        return Err(Failure::bad_input(format!("--range {text}: must be A..B, A.. or ..B")));
    };
    let first = if a.is_empty() { 1 } else { line_number("--range", a)? };
    let last = if b.is_empty() { None } else { Some(line_number("--range", b)?) };
    if last.is_some_and(|last| last < first) {
        return Err(Failure::bad_input(format!("--range {text}: ends before it begins")));
    }
    Ok((first, last))
}

fn rows(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Failure> {
    let files = options.files.iter().map(|path| Ok((path, open_file(path)?)));
    let files = files.collect::<Result<Vec<_>, Failure>>()?;
    let longest = files.iter().map(|(_, (_, bytes))| *bytes).max().unwrap_or(0);
    // Some files do not report their length.
    let chunk = options.chunk.min(longest.max(MIB));
    let mut device: Option<Indexer> = None;
    let mut same = true;
    for (i, (path, (mut file, _))) in files.into_iter().enumerate() {
        let (index, story) = obtain(options, path, &mut file, &mut device, chunk)?;
        let lines = index.lines();
        let mut text = format!("{}: {lines} lines in {}; {story}\n", shown(path), DecimalBytes(index.bytes));
        if options.check {
            let begin = Instant::now();
            file.rewind().map_err(|e| Failure::file(path, &e))?;
            let found = index.check(&file).map_err(|e| Failure::file(path, &e))?;
            text += &match &found {
                Ok(()) => format!("  checked: same lines as on the processor, in {}\n", seconds(begin)),
                Err(difference) => format!("  DIFFERS from the processor's lines: {difference}\n"),
            };
            same &= found.is_ok();
        }
        if options.wanted.is_empty() {
            put(out, text.as_bytes())?;
            continue;
        }
        // Standard output is for lines only. The reader of `err` may be gone.
        let _ = err.write_all(text.as_bytes());
        for &(first, last) in &options.wanted {
            let beyond = last.unwrap_or(first).max(first);
            if beyond > lines {
                return Err(Failure::bad_input(format!("no line {beyond}; it has {lines} lines")).at(path));
            }
        }
        if options.files.len() > 1 {
            let gap = if i > 0 { "\n" } else { "" };
            put(out, format!("{gap}==> {} <==\n", shown(path)).as_bytes())?;
        }
        let mut text = Lines::new(file).map_err(|e| Failure::file(path, &e))?;
        for &(first, last) in &options.wanted {
            for n in first..=last.unwrap_or(lines) {
                if options.numbers {
                    put(out, format!("{n}: ").as_bytes())?;
                }
                text.print(&index, n, out).map_err(|e| e.at(path))?;
            }
        }
    }
    Ok(if same { 0 } else { 1 })
}

/// Returns a file's index, from disk if possible, and says where it came from.
fn obtain(
    options: &Options, path: &Path, file: &mut File, device: &mut Option<Indexer>, chunk: u64,
) -> Result<(Index, String), Failure> {
    let meta = file.metadata().map_err(|e| Failure::file(path, &e))?;
    let memory = |index: &Index| format!("index of {}, 8 bytes a line", DecimalBytes(index.memory()));
    let mut useless = None;
    if let Some(saved) = &options.index {
        let begin = Instant::now();
        let there = saved::load(saved, &meta)?;
        if let Saved::Useless(why) = there {
            useless = Some(why);
        }
        if let Saved::Index(index) = there {
            let story = format!("{}, read from {} in {}", memory(&index), shown(saved), seconds(begin));
            return Ok((index, story));
        }
    }
    check_outputs(&options.index)?;
    if device.is_none() {
        *device = Some(Indexer::new(&open_gpu(options.adapter.clone())?, chunk)?);
    }
    let Some(indexer) = device else { unreachable!("opened above") };
    let bar = progress(meta.len());
    let begin = Instant::now();
    let index = indexer.index(&*file, |bytes| bar.inc(bytes)).map_err(|e| e.at(path))?;
    let took = begin.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let rate = rate(index.bytes, took);
    let mut story = format!("{took:.3} s, {rate} on {}; {}", indexer.adapter(), memory(&index));
    if let Some(saved) = &options.index {
        saved::save(saved, &index, &meta)?;
        story += &format!(", written to {}", shown(saved));
        if let Some(why) = useless {
            story += &format!("; {why}, and is replaced");
        }
    }
    Ok((index, story))
}

fn seconds(since: Instant) -> String {
    format!("{:.3} s", since.elapsed().as_secs_f64())
}

/// Writes. A closed reader ends the program with exit code 0.
fn put(to: &mut dyn Write, text: &[u8]) -> Result<(), Failure> {
    to.write_all(text).map_err(|e| Failure::output(&e))
}

/// A text to print lines from.
struct Lines {
    text: BufReader<File>,
    at: u64,
}

impl Lines {
    fn new(mut text: File) -> io::Result<Self> {
        text.rewind()?;
        Ok(Self { text: BufReader::new(text), at: 0 })
    }

    /// Prints line `n`, counted from 1, and reads only its bytes.
    fn print(&mut self, index: &Index, n: u64, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(bytes) = index.line(n - 1) else { return Ok(()) };
        let mut left = bytes.end - bytes.start;
        let mut held = Vec::new();
        let failed = |e: io::Error| Failure::bad_input(e.to_string());
        // Keeps the buffer if the line is in it.
        self.text.seek_relative(bytes.start as i64 - self.at as i64).map_err(failed)?;
        self.at = bytes.start;
        loop {
            let piece = left.min(PIECE);
            let read = self.text.by_ref().take(piece).read_to_end(&mut held).map_err(failed)? as u64;
            self.at += read;
            if read != piece {
                return Err(Failure::bad_input("has become shorter since it was indexed"));
            }
            left -= piece;
            if left == 0 {
                let line = held.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                put(out, String::from_utf8_lossy(line.unwrap_or(&held)).as_bytes())?;
                return put(out, b"\n");
            }
            let ready = held.len() - unfinished(&held);
            put(out, String::from_utf8_lossy(&held[..ready]).as_bytes())?;
            held.drain(..ready);
        }
    }
}

/// Returns the trailing bytes to keep with the next piece: an incomplete character, or a carriage return.
fn unfinished(piece: &[u8]) -> usize {
    if piece.last() == Some(&b'\r') {
        return 1;
    }
    let invalid = piece.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let begun = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
    if begun { invalid.len() } else { 0 }
}
