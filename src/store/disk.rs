//! Small files in the user's cache directory: compiled kernels and tuning results.
//!
//! Only regular files are opened or replaced, because opening a pipe would block.
//!
//! The cache is only a shortcut: if a file or directory is unusable, the work is done again. A file holds its whole key
//! and a checksum, so truncated, corrupted, renamed and foreign files are rejected. It is written under a temporary
//! name and renamed, so that no process sees half a file.

use super::lock;
use crate::io::Aside;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Where compiled pipelines and tuning results are kept between runs of a program.
///
/// ```
/// use tilework::gpu::CacheDir;
///
/// // The program's own directory instead of `~/.cache/tilework` or its equivalent.
/// let cache = CacheDir::At("target/doc-cache".into());
/// assert_ne!(cache, CacheDir::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CacheDir {
    /// `tilework` in the user's cache directory. The environment variable `TILEWORK_CACHE` names another directory; if
    /// it is empty, nothing is kept.
    #[default]
    User,
    /// This directory, created if missing.
    At(PathBuf),
    /// Nowhere.
    Off,
}

impl CacheDir {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::At(path) => Some(path.clone()),
            Self::User => match std::env::var_os("TILEWORK_CACHE") {
                Some(path) if path.is_empty() => None,
                Some(path) => Some(path.into()),
                None => dirs::cache_dir().map(|dir| dir.join("tilework")),
            },
        }
    }
}

/// The compiled kernels of a device so far, on disk and in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CacheReport {
    /// The directory for this device, driver and version of tilework, if anything is kept.
    pub directory: Option<PathBuf>,
    /// Kernels loaded from disk.
    pub found: u64,
    /// Kernels compiled.
    pub compiled: u64,
    /// Seconds to load or compile kernels, summed over all threads.
    pub seconds: f64,
    /// Files written.
    pub written: u64,
    /// Files that failed their check.
    pub damaged: u64,
    /// Kernels in memory: those of plans, and those [kept](crate::GpuOptions::kept_pipelines) for plans to come.
    pub in_memory: u64,
    /// Kernels dropped from memory because nothing used them.
    pub dropped: u64,
    /// The first failure, such as a directory that cannot be created or a full disk. Work continues without the cache.
    pub trouble: Option<String>,
}

/// Maximum bytes of the files of all devices.
const MAX_BYTES: u64 = 512 << 20;
const MAGIC: &[u8; 8] = b"tilework";
/// Changes with the contents of files.
const FORMAT: u32 = 1;
/// A temporary file of another process that is older than this was left behind.
const ABANDONED: Duration = Duration::from_secs(600);
/// The lock file for updates that depend on the old contents.
const LOCK: &str = ".lock";
/// Milliseconds to wait for the lock.
const PATIENCE: u32 = 1000;

#[derive(Debug, Default)]
pub(crate) struct Store {
    root: Option<PathBuf>,
    /// The directory for this device, driver and version.
    home: PathBuf,
    max_bytes: u64,
    /// Bytes of all files, once counted.
    bytes: Mutex<Option<u64>>,
    found: AtomicU64,
    compiled: AtomicU64,
    nanoseconds: AtomicU64,
    written: AtomicU64,
    damaged: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Store {
    /// A store for a device with this short name. Devices share files only if `identity`, everything else that the
    /// files depend on, is the same. Reads and writes nothing yet.
    pub(crate) fn new(dir: &CacheDir, id: &str, identity: &[&str]) -> Self {
        let Some(root) = dir.path() else { return Self::default() };
        let version = format!("{} {FORMAT}", env!("CARGO_PKG_VERSION"));
        let identity = [id, &version].into_iter().chain(identity.iter().copied()).collect::<Vec<_>>().join("\n");
        let home = root.join(format!("{id}-{:016x}", xxh3_64(identity.as_bytes())));
        Self { root: Some(root), home, max_bytes: MAX_BYTES, ..Self::default() }
    }

    fn path(&self, kind: &str, key: &[u8]) -> PathBuf {
        self.home.join(format!("{kind}-{:032x}", xxh3_128(key)))
    }

    /// Returns the payload saved under `kind` and `key`.
    pub(crate) fn load(&self, kind: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.root.as_ref()?;
        let path = self.path(kind, key);
        let mut file = match regular(&path).and_then(|()| File::open(&path)) {
            Ok(file) => file,
            // Nothing is saved yet.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => {
                self.note("reading", &path, &e);
                return None;
            }
        };
        // The file may have been replaced by a huge one.
        let mut bytes = Vec::new();
        if let Err(e) = (&mut file).take(self.max_bytes).read_to_end(&mut bytes) {
            self.note("reading", &path, &e);
            return None;
        }
        let Some(payload) = unpack(&bytes, key) else {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            // The file is useless, and would block the next save.
            let _ = fs::remove_file(&path);
            return None;
        };
        // Recently used files are removed last.
        let _ = file.set_modified(SystemTime::now());
        bytes.truncate(payload.end);
        bytes.drain(..payload.start);
        Some(bytes)
    }

