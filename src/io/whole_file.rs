//! Files that appear only when complete.

use super::aside::Aside;
use crate::error::{Error, Result, err};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Maximum links to follow to a new file, as in Linux.
const MAX_LINKS: usize = 40;

/// A file that appears at its path only when [`finish`](Self::finish) completes it. If dropped before, it leaves
/// nothing, and an existing file stays.
///
/// Links are followed, even to a file that does not exist yet: the link stays and its target is written. A new file
/// inherits the owner and permissions of the one it replaces. Pipes and devices are not replaced but written to.
///
/// On Linux the file has no name until it is complete, so a killed process leaves nothing behind. On other systems, and
/// on file systems without unnamed files, it has a hidden name `.*.part` meanwhile, which a killed process leaves
/// behind.
///
/// ```
/// use std::io::Write;
/// use tilework::io::WholeFile;
///
/// let path = std::env::temp_dir().join(format!("tilework-whole-{}", std::process::id()));
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"all").unwrap();
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    to: WriteTo,
}

/// Where bytes go.
#[derive(Debug)]
enum WriteTo {
    /// A new file, to replace `old` at `target`.
    Aside { aside: BufWriter<Aside>, target: PathBuf, old: Option<Box<Metadata>> },
    /// A pipe or device.
    Stream(BufWriter<File>),
}

impl WholeFile {
    /// Starts a file. A named pipe blocks here until it has a reader.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if `path` cannot be written; the text says why.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let to = Destination::find(path).and_then(Destination::open).map_err(|e| failed(path, &e))?;
        Ok(Self { path: path.to_owned(), to })
    }

    /// Flushes the file to disk and puts it in place.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io), for example if the disk is full; an existing file stays.
    pub fn finish(self) -> Result<()> {
        Self::finish_all([self])
    }

    /// Flushes several files to disk, then puts them in place. If one cannot be flushed, none appears. Fails like
    /// [`finish`](Self::finish).
    pub fn finish_all(files: impl IntoIterator<Item = Self>) -> Result<()> {
        let mut files: Vec<_> = files.into_iter().collect();
        for Self { path, to } in &mut files {
            to.complete().map_err(|e| failed(path, &e))?;
        }
        for Self { path, to } in files {
            if let WriteTo::Aside { aside, target, .. } = to {
                // `complete` has emptied the buffer.
                aside.into_parts().0.put(&target).map_err(|e| failed(&path, &e))?;
            }
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            WriteTo::Aside { aside, .. } => aside.write(bytes),
            WriteTo::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            WriteTo::Aside { aside, .. } => aside.flush(),
            WriteTo::Stream(stream) => stream.flush(),
        }
    }
}

impl WriteTo {
    /// Flushes all bytes, and passes owner and permissions on.
    fn complete(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::Aside { aside, old, .. } => {
                aside.flush()?;
                let file = aside.get_ref().file();
                if let Some(old) = old {
                    inherit(file, old)?;
                }
                file.sync_all()
            }
        }
    }
}

/// Writes a file by [`WholeFile`]: it appears when `write` returns. If `write` or the disk fails, nothing is left, and
/// an existing file stays.
///
/// # Errors
/// As `write` and [`WholeFile`]; the text names the file. An [`Error`] inside [`io::Error::other`] keeps its kind,
/// others are [`Io`](crate::ErrorKind::Io).
///
/// ```
/// use std::io::Write;
///
/// let path = std::env::temp_dir().join(format!("tilework-aside-{}", std::process::id()));
/// tilework::io::write_aside(&path, |file| file.write_all(b"all"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn write_aside(path: impl AsRef<Path>, write: impl FnOnce(&mut WholeFile) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    let mut file = WholeFile::create(path)?;
    write(&mut file).map_err(|e| {
        let error = e.downcast::<Error>().unwrap_or_else(|e| err!(Io, "cannot be written: {e}"));
        error.context(&path.display().to_string())
    })?;
    file.finish()
}

