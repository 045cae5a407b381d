//! The header of a NumPy file.

use npyz::NpyHeader;
use std::io::{self, Read};

/// Most bytes of a header; NumPy's own have some hundred.
const MAX_HEADER: usize = 1 << 16;
/// Most brackets within each other in a header; a plain array has two. The parser's time doubles with each.
const MAX_NESTING: usize = 6;

/// The header, after a look at it: the parser recurses, and must not be led too deep.
pub(crate) fn read_header(reader: &mut impl Read) -> io::Result<NpyHeader> {
    let bad = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    let ended = |text: &'static str| {
        move |e: io::Error| if e.kind() == io::ErrorKind::UnexpectedEof { bad(text) } else { e }
    };
    let mut bytes = vec![0; 10];
    reader.read_exact(&mut bytes).map_err(ended("not a NumPy file: too short"))?;
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(bad("not a NumPy file (.npy)"));
    }
    let mut length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    if bytes[6] > 1 {
        let mut high = [0; 2];
        reader.read_exact(&mut high).map_err(ended("the header is cut off"))?;
        length |= usize::from(u16::from_le_bytes(high)) << 16;
        bytes.extend(high);
    }
    if length > MAX_HEADER {
        return Err(bad("the header is too long"));
    }
    let start = bytes.len();
    bytes.resize(start + length, 0);
    reader.read_exact(&mut bytes[start..]).map_err(ended("the header is cut off"))?;
    let mut depth = 0usize;
    for byte in &bytes[start..] {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(bad("the header is nested too deeply"));
        }
    }
    // The parser multiplies extents without looking.
    let numbers = bytes[start..].split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
    let extent = |number: &[u8]| std::str::from_utf8(number).ok()?.parse::<u64>().ok();
    if numbers.map(extent).try_fold(1u64, |n, extent| n.checked_mul(extent?.max(1))).is_none() {
        return Err(bad("the shape has more elements than this machine can count"));
    }
    NpyHeader::from_reader(bytes.as_slice()).map_err(|_| bad("the header is not one that NumPy writes"))
}