    /// Saves `payload` under `kind` and `key`. A failure is only recorded for the report.
    pub(crate) fn save(&self, kind: &str, key: &[u8], payload: &[u8]) {
        let Some(root) = &self.root else { return };
        let bytes = pack(key, payload);
        if bytes.len() as u64 > self.max_bytes / 8 {
            return;
        }
        let path = self.path(kind, key);
        match self.write(&path, &bytes) {
            Ok(()) => {
                self.written.fetch_add(1, Ordering::Relaxed);
                self.bound(root, bytes.len() as u64);
            }
            Err(e) => self.note("writing", &path, &e),
        }
    }

    /// Replaces the payload under `kind` and `key` by `change(payload)`. Concurrent updates by several processes all
    /// count.
    pub(crate) fn update(&self, kind: &str, key: &[u8], change: impl FnOnce(Option<Vec<u8>>) -> Vec<u8>) {
        if self.root.is_none() {
            return;
        }
        // Released when dropped, or when the process ends.
        let _lock = self.lock_file();
        let changed = change(self.load(kind, key));
        self.save(kind, key, &changed);
    }

    /// Locks the device's directory across processes. Returns `None` if the file system has no locks or another process
    /// holds the lock for long: an update lost then is only found again.
    fn lock_file(&self) -> Option<File> {
        fs::create_dir_all(&self.home).ok()?;
        let path = self.home.join(LOCK);
        replaceable(&path).ok()?;
        let file = File::options().create(true).append(true).open(path).ok()?;
        for _ in 0..PATIENCE {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
                Err(TryLockError::Error(_)) => return None,
            }
        }
        None
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.home)?;
        replaceable(path)?;
        let mut file = Aside::new(&self.home)?;
        file.write_all(bytes)?;
        file.put(path)
    }

    /// Counts a kernel that was loaded or compiled.
    pub(crate) fn count(&self, found: bool, took: Duration) {
        let counter = if found { &self.found } else { &self.compiled };
        counter.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Records the first failure.
    fn note(&self, doing: &str, path: &Path, error: &io::Error) {
        lock(&self.trouble).get_or_insert_with(|| format!("{doing} {}: {error}", crate::error::shown(path)));
    }

    /// Removes the least recently used files, of all devices, if there are too many bytes.
    fn bound(&self, root: &Path, added: u64) {
        let mut bytes = lock(&self.bytes);
        let known = match *bytes {
            Some(known) => known + added,
            None => files(root).iter().map(|file| file.bytes).sum(),
        };
        *bytes = Some(known);
        if known <= self.max_bytes {
            return;
        }
        let mut all = files(root);
        all.sort_by_key(|file| file.used);
        let mut left: u64 = all.iter().map(|file| file.bytes).sum();
        for file in all {
            if left <= self.max_bytes / 4 * 3 {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                left -= file.bytes;
            }
        }
        *bytes = Some(left);
    }

    /// Removes the files of this device.
    pub(crate) fn clear(&self) {
        if self.root.is_none() {
            return;
        }
        for file in own_files(&self.home, SystemTime::now()) {
            match fs::remove_file(&file.path) {
                // Another process has removed it.
                Err(e) if e.kind() != io::ErrorKind::NotFound => self.note("removing", &file.path, &e),
                _ => {}
            }
        }
        *lock(&self.bytes) = None;
    }

    pub(crate) fn report(&self) -> CacheReport {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheReport {
            directory: self.root.as_ref().map(|_| self.home.clone()),
            found: count(&self.found),
            compiled: count(&self.compiled),
            seconds: count(&self.nanoseconds) as f64 * 1e-9,
            written: count(&self.written),
            damaged: count(&self.damaged),
            trouble: lock(&self.trouble).clone(),
            ..CacheReport::default()
        }
    }
}

fn regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file; remove it"))
}

/// Checks that a path is a regular file or does not exist.
fn replaceable(path: &Path) -> io::Result<()> {
    match regular(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

struct Kept {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn files(root: &Path) -> Vec<Kept> {
    let now = SystemTime::now();
    let homes = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    homes.flat_map(|home| own_files(&home, now)).collect()
}

/// Lists our files in a device's directory. Other files are never counted or removed.
fn own_files(home: &Path, now: SystemTime) -> Vec<Kept> {
    let kept = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let name = entry.file_name().to_string_lossy().into_owned();
        let abandoned = now.duration_since(used).is_ok_and(|age| age > ABANDONED);
        let part = name.starts_with('.') && name.ends_with(".part");
        let digits = name.rsplit_once('-').map_or("", |(_, digits)| digits);
        let ours = digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit()) || part && abandoned;
        ours.then(|| Kept { path: entry.path(), bytes: meta.len(), used })
    };
    fs::read_dir(home).into_iter().flatten().flatten().filter_map(kept).collect()
}

/// Builds a file: magic, lengths of key and payload, key, payload, checksum.
fn pack(key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAGIC.len() + 24 + key.len() + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(payload);
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the range of the payload in a valid file with this key.
fn unpack(bytes: &[u8], key: &[u8]) -> Option<Range<usize>> {
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    let rest = body.strip_prefix(MAGIC)?;
    let (key_len, rest) = rest.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let payload = rest.strip_prefix(key)?;
    let lens = (u64::from_le_bytes(*key_len), u64::from_le_bytes(*len));
    let whole = lens == (key.len() as u64, payload.len() as u64) && u64::from_le_bytes(*sum) == xxh3_64(body);
    whole.then_some(body.len() - payload.len()..body.len())
}

#[cfg(test)]
mod tests;
