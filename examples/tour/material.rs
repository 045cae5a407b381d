//! The bytes that the tour works on.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tilework::program::{DeviceClass, DeviceProfile};
use tilework::shader;

/// Bytes, and where they come from.
pub(crate) struct Source {
    bytes: Vec<u8>,
    from: String,
}

impl Source {
    /// The bytes of `files`, or, if there are none, of this crate's own sources.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, Box<dyn Error>> {
        let mut bytes = Vec::new();
        let from;
        if files.is_empty() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut paths = Vec::new();
            for folder in ["src", "shaders"] {
                // Where the sources have gone, those in the program will do.
                let _ = collect(&root.join(folder), &mut paths);
            }
            paths.sort();
            for path in &paths {
                bytes.extend(fs::read(path).unwrap_or_default());
            }
            if bytes.is_empty() {
                bytes.extend(shader::names().filter_map(shader::source).flat_map(str::bytes));
            }
            from = "its own sources".to_owned();
        } else {
            for path in files {
                bytes.extend(fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?);
            }
            from = match files {
                [one] => one.display().to_string(),
                _ => format!("{} files", files.len()),
            };
        }
        if bytes.is_empty() {
            return Err(format!("{from}: no bytes to work on").into());
        }
        Ok(Self { bytes, from })
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} bytes of {}", self.bytes.len(), self.from)
    }
}

/// Every file below `folder`.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The bytes of a source in the amount that suits an adapter.
pub(crate) struct Material {
    pub(crate) bytes: Vec<u8>,
    /// A quarter as many numbers: each byte as a multiple of 1/128 in [-1, 1).
    pub(crate) floats: Vec<f32>,
    /// Rows and columns of square matrices.
    pub(crate) side: usize,
    repeated: bool,
}

impl Material {
    /// More than the caches hold, and work for some milliseconds; on a processor, little enough that all ops
    /// take seconds. Shorter sources are repeated, longer ones taken up to 4 times that amount.
    pub(crate) fn new(source: &Source, profile: &DeviceProfile) -> Self {
        let (amount, side) = match profile.class {
            DeviceClass::Discrete => (256 << 20, 4096),
            DeviceClass::Cpu => (16 << 20, 512),
            DeviceClass::Integrated | DeviceClass::Virtual | DeviceClass::Unknown => (64 << 20, 1024),
        };
        let most = usize::try_from(profile.limits.max_buffer_size).unwrap_or(usize::MAX);
        let length = source.bytes.len().clamp(amount, 4 * amount).min(most);
        let bytes: Vec<u8> = source.bytes.iter().copied().cycle().take(length).collect();
        let floats = bytes[..length / 4].iter().map(|&b| (f32::from(b) - 128.0) / 128.0).collect();
        Self { repeated: length > source.bytes.len(), bytes, floats, side }
    }

    pub(crate) fn describe(&self) -> String {
        let how = if self.repeated { "repeated to" } else { "taken:" };
        format!("input {how} {} MiB, as u8, and as f32 in [-1, 1)", self.bytes.len() >> 20)
    }
}
