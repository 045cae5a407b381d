//! An index on disk: a head of five numbers of 64 bits, little-endian, then the byte where each line begins.

use super::index::Index;
use super::streaming::Failure;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

const MAGIC: u64 = u64::from_le_bytes(*b"tilerows");
const VERSION: u64 = 1;
/// Numbers of the head: magic, version, bytes of the text, its time of change, lines.
const HEAD: usize = 5;

/// Nanoseconds since 1970 at which the text was last changed; 0 where the file system does not know.
fn changed(text: &Metadata) -> u64 {
    let since = text.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |d| d.as_nanos() as u64)
}

fn number(file: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The index at `path`, if there is one and it is of the text as it is now. A file of another kind is refused.
pub(crate) fn load(path: &Path, text: &Metadata) -> Result<Option<Index>, Failure> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| Failure::file(path, &e))?,
    };
    let held = file.metadata().map_err(|e| Failure::file(path, &e))?.len();
    let mut file = BufReader::new(file);
    let mut head = [0; HEAD];
    let whole = head.iter_mut().try_for_each(|place| number(&mut file).map(|n| *place = n)).is_ok();
    let [magic, version, bytes, time, lines] = head;
    if !whole || magic != MAGIC {
        return Err(Failure::bad_input("is no index of this program; it is left as it is").at(path));
    }
    let fits = version == VERSION && bytes == text.len() && time == changed(text);
    if !fits || lines.checked_add(HEAD as u64).and_then(|n| n.checked_mul(8)) != Some(held) {
        return Ok(None);
    }
    let starts = (0..lines).map(|_| number(&mut file)).collect::<io::Result<Vec<_>>>();
    let starts = starts.map_err(|e| Failure::file(path, &e))?;
    // A damaged index is built anew.
    let sound = starts.is_sorted_by(|a, b| a < b)
        && starts.first().is_none_or(|s| *s == 0)
        && starts.last().is_none_or(|s| *s < bytes)
        && (lines > 0 || bytes == 0);
    Ok(sound.then_some(Index { starts, bytes }))
}

/// Writes the index of a text to `path`, all of it or nothing.
pub(crate) fn save(path: &Path, index: &Index, text: &Metadata) -> Result<(), Failure> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let write = || {
        let mut file = BufWriter::new(File::create(&part)?);
        let head = [MAGIC, VERSION, index.bytes, changed(text), index.lines()];
        head.iter().chain(&index.starts).try_for_each(|n| file.write_all(&n.to_le_bytes()))?;
        file.into_inner()?.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|e| {
        // What was begun is of no use.
        let _ = fs::remove_file(&part);
        Failure::file(path, &e)
    })
}
