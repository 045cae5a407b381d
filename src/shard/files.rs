//! Reductions of files that are larger than the devices: each rank streams its part from disk.

use super::rank::Rank;
use super::schedule::part;
use super::transport::{Combine, Transport};
use crate::primitives::Reducer;
use crate::program::prelude::*;
use crate::stream::Reader;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::path::Path;

/// This rank's part of a file, and its elements.
struct FilePart {
    elements: usize,
    reader: Reader<Take<File>>,
}

impl<L: Transport> Rank<L> {
    /// Reduces a file of native-endian elements to one value, which all ranks get, as [`reduce`](Self::reduce). Each
    /// rank reads its [`part`] in chunks, while its device reduces the chunk before:
    /// [`Streamed`](crate::stream::Streamed).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let file = std::env::temp_dir().join(format!("tilework-ones-{}", std::process::id()));
    /// let ones: Vec<u8> = [1u32; 5000].iter().flat_map(|one| one.to_ne_bytes()).collect();
    /// std::fs::write(&file, ones)?;
    /// let gpus = vec![Gpu::new()?; 2];
    /// let sums = shard::run(&gpus, Duration::from_secs(10), |rank| rank.reduce_file::<u32, _, _>(&file, Sum));
    /// std::fs::remove_file(&file)?;
    /// assert_eq!(sums?, [5000, 5000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce) and of streams; [`Io`](ErrorKind::Io) if the file cannot be read;
    /// [`Malformed`](ErrorKind::Malformed) if it does not hold whole elements, or ranks see other lengths.
    pub fn reduce_file<T, U, O>(&self, path: &Path, op: O) -> Result<U>
    where
        T: Element,
        U: Element,
        O: Reducer<T, Output = U> + Reducer<U, Output = U> + Clone,
    {
        let FilePart { elements, reader } = self.part_of_file::<T>(path)?;
        let own: Vec<U> = match elements {
            0 => Vec::new(),
            _ => vec![self.gpu().streamed().reduce::<T, U, O>(reader, op.clone())?],
        };
        let (totals, _) = self.all_gather(&own)?;
        self.combined(&totals, op)
    }

    /// Counts the elements of a file in equal bins from `lo` to `hi`, as [`histogram`](Self::histogram); each rank
    /// reads its part as in [`reduce_file`](Self::reduce_file). All ranks get the counts.
    ///
    /// # Errors
    /// As [`reduce_file`](Self::reduce_file); those of [`Histogram`](crate::Histogram).
    pub fn histogram_file<T: Element>(&self, path: &Path, bins: usize, lo: f64, hi: f64) -> Result<Vec<u64>> {
        self.agree("sharded histogram", &["bins", "lo", "hi"], &[bins as u64, lo.to_bits(), hi.to_bits()])?;
        let part = self.part_of_file::<T>(path)?;
        let mut counts = self.gpu().streamed().histogram::<T>(part.reader, bins, lo, hi)?;
        self.all_reduce(&mut counts, Combine::Sum)?;
        Ok(counts)
    }

    fn part_of_file<T: Element>(&self, path: &Path) -> Result<FilePart> {
        let size = T::DTYPE.size() as u64;
        let named = |e: std::io::Error| err!(Io, "{}: {e}", path.display());
        let mut file = File::open(path).map_err(named)?;
        let bytes = file.metadata().map_err(named)?.len();
        self.agree("a file in shards", &["its length in bytes"], &[bytes])?;
        if !bytes.is_multiple_of(size) {
            return Err(err!(
                Malformed,
                "{}: {bytes} bytes are no whole number of elements of {}, which have {size}",
                path.display(),
                T::DTYPE
            ));
        }
        let mine = part((bytes / size) as usize, self.size(), self.index());
        file.seek(SeekFrom::Start(mine.start as u64 * size)).map_err(named)?;
        Ok(FilePart { elements: mine.len(), reader: Reader(file.take(mine.len() as u64 * size)) })
    }
}
