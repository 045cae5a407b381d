//! NumPy files: read with clear refusals, written whole or not at all.

use super::asked::refuse;
use super::failure::Failure;
use super::header::read_header;
use npyz::{DType, Deserialize, Endianness, NpyFile, NpyHeader, Order, TypeChar, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tilework::io::WholeFile;
use tilework::{HostArray, HostData};

/// Reads an array of one of the types that ops take.
pub(crate) fn read(path: &Path) -> Result<HostArray, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|e| refuse!("{name}: {e}"))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let header = read_header(&mut reader).map_err(|e| refuse!("{name}: {e}"))?;

    let DType::Plain(kind) = header.dtype() else {
        return Err(refuse!(
            "{name}: structured arrays are not supported; save each field as an array of its own"
        ));
    };
    let near = match kind.type_char() {
        TypeChar::Int => "int32",
        TypeChar::Uint => "uint32",
        TypeChar::Bool => "uint8",
        _ => "float32",
    };
    let convert =
        format!("ops take f32, f16, i32, u32, u8 or i8: convert it, for example with x.astype(numpy.{near})");
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
        return Err(refuse!(
            "{name}: the file ends after {held} of the {n} elements that its header announces"
        ));
    }
    Ok(HostArray::new(&shape, data)?)
}

/// The elements, at most `n`; fewer if the file ends early.
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

/// Writes every array, all of them or none.
pub(crate) fn write_all<'a>(
    arrays: impl IntoIterator<Item = (&'a PathBuf, HostArray)>,
) -> Result<(), Failure> {
    let written = arrays.into_iter().map(|(path, array)| {
        let mut file = WholeFile::create(path)?;
        write(&array, &mut file).map_err(|e| Failure::file(path, &e))?;
        Ok(file)
    });
    Ok(WholeFile::finish_all(written.collect::<Result<Vec<_>, Failure>>()?)?)
}
