//! Files that stay invisible until they are put in place.

#[cfg(any(test, target_os = "linux"))]
use std::fs;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file in a folder that is invisible until it is [`put`](Self::put) in place. If dropped before, it is removed.
#[derive(Debug)]
pub(crate) struct Aside {
    folder: PathBuf,
    held: AsideFile,
}

#[derive(Debug)]
enum AsideFile {
    /// A file without a name, which disappears with the process.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(NamedTempFile),
}

/// Temporary files get random hidden names, so that threads and processes do not collide.
fn beside() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

impl Aside {
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(folder)? {
            return Ok(Self { folder: folder.to_owned(), held: AsideFile::Unnamed(file) });
        }
        Ok(Self { folder: folder.to_owned(), held: AsideFile::Named(beside().tempfile_in(folder)?) })
    }

    pub(crate) fn file(&self) -> &File {
        match &self.held {
            #[cfg(target_os = "linux")]
            AsideFile::Unnamed(file) => file,
            AsideFile::Named(file) => file.as_file(),
        }
    }

    /// Moves the file to `target`, in the same folder, atomically.
    pub(crate) fn put(self, target: &Path) -> io::Result<()> {
        match self.held {
            #[cfg(target_os = "linux")]
            AsideFile::Unnamed(file) => {
                // A link cannot replace a file; a rename can.
                let named = beside().make_in(&self.folder, |name| name_file(&file, name))?;
                named.persist(target)?;
            }
            AsideFile::Named(file) => {
                file.persist(target)?;
            }
        }
        Ok(())
    }
}

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Creates a file without a name, if the file system supports it and can name it later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => {
            let file = File::from(file);
            Ok(fs::exists(opened(&file)).is_ok_and(|there| there).then_some(file))
        }
        // A named file would fail too.
        Err(e @ (Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOSPC | Errno::DQUOT)) => Err(e.into()),
        Err(_) => Ok(None),
    }
}

/// Returns the path under which Linux lists an open file.
#[cfg(target_os = "linux")]
fn opened(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}

#[cfg(target_os = "linux")]
fn name_file(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    Ok(rustix::fs::linkat(CWD, opened(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests;
