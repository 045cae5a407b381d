//! Small files in the user's cache directory: compiled kernels and what tuning found.
//!
//! Only regular files are opened, and only those are replaced: whoever opens a pipe waits for its other end.
//!
//! What is kept is only ever a shortcut: whatever is wrong with a file or a directory, the work is done again. A file
//! holds its whole key and a checksum, so one that is truncated, flipped, renamed or of somebody else is not read. It
//! is written under another name and then renamed, so that nobody sees half of it, also where processes write at
//! once.

use crate::io::Aside;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Where compiled pipelines and the results of tuning are kept from one run of a program to the next.
///
/// ```
/// use tilework::gpu::CacheDir;
///
/// // A directory of the program's own instead of `~/.cache/tilework` or what the system has in its place.
/// let cache = CacheDir::At("target/doc-cache".into());
/// assert_ne!(cache, CacheDir::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CacheDir {
    /// `tilework` in the user's cache directory, or what the environment variable `TILEWORK_CACHE` names instead; if
    /// that is empty, nowhere.
    #[default]
    User,
    /// This directory. It is made if it is not there.
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

/// What a device has found and kept on disk so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CacheReport {
    /// The directory of this device, driver and version of tilework, if anything is kept.
    pub directory: Option<PathBuf>,
    /// Kernels built whose compiled form was on disk.
    pub found: u64,
    /// Kernels that had to be compiled.
    pub compiled: u64,
    /// Seconds that making kernels ready took, found or compiled, all threads taken together.
    pub seconds: f64,
    /// Files written.
    pub written: u64,
    /// Files that were there and were not what they claim to be.
    pub damaged: u64,
    /// The first thing that went wrong: a directory that cannot be made, a full disk. Work goes on without.
    pub trouble: Option<String>,
}

/// Bytes that all devices' files may take together.
const MAX_BYTES: u64 = 512 << 20;
const MAGIC: &[u8; 8] = b"tilework";
/// Changes with what is in a file.
const FORMAT: u32 = 1;
/// A file of another process that is older than this was left behind.
const ABANDONED: Duration = Duration::from_secs(600);
/// Who changes a file by what is in it holds this one.
const LOCK: &str = ".lock";
/// Milliseconds that it is waited for.
const PATIENCE: u32 = 1000;

