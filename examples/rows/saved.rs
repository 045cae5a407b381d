//! Saves an index as 64-bit little-endian numbers: a header of five, the start of each line, and a checksum.

use super::common::Failure;
use super::index::Index;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;
use tilework::io::write_aside;
use xxhash_rust::xxh3::Xxh3Default;

const MAGIC: u64 = u64::from_le_bytes(*b"tilerows");
/// Version of the file format.
const VERSION: u64 = 2;
/// Numbers of the header: magic, version, bytes of the text, its modification time, lines.
const HEAD: usize = 5;

/// The state of an index file.
pub(crate) enum Saved {
    Index(Index),
    /// Unusable, for this reason.
    Useless(&'static str),
    Nothing,
}

/// Returns when the text was modified, in nanoseconds since 1970; 0 if the file system does not know.
fn changed(text: &Metadata) -> u64 {
    let since = text.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |d| d.as_nanos() as u64)
}

/// A file of numbers with a running checksum.
struct Numbers<F> {
    file: F,
    sum: Xxh3Default,
}

impl<F> Numbers<F> {
    fn new(file: F) -> Self {
        Self { file, sum: Xxh3Default::new() }
    }
}

impl<F: Read> Numbers<F> {
    fn read(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact(&mut bytes)?;
        self.sum.update(&bytes);
        Ok(u64::from_le_bytes(bytes))
    }
}

impl<F: Write> Numbers<F> {
    fn write(&mut self, number: u64) -> io::Result<()> {
        let bytes = number.to_le_bytes();
        self.sum.update(&bytes);
        self.file.write_all(&bytes)
    }
}

/// Reads the index at `path`, if it is intact and up to date. Rejects files of another kind.
pub(crate) fn load(path: &Path, text: &Metadata) -> Result<Saved, Failure> {
    let failed = |e: io::Error| Failure::file(path, &e);
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Saved::Nothing),
        other => other.map_err(failed)?,
    };
    let held = file.metadata().map_err(failed)?.len();
    let mut numbers = Numbers::new(BufReader::new(file));
    if !numbers.read().is_ok_and(|magic| magic == MAGIC) {
        return Err(Failure::bad_input("is not an index of this program; it was left unchanged").at(path));
    }
    let damaged = Ok(Saved::Useless("it was damaged"));
    let mut head = [0; HEAD - 1];
    if head.iter_mut().try_for_each(|place| numbers.read().map(|n| *place = n)).is_err() {
        return damaged;
    }
    let [version, bytes, time, lines] = head;
    if version != VERSION {
        return Ok(Saved::Useless("it was of another version"));
    }
    // Including the checksum.
    if lines.checked_add(HEAD as u64 + 1).and_then(|n| n.checked_mul(8)) != Some(held) {
        return damaged;
    }
    let mut starts = Vec::new();
    if starts.try_reserve_exact(lines as usize).is_err() {
        return Err(Failure::bad_input(format!("this machine has no memory for its {lines} lines")).at(path));
    }
    for _ in 0..lines {
        starts.push(numbers.read().map_err(failed)?);
    }
    let sum = numbers.sum.digest();
    if numbers.read().map_err(failed)? != sum {
        return damaged;
    }
    if bytes != text.len() || time != changed(text) {
        return Ok(Saved::Useless("the file has changed"));
    }
    // A checksum does not prove who wrote the file.
    let sound = starts.is_sorted_by(|a, b| a < b)
        && starts.first().is_none_or(|s| *s == 0)
        && starts.last().is_none_or(|s| *s < bytes)
        && (lines > 0 || bytes == 0);
    if sound { Ok(Saved::Index(Index { starts, bytes })) } else { damaged }
}

/// Writes the whole index of a text to `path`, or nothing.
pub(crate) fn save(path: &Path, index: &Index, text: &Metadata) -> Result<(), Failure> {
    write_aside(path, |file| write(file, index, text))?;
    Ok(())
}

fn write(file: impl Write, index: &Index, text: &Metadata) -> io::Result<()> {
    let mut numbers = Numbers::new(BufWriter::new(file));
    let head = [MAGIC, VERSION, index.bytes, changed(text), index.lines()];
    head.iter().chain(&index.starts).try_for_each(|n| numbers.write(*n))?;
    numbers.write(numbers.sum.digest())?;
    numbers.file.flush()
}
