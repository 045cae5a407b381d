//! Reads and writes NumPy files.

use super::{Failure, refuse};
use npyz::{DType, Deserialize, Endianness, NpyFile, NpyHeader, Order, TypeChar, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tilework::io::WholeFile;
use tilework::{HostArray, HostData};

/// Maximum bytes of a header. NumPy writes a few hundred.
const MAX_HEADER: usize = 1 << 16;
/// Maximum nesting of brackets in a header. An array has two levels; the parser's time doubles with each.
const MAX_NESTING: usize = 6;

/// Splits an unquoted part of a header into names and numbers.
fn words(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    part.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').filter(|word| !word.is_empty())
}

/// Returns whether a word is no number or a decimal one. Python 2 appended an L.
fn is_word_of_numpy(word: &[u8]) -> bool {
    let digits = word.strip_suffix(b"L").unwrap_or(word);
    let plain = digits.iter().all(u8::is_ascii_digit) && (digits == b"0" || !digits.starts_with(b"0"));
    !word[0].is_ascii_digit() || plain
}

/// Reads the header. Checks it first, since the parser recurses without limit.
pub(crate) fn read_header(reader: &mut impl Read) -> io::Result<NpyHeader> {
    let bad = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    let ended =
        |text: &'static str| move |e: io::Error| if e.kind() == io::ErrorKind::UnexpectedEof { bad(text) } else { e };
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
    // The parser also accepts Python's other notations for numbers, which NumPy never writes.
    if !bytes[start..].split(|byte| b"'\"".contains(byte)).step_by(2).flat_map(words).all(is_word_of_numpy) {
        return Err(bad("the header is not one that NumPy writes: a number is not decimal"));
    }
    // The parser multiplies extents unchecked.
    let numbers = bytes[start..].split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
    let extent = |number: &[u8]| std::str::from_utf8(number).ok()?.parse::<u64>().ok();
    if numbers.map(extent).try_fold(1u64, |n, extent| n.checked_mul(extent?.max(1))).is_none() {
        return Err(bad("the shape has more elements than this machine can count"));
    }
    NpyHeader::from_reader(bytes.as_slice()).map_err(|_| bad("the header is not one that NumPy writes"))
}

/// Reads an array of an element type that ops take.
pub(crate) fn read(path: &Path) -> Result<HostArray, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|e| refuse!("{name}: {e}"))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let header = read_header(&mut reader).map_err(|e| refuse!("{name}: {e}"))?;

    let DType::Plain(kind) = header.dtype() else {
        return Err(refuse!("{name}: structured arrays are not supported; save each field as an array of its own"));
    };
    let near = match kind.type_char() {
        TypeChar::Int => "int32",
        TypeChar::Uint => "uint32",
        TypeChar::Bool => "uint8",
        _ => "float32",
    };
    let convert = format!("ops take f32, f16, i32, u32, u8 or i8: convert it, for example with x.astype(numpy.{near})");
    if kind.endianness() == Endianness::Big {
        return Err(refuse!("{name}: elements are big-endian ({kind}); {convert}"));
    }
    if header.order() == Order::Fortran && header.shape().len() > 1 {
        return Err(refuse!("{name}: the array is in Fortran order; save numpy.ascontiguousarray(x)"));
    }
    let shape = header.shape().iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>();
    let counted = shape.and_then(|s| {
        let n = s.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        Some((s, n))
    });
    let Some((shape, n)) = counted else {
        return Err(refuse!("{name}: the shape {:?} is larger than this machine can count", header.shape()));
    };
    let data: HostData = match (kind.type_char(), kind.size_field()) {
        (TypeChar::Float, 4) => elements::<f32>(header, reader, n)?.into(),
        (TypeChar::Float, 2) => elements::<half::f16>(header, reader, n)?.into(),
        (TypeChar::Int, 4) => elements::<i32>(header, reader, n)?.into(),
        (TypeChar::Uint, 4) => elements::<u32>(header, reader, n)?.into(),
        (TypeChar::Uint, 1) => elements::<u8>(header, reader, n)?.into(),
        (TypeChar::Int, 1) => elements::<i8>(header, reader, n)?.into(),
        _ => return Err(refuse!("{name}: elements are {kind}; {convert}")),
    };
    if data.len() < n {
        let held = data.len();
        return Err(refuse!("{name}: the file ends after {held} of the {n} elements that its header announces"));
    }
    Ok(HostArray::new(&shape, data)?)
}

/// Reads at most `n` elements; fewer if the file ends early.
fn elements<T: Deserialize>(header: NpyHeader, reader: impl Read, n: usize) -> Result<Vec<T>, Failure> {
    let data = NpyFile::with_header(header, reader).data::<T>().map_err(|e| refuse!("{e}"))?;
    let mut elements = Vec::new();
    for element in data.take(n) {
        match element {
            Ok(element) => elements.push(element),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(refuse!("reading elements: {e}")),
        }
    }
    Ok(elements)
}

fn write(array: &HostArray, out: impl Write) -> io::Result<()> {
    fn of<T: npyz::AutoSerialize + Copy>(shape: &[usize], elements: &[T], out: impl Write) -> io::Result<()> {
        let shape: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out);
        let mut writer = options.begin_nd()?;
        writer.extend(elements.iter().copied())?;
        writer.finish()
    }
    match array.data() {
        HostData::F32(v) => of(array.shape(), v, out),
        HostData::F16(v) => of(array.shape(), v, out),
        HostData::I32(v) => of(array.shape(), v, out),
        HostData::U32(v) => of(array.shape(), v, out),
        HostData::U8(v) => of(array.shape(), v, out),
        HostData::I8(v) => of(array.shape(), v, out),
        HostData::Unseen(..) => Err(io::Error::other("an array that was never made")),
    }
}

/// Writes all arrays, or none.
pub(crate) fn write_all<'a>(arrays: impl IntoIterator<Item = (&'a PathBuf, HostArray)>) -> Result<(), Failure> {
    let written = arrays.into_iter().map(|(path, array)| {
        let mut file = WholeFile::create(path)?;
        write(&array, &mut file).map_err(|e| Failure::file(path, &e))?;
        Ok(file)
    });
    Ok(WholeFile::finish_all(written.collect::<Result<Vec<_>, Failure>>()?)?)
}

#[cfg(test)]
mod tests {
    use super::read_header;

    /// Returns the start of a file with this shape.
    fn file(shape: &str) -> Vec<u8> {
        let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{dict:<117}\n").bytes());
        file
    }

    #[test]
    fn header_takes_numbers_as_numpy_writes_them_and_no_others() {
        for (shape, extents) in [("()", &[][..]), ("(0,)", &[0]), ("(10,)", &[10]), ("(3, 40)", &[3, 40])] {
            assert_eq!(read_header(&mut &file(shape)[..]).unwrap().shape(), extents, "{shape}");
        }
        for shape in ["(0xa,)", "(1_0,)", "(0b11,)", "(0o7,)", "(2, 0X1F)", "(010,)", "(00,)", "(1e3,)", "(-1,)"] {
            let e = read_header(&mut &file(shape)[..]).err().unwrap();
            assert!(e.to_string().contains("not one that NumPy writes"), "{shape}: {e}");
        }
    }
}
