//! The bytes that the tour works on.

use crate::cases::Room;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tilework::io::shown;
use tilework::program::{DeviceClass, DeviceProfile};
use tilework::shader;

/// Maximum bytes read: enough for a card, and more than its cache holds.
const MOST: usize = 256 << 20;

/// Bytes and their origin.
pub(crate) struct Source {
    bytes: Vec<u8>,
    from: String,
}

impl Source {
    /// Reads `files`, or this crate's own sources if there are none.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, Box<dyn Error>> {
        if files.is_empty() {
            return Ok(Self { bytes: own_sources(), from: "its own sources".to_owned() });
        }
        let mut bytes = Vec::new();
        for path in files {
            let before = bytes.len();
            let name = shown(path);
            // A pipe or a device may never end.
            File::open(path)
                .and_then(|file| file.take((MOST - before) as u64).read_to_end(&mut bytes))
                .map_err(|e| format!("{name}: {e}"))?;
            if bytes.len() == before && before < MOST {
                return Err(format!("{name}: is empty; there are no bytes to work on").into());
            }
        }
        let from = match files {
            [one] => shown(one),
            _ => format!("{} files", files.len()),
        };
        Ok(Self { bytes, from })
    }

    pub(crate) fn describe(&self) -> String {
        let first = if self.bytes.len() == MOST { "the first " } else { "" };
        let plural = if self.bytes.len() == 1 { "" } else { "s" };
        format!("{first}{} byte{plural} of {}", self.bytes.len(), self.from)
    }
}

/// Returns this crate's source files, or the embedded shaders if they are gone.
fn own_sources() -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["src", "shaders"] {
        // Skips unreadable folders.
        let _ = collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    let bytes: Vec<u8> = paths.iter().flat_map(|path| fs::read(path).unwrap_or_default()).collect();
    if bytes.is_empty() {
        return shader::names().filter_map(shader::source).flat_map(str::bytes).collect();
    }
    bytes
}

/// Lists every file below `folder`.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
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

/// A source's bytes, in an amount that suits an adapter.
pub(crate) struct Material {
    pub(crate) bytes: Vec<u8>,
    /// A number in [-1, 1] per byte of the first quarter, so that both take the same memory.
    pub(crate) floats: Vec<f32>,
    /// Limits on the size of timed cases.
    pub(crate) room: Room,
    repeated: bool,
}

impl Material {
    /// Takes more than the caches hold on a card, and less on a processor or with `small`, so that all ops take
    /// seconds. Short sources are repeated, long ones cut.
    pub(crate) fn new(source: &Source, profile: &DeviceProfile, small: bool) -> Self {
        let class = if small { DeviceClass::Cpu } else { profile.class };
        let (amount, flop) = match class {
            DeviceClass::Discrete => (MOST, 1.5e11),
            DeviceClass::Cpu => (4 << 20, 5e7),
            DeviceClass::Integrated | DeviceClass::Virtual | DeviceClass::Unknown => (64 << 20, 4e9),
        };
        let length = amount.min(usize::try_from(profile.limits.max_buffer_size).unwrap_or(amount));
        let bytes: Vec<u8> = source.bytes.iter().copied().cycle().take(length).collect();
        let room = Room { bytes: 2 * length as u64, flop };
        Self { repeated: length > source.bytes.len(), room, ..Self::of(&bytes) }
    }

    /// Takes these bytes, and times nothing.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        // Few quotients are exact, so that sums and products round.
        let floats = bytes[..bytes.len().div_ceil(4)].iter().map(|&b| (f32::from(b) - 127.5) / 127.5);
        let room = Room { bytes: 0, flop: 0.0 };
        Self { floats: floats.collect(), bytes: bytes.to_vec(), room, repeated: false }
    }

    /// The first `n` numbers and bytes in increasing order.
    pub(crate) fn sorted(&self, n: usize) -> (Vec<f32>, Vec<u8>) {
        let mut floats: Vec<f32> = self.floats.iter().copied().cycle().take(n).collect();
        let mut bytes: Vec<u8> = self.bytes.iter().copied().cycle().take(n).collect();
        floats.sort_unstable_by(f32::total_cmp);
        bytes.sort_unstable();
        (floats, bytes)
    }

    pub(crate) fn describe(&self) -> String {
        let mib = self.bytes.len() >> 20;
        if self.repeated { format!("input repeated to {mib} MiB") } else { format!("{mib} MiB of the input") }
    }
}