/// Checks that each of `paths` can be written and that no two name the same file. Writes nothing; call it before long
/// work.
///
/// # Errors
/// [`Io`](crate::ErrorKind::Io) if a path cannot be written; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if
/// two are the same file.
///
/// ```
/// let folder = std::env::temp_dir();
/// tilework::io::check_outputs([folder.join("a.npy"), folder.join("b.npy")])?;
/// let same = tilework::io::check_outputs([folder.join("a.npy"), folder.join(".").join("a.npy")]);
/// assert_eq!(same.unwrap_err().kind(), tilework::ErrorKind::InvalidArgument);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn check_outputs<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<()> {
    let mut targets: Vec<(PathBuf, P)> = Vec::new();
    for path in paths {
        let name = path.as_ref();
        let place = Destination::find(name).map_err(|e| failed(name, &e))?;
        let Destination::File { target, .. } = &place else { continue };
        if let Some((_, first)) = targets.iter().find(|(other, _)| other == target) {
            let first = first.as_ref().display();
            return Err(err!(
                InvalidArgument,
                "{first} and {} are the same file; use a different file for each output",
                name.display()
            ));
        }
        let target = target.clone();
        place.open().map_err(|e| failed(name, &e))?;
        targets.push((target, path));
    }
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> Error {
    err!(Io, "{}: cannot be written: {error}", path.display())
}

/// What a path names.
enum Destination {
    /// A regular file, or none yet. `target` contains no links.
    File { target: PathBuf, old: Option<Box<Metadata>> },
    /// The standard output or standard error of this process.
    Standard(File),
    /// A pipe or device.
    Stream(PathBuf),
}

impl Destination {
    fn find(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::Error::other("it is a directory; name a file in it")),
            Ok(there) if there.is_file() => Ok(match (standard(&there), fs::canonicalize(path)) {
                (Some(file), _) => Self::Standard(file),
                // Another process has just removed it.
                (None, Err(e)) if e.kind() == io::ErrorKind::NotFound => {
                    Self::File { target: new_target(path)?, old: None }
                }
                (None, target) => Self::File { target: target?, old: Some(Box::new(there)) },
            }),
            Ok(there) if is_socket(&there) => Err(io::Error::other("it is a socket; name a file")),
            Ok(_) => Ok(Self::Stream(path.to_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::File { target: new_target(path)?, old: None }),
            Err(e) => Err(e),
        }
    }

    fn open(self) -> io::Result<WriteTo> {
        match self {
            Self::Standard(file) => Ok(WriteTo::Stream(BufWriter::new(file))),
            Self::Stream(path) => Ok(WriteTo::Stream(BufWriter::new(File::options().write(true).open(path)?))),
            Self::File { target, old } => {
                // A read-only file is not replaced. The file may be gone by now.
                let there = old.map(|old| File::options().write(true).open(&target).map(|_| old));
                let old = match there.transpose() {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                    old => old?,
                };
                let aside = Aside::new(target.parent().unwrap_or(Path::new(".")))?;
                Ok(WriteTo::Aside { aside: BufWriter::with_capacity(1 << 20, aside), target, old })
            }
        }
    }
}

/// Resolves `path`, which does not exist: the end of its links, in a canonical folder.
fn new_target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if let Ok(next) = fs::read_link(&target) {
            target = folder.join(next);
            continue;
        }
        let Some(name) = target.file_name() else {
            return Err(io::Error::other("it is not a file name"));
        };
        return match fs::canonicalize(folder) {
            Ok(folder) => Ok(folder.join(name)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(io::Error::other(format!("there is no folder {}; create it first", folder.display())))
            }
            Err(e) => Err(e),
        };
    }
    Err(io::Error::other("it goes through too many links"))
}

#[cfg(unix)]
fn is_socket(there: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&there.file_type())
}

#[cfg(not(unix))]
fn is_socket(_: &Metadata) -> bool {
    false
}

/// Returns standard output or standard error if the file is one of them: replacing it would lose output.
#[cfg(unix)]
fn standard(there: &Metadata) -> Option<File> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let same = |file: &File| file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (there.dev(), there.ino()));
    streams.into_iter().flatten().map(File::from).find(same)
}

#[cfg(not(unix))]
fn standard(_: &Metadata) -> Option<File> {
    None
}

/// Copies the permissions and, if allowed, the owner of the replaced file.
fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(permissions(old))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Only root may change the owner; others may change the group to one of theirs.
        let _ = fchown(file, None, Some(old.gid()));
        let _ = fchown(file, Some(old.uid()), None);
    }
    Ok(())
}

/// Returns the permissions without set-user-id and set-group-id, which a write clears too.
#[cfg(unix)]
fn permissions(old: &Metadata) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(old.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn permissions(old: &Metadata) -> fs::Permissions {
    old.permissions()
}

#[cfg(test)]
mod tests;
