//! Finds where lines begin, on the device, and keeps the positions on the host.

use super::common::chunks::read_ahead;
use super::common::{Failure, room_for, workgroups};
use std::io::{self, Read};
use std::ops::Range;
use tilework::gpu::OwnKernel;
use tilework::prelude::*;

/// Bytes per mark.
const GROUP: usize = 8;
/// A mark has 24 bits for its group's number.
const MAX_CHUNK: u64 = (GROUP as u64) << 24;
/// Threads per workgroup.
const WORKGROUP_SIZE: usize = 256;

/// The start of each line, and the end of the last.
///
/// A newline ends its line and belongs to it. Text after the last newline is a line, too; an empty text has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) starts: Vec<u64>,
    pub(crate) bytes: u64,
}

impl Index {
    pub(crate) fn lines(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Returns the bytes of the index itself.
    pub(crate) fn memory(&self) -> u64 {
        8 * self.lines()
    }

    /// Returns the bytes of line `n`, counted from 0.
    pub(crate) fn line(&self, n: u64) -> Option<Range<u64>> {
        let n = usize::try_from(n).ok()?;
        let end = self.starts.get(n + 1).unwrap_or(&self.bytes);
        self.starts.get(n).map(|start| *start..*end)
    }

    /// Compares the index with a text. Describes the first difference.
    pub(crate) fn check(&self, mut text: impl Read) -> io::Result<Result<(), String>> {
        let mut buffer = vec![0; 1 << 16];
        let (mut at, mut line, mut begins) = (0, 0, true);
        loop {
            let n = match text.read(&mut buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if n == 0 {
                break;
            }
            for byte in &buffer[..n] {
                if begins {
                    if self.starts.get(line) != Some(&at) {
                        let has = self.starts.get(line).map_or("nowhere".into(), |s| format!("at byte {s}"));
                        let line = line + 1;
                        return Ok(Err(format!("line {line} begins at byte {at}; the device says {has}")));
                    }
                    line += 1;
                }
                begins = *byte == b'\n';
                at += 1;
            }
        }
        Ok(if (line, at) == (self.starts.len(), self.bytes) {
            Ok(())
        } else {
            Err(format!("there are {line} lines in {at} bytes; the device says {} in {}", self.lines(), self.bytes))
        })
    }
}

/// Collects the marks of consecutive chunks.
#[derive(Debug)]
struct Builder {
    starts: Vec<u64>,
    bytes: u64,
}

impl Builder {
    /// Adds the selected marks of a chunk of `bytes` bytes.
    fn add(&mut self, marks: &[u32], bytes: u64) {
        for mark in marks {
            let mut bits = mark & 0xff;
            while bits != 0 {
                let byte = (mark >> 8) as u64 * GROUP as u64 + u64::from(bits.trailing_zeros());
                self.starts.push(self.bytes + byte + 1);
                bits &= bits - 1;
            }
        }
        self.bytes += bytes;
    }

    fn finish(mut self) -> Index {
        // The text ends with a newline, or is empty.
        if self.starts.last() == Some(&self.bytes) {
            self.starts.pop();
        }
        Index { starts: self.starts, bytes: self.bytes }
    }
}

/// Finds lines on a device, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Indexer {
    gpu: Gpu,
    mark: OwnKernel,
    chunk: usize,
    text: Buffer<u8>,
    marks: Buffer<u32>,
    kept: Buffer<u32>,
    count: Buffer<u32>,
}

impl Indexer {
    /// Makes an indexer for chunks of at most `chunk` bytes, or what the device can bind.
    pub(crate) fn new(gpu: &Gpu, chunk: u64) -> tilework::Result<Self> {
        let limits = &gpu.profile().limits;
        let most = MAX_CHUNK.min(limits.max_storage_binding).min(limits.max_buffer_size);
        let chunk = chunk.clamp(GROUP as u64, most) as usize / GROUP * GROUP;
        let mark = gpu.kernel("newlines.wgsl", include_str!("newlines.wgsl"), "mark_newlines")?;
        Ok(Self {
            gpu: gpu.clone(),
            mark,
            chunk,
            text: gpu.alloc(chunk)?,
            marks: gpu.alloc(chunk / GROUP)?,
            kept: gpu.alloc(chunk / GROUP)?,
            count: gpu.alloc(1)?,
        })
    }

    /// Returns the adapter's name.
    pub(crate) fn adapter(&self) -> &str {
        &self.gpu.profile().name
    }

    /// Builds the index of `text`. Calls `done` with the bytes of each finished chunk.
    pub(crate) fn index(&self, mut text: impl Read + Send, mut done: impl FnMut(u64)) -> Result<Index, Failure> {
        let mut builder = Builder { starts: vec![0], bytes: 0 };
        // The last chunk's selected marks and bytes.
        let (mut marks, mut bytes) = (Vec::new(), 0);
        let fill = |buffer: &mut Vec<u8>| {
            room_for("--chunk", self.chunk, 1)?;
            buffer.reserve(self.chunk);
            let read = text.by_ref().take(self.chunk as u64).read_to_end(buffer);
            read.map(|n| n > 0).map_err(|e| Failure::bad_input(e.to_string()))
        };
        read_ahead(fill, |mut chunk| {
            let len = chunk.len() as u64;
            let groups = self.submit(&mut chunk)?;
            // The device is busy: process its previous results.
            builder.add(&marks, bytes);
            (marks, bytes) = (self.kept(groups)?, len);
            done(len);
            Ok(Some(chunk))
        })?;
        builder.add(&marks, bytes);
        Ok(builder.finish())
    }

    /// Starts the search in `chunk`, after padding it to whole groups.
    fn submit(&self, chunk: &mut Vec<u8>) -> tilework::Result<usize> {
        let groups = chunk.len().div_ceil(GROUP);
        chunk.resize(groups * GROUP, 0);
        let text = self.text.slice(..chunk.len())?;
        text.write(chunk)?;
        let (marks, kept) = (self.marks.slice(..groups)?, self.kept.slice(..groups)?);
        let any = Predicate::custom("fn keep(x: T) -> bool { return (x & 255u) != 0u; }");
        let select = Select::by(groups, any).plan::<u32>(&self.gpu)?;
        let params = groups as u32;
        let mut rec = self.gpu.recorder();
        let args = [Arg::uniform(&params), Arg::from(text), Arg::from(marks)];
        self.mark.record(&mut rec, &args, workgroups(groups, WORKGROUP_SIZE))?;
        select.record_by(&mut rec, marks, kept, &self.count)?;
        rec.submit()?;
        Ok(groups)
    }

    /// Waits for the marks with newlines.
    fn kept(&self, groups: usize) -> tilework::Result<Vec<u32>> {
        let count = self.count.read()?.first().map_or(0, |n| *n as usize);
        self.kept.slice(..count.min(groups))?.read()
    }
}
