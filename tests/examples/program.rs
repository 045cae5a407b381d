//! Runs examples within the tests, and holds their files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// An example: its name and its `run`.
#[derive(Clone, Copy)]
pub(super) struct Example(pub(super) &'static str, pub(super) fn(lexopt::Parser, &mut dyn Write, &mut dyn Write) -> u8);

impl Example {
    /// Runs the example and returns exit code, output and errors. The adapter is that of TILEWORK_ADAPTER unless `args`
    /// name one.
    pub(super) fn run(self, args: &[&str]) -> (u8, String, String) {
        let adapter = std::env::var("TILEWORK_ADAPTER").unwrap_or_default();
        let named = args.contains(&"--adapter") || ["compare", "sanitize"].contains(&self.0);
        let adapter = if named { vec![] } else { vec!["--adapter", &adapter] };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = self.1(lexopt::Parser::from_iter([&[self.0], &adapter[..], args].concat()), &mut out, &mut err);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// As [`run`](Self::run); asserts success without errors, and returns the output.
    pub(super) fn succeeds(self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
        out
    }

    /// Asserts exit code 2 and one line of error that contains `text`. Returns the output.
    pub(super) fn rejects(self, args: &[&str], text: &str) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!((code, err.lines().count()), (2, 1), "{args:?}: {out}{err}");
        assert!(err.starts_with(self.0) && err.contains(text), "{args:?}: {err}");
        out
    }

    /// As [`rejects`](Self::rejects) for each case, before any output; `--help` prints the usage.
    pub(super) fn rejects_early(self, cases: &[(&[&str], &str)]) {
        for (args, text) in cases {
            assert_eq!(self.rejects(args, text), "", "{args:?}");
        }
        assert!(self.succeeds(&["--help"]).starts_with(&format!("usage: {}", self.0)));
    }
}

/// A path as an argument.
pub(super) fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder of files that is deleted when dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilework-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