/// The files of one device.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// What all devices have in common.
    root: Option<PathBuf>,
    /// What this one has, with this driver and version.
    home: PathBuf,
    most_bytes: u64,
    /// Bytes of all files, once they have been counted.
    bytes: Mutex<Option<u64>>,
    found: AtomicU64,
    compiled: AtomicU64,
    nanoseconds: AtomicU64,
    written: AtomicU64,
    damaged: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Store {
    /// The store of a device with this short name, which shares files with another of its name only where `identity`,
    /// all else that they depend on, is the same too. Nothing is read or written yet.
    pub(crate) fn new(dir: &CacheDir, id: &str, identity: &[&str]) -> Self {
        let Some(root) = dir.path() else { return Self::default() };
        let version = format!("{} {FORMAT}", env!("CARGO_PKG_VERSION"));
        let identity =
            [id, &version].into_iter().chain(identity.iter().copied()).collect::<Vec<_>>().join("\n");
        let home = root.join(format!("{id}-{:016x}", xxh3_64(identity.as_bytes())));
        Self { root: Some(root), home, most_bytes: MAX_BYTES, ..Self::default() }
    }

    fn path(&self, kind: &str, key: &[u8]) -> PathBuf {
        self.home.join(format!("{kind}-{:032x}", xxh3_128(key)))
    }

    /// What was saved under `kind` and `key`.
    pub(crate) fn load(&self, kind: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.root.as_ref()?;
        let path = self.path(kind, key);
        let mut file = match regular(&path).and_then(|()| File::open(&path)) {
            Ok(file) => file,
            // Nothing was kept yet.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => {
                self.note("reading", &path, &e);
                return None;
            }
        };
        // A file that somebody swapped for a huge one is not read whole.
        let mut bytes = Vec::new();
        if let Err(e) = (&mut file).take(self.most_bytes).read_to_end(&mut bytes) {
            self.note("reading", &path, &e);
            return None;
        }
        let Some(payload) = unpack(&bytes, key) else {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            // It would be in the way of the next, and is in any case of no use.
            let _ = fs::remove_file(&path);
            return None;
        };
        // The files used last stay longest.
        let _ = file.set_modified(SystemTime::now());
        bytes.truncate(payload.end);
        bytes.drain(..payload.start);
        Some(bytes)
    }

    /// Keeps `payload` under `kind` and `key`. What goes wrong is remembered for the report, and nothing else.
    pub(crate) fn save(&self, kind: &str, key: &[u8], payload: &[u8]) {
        let Some(root) = &self.root else { return };
        let bytes = pack(key, payload);
        if bytes.len() as u64 > self.most_bytes / 8 {
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

    /// Keeps what `change` makes of what is kept under `kind` and `key`, so that processes that do it at once lose
    /// nothing of one another's.
    pub(crate) fn update(&self, kind: &str, key: &[u8], change: impl FnOnce(Option<Vec<u8>>) -> Vec<u8>) {
        if self.root.is_none() {
            return;
        }
        // Let go when it is dropped, or its process ends.
        let _lock = self.lock_file();
        let changed = change(self.load(kind, key));
        self.save(kind, key, &changed);
    }

    /// A lock that processes share; none where a file system has none, or somebody keeps it for long: what is lost then
    /// is found again.
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

    /// Counts a kernel that was made ready.
    pub(crate) fn count(&self, found: bool, took: Duration) {
        let counter = if found { &self.found } else { &self.compiled };
        counter.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Remembers the first trouble.
    fn note(&self, doing: &str, path: &Path, error: &io::Error) {
        lock(&self.trouble).get_or_insert_with(|| format!("{doing} {}: {error}", crate::error::shown(path)));
    }

    /// Drops the files used longest ago, of all devices, when there are too many bytes.
    fn bound(&self, root: &Path, added: u64) {
        let mut bytes = lock(&self.bytes);
        let known = match *bytes {
            Some(known) => known + added,
            None => files(root).iter().map(|file| file.bytes).sum(),
        };
        *bytes = Some(known);
        if known <= self.most_bytes {
            return;
        }
        let mut all = files(root);
        all.sort_by_key(|file| file.used);
        let mut left: u64 = all.iter().map(|file| file.bytes).sum();
        for file in all {
            if left <= self.most_bytes / 4 * 3 {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                left -= file.bytes;
            }
        }
        *bytes = Some(left);
    }

    /// Removes what is kept for this device.
    pub(crate) fn clear(&self) {
        if self.root.is_none() {
            return;
        }
        for file in own_files(&self.home, SystemTime::now()) {
            match fs::remove_file(&file.path) {
                // Another process was faster.
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
        }
    }
}

/// That a path is one of a regular file.
fn regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file; remove it"))
}

/// That a path is one of a regular file, or of nothing.
fn replaceable(path: &Path) -> io::Result<()> {
    match regular(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A file of ours.
struct Kept {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The files of all devices.
fn files(root: &Path) -> Vec<Kept> {
    let now = SystemTime::now();
    let homes = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    homes.flat_map(|home| own_files(&home, now)).collect()
}

/// Files of ours in a device's directory: whatever else lies there is not ours to count or remove.
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

/// A file: magic, lengths of key and payload, key, payload, checksum of all of it.
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

/// Where the payload lies in a whole file with this key.
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

/// Locks, also after a thread panicked while holding the lock: the numbers behind it are whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]
mod tests {
    use super::*;

    fn store(name: &str) -> (Store, PathBuf) {
        let root = std::env::temp_dir().join(format!("tilework-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        (Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]), root)
    }

    #[test]
    fn what_is_saved_is_loaded_and_nothing_else() {
        let (store, root) = store("saved");
        assert_eq!(store.load("a", b"key"), None);
        store.save("a", b"key", b"payload");
        store.save("a", b"other", b"");
        assert_eq!(store.load("a", b"key").as_deref(), Some(&b"payload"[..]));
        assert_eq!(store.load("a", b"other").as_deref(), Some(&b""[..]));
        assert_eq!(store.load("b", b"key"), None);
        let foreign = Store::new(&CacheDir::At(root.clone()), "mesa", &["25"]);
        assert_eq!(foreign.load("a", b"key"), None);
        store.clear();
        assert_eq!(store.load("a", b"key"), None);
        assert_eq!((store.report().trouble, store.report().damaged), (None, 0));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn every_truncated_or_flipped_file_is_ignored() {
        let whole = pack(b"key", b"payload");
        assert_eq!(unpack(&whole, b"key").map(|place| &whole[place]), Some(&b"payload"[..]));
        assert_eq!(unpack(&whole, b"kez"), None);
        for n in 0..whole.len() {
            assert_eq!(unpack(&whole[..n], b"key"), None, "{n} bytes");
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[n] ^= 1 << bit;
                assert_eq!(unpack(&flipped, b"key"), None, "bit {bit} of byte {n}");
            }
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert_eq!(unpack(&longer, b"key"), None);
    }

    #[test]
    fn a_damaged_file_is_counted_and_replaced() {
        let (store, root) = store("damaged");
        store.save("a", b"key", b"payload");
        fs::write(store.path("a", b"key"), b"tilework and then something else").unwrap();
        assert_eq!((store.load("a", b"key"), store.report().damaged), (None, 1));
        store.save("a", b"key", b"again");
        assert_eq!(store.load("a", b"key").as_deref(), Some(&b"again"[..]));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn bytes_are_bounded_and_foreign_files_stay() {
        let (mut store, root) = store("bounded");
        store.most_bytes = 10_000;
        fs::create_dir_all(&store.home).unwrap();
        let foreign = store.home.join("notes.txt");
        fs::write(&foreign, [0; 50_000]).unwrap();
        for i in 0..100u32 {
            store.save("a", &i.to_le_bytes(), &[7; 500]);
        }
        let bytes: u64 = files(&root).iter().map(|f| f.bytes).sum();
        assert!(bytes <= 10_000 && bytes > 5_000, "{bytes} bytes");
        // The last one written is there, the first is gone; the foreign file is not ours.
        assert!(
            store.load("a", &99u32.to_le_bytes()).is_some() && store.load("a", &0u32.to_le_bytes()).is_none()
        );
        assert!(foreign.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_directory_that_is_a_file_is_trouble_that_is_told() {
        let (_, root) = store("file");
        fs::write(&root, b"").unwrap();
        let store = Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]);
        store.save("a", b"key", b"payload");
        assert_eq!(store.load("a", b"key"), None);
        let trouble = store.report().trouble.unwrap();
        assert!(trouble.contains(&*root.to_string_lossy()), "{trouble}");
        fs::remove_file(root).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_directory_that_cannot_be_made_is_trouble_that_is_told() {
        let store = Store::new(&CacheDir::At("/proc/tilework".into()), "mesa", &["22.3"]);
        assert_eq!((store.load("a", b"key"), store.report().trouble), (None, None));
        store.save("a", b"key", b"payload");
        let trouble = store.report().trouble.unwrap();
        assert!(trouble.starts_with("writing /proc/tilework/mesa-"), "{trouble}");
        assert_eq!(store.report().written, 0);
    }

    /// Runs the ignored test in a process that cannot write a byte to a file.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_trouble_that_is_told() {
        let limited =
            "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact --ignored store::disk::tests::a_full_disk_here";
        let me = std::env::current_exe().unwrap();
        let output = std::process::Command::new("sh").args(["-c", limited]).arg(me).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "run by the test before it"]
    fn a_full_disk_here() {
        let (store, root) = store("full");
        store.save("a", b"key", b"payload");
        assert_eq!(store.load("a", b"key"), None);
        assert!(store.report().trouble.is_some_and(|text| text.contains("too large")));
        assert_eq!(fs::read_dir(&store.home).unwrap().count(), 0, "half a file is left");
        fs::remove_dir_all(root).unwrap();
    }

    /// Pipes that nobody writes to or reads from, where files are looked for.
    #[test]
    #[cfg(unix)]
    fn pipes_and_folders_in_place_of_files_are_trouble_that_is_told() {
        let (finished, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for pipe in [true, false] {
                let (store, root) = store(if pipe { "pipes" } else { "folders" });
                fs::create_dir_all(&store.home).unwrap();
                let paths = [store.path("a", b"key"), store.home.join(LOCK)];
                for path in &paths {
                    if pipe {
                        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
                        assert!(made.success());
                    } else {
                        fs::create_dir(path).unwrap();
                    }
                }
                assert_eq!(store.load("a", b"key"), None);
                let trouble = store.report().trouble.unwrap();
                assert!(
                    trouble.contains("not a regular file") && trouble.starts_with("reading"),
                    "{trouble}"
                );
                store.save("a", b"key", b"payload");
                store.update("a", b"other", |old| old.unwrap_or(b"new".to_vec()));
                assert_eq!(
                    store.load("a", b"other").as_deref(),
                    Some(&b"new"[..]),
                    "the lock is done without"
                );
                assert!(paths.iter().all(|path| !fs::metadata(path).unwrap().is_file()), "not replaced");
                assert_eq!(store.report().written, 1);
                store.clear();
                assert!(paths.iter().all(|path| path.exists()), "not removed");
                fs::remove_dir_all(root).unwrap();
            }
            finished.send(()).unwrap();
        });
        wait.recv_timeout(Duration::from_secs(60)).expect("a pipe is waited for, or the test failed");
    }

    #[test]
    fn writers_at_once_leave_whole_files() {
        let (store, root) = store("writers");
        std::thread::scope(|scope| {
            for t in 0..4u8 {
                let store = &store;
                scope.spawn(move || {
                    for _ in 0..200 {
                        store.save("a", b"key", &[t; 4096]);
                        let seen = store.load("a", b"key").unwrap();
                        assert!(seen.len() == 4096 && seen.iter().all(|b| *b == seen[0]));
                    }
                });
            }
        });
        assert_eq!(store.report().damaged, 0);
        assert_eq!(files(&root).len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn changes_at_once_are_all_kept() {
        let (store, root) = store("changes");
        // A store each, as processes have.
        let other = || Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]);
        std::thread::scope(|scope| {
            for t in 0..4u8 {
                let store = other();
                scope.spawn(move || {
                    for _ in 0..25 {
                        store.update("a", b"key", |old| {
                            let mut all = old.unwrap_or_default();
                            all.push(t);
                            all
                        });
                    }
                });
            }
        });
        let mut all = store.load("a", b"key").unwrap();
        all.sort_unstable();
        assert_eq!(all, [[0; 25], [1; 25], [2; 25], [3; 25]].concat());
        // Somebody who never lets go stops nobody.
        let held = store.lock_file().unwrap();
        other().update("a", b"key", |old| vec![old.unwrap().len() as u8]);
        assert_eq!(store.load("a", b"key").as_deref(), Some(&[100][..]));
        drop(held);
        assert_eq!(files(&root).len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_wanted() {
        let store = Store::new(&CacheDir::Off, "mesa", &[]);
        store.save("a", b"key", b"payload");
        assert_eq!((store.load("a", b"key"), store.report()), (None, CacheReport::default()));
    }
}
