//! NumPy files: read with clear refusals, written aside and renamed.

use super::array::{Array, Data, refuse, with_data};
use super::failure::Failure;
use super::header::read_header;
use npyz::{DType, Deserialize, Endianness, NpyFile, NpyHeader, Order, TypeChar, WriterBuilder};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Reads an array of one of the types that ops take.
pub(crate) fn read(path: &Path) -> Result<Array, Failure> {
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
    let data: Data = match (kind.type_char(), kind.size_field()) {
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
    Ok(Array { shape, data })
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

fn write(array: &Array, file: File) -> io::Result<()> {
    let shape: Vec<u64> = array.shape.iter().map(|&d| d as u64).collect();
    let mut out = BufWriter::with_capacity(1 << 20, file);
    with_data!(&array.data, v => {
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut out);
        let mut writer = options.begin_nd()?;
        writer.extend(v.iter().copied())?;
        writer.finish()?;
    });
    out.flush()
}

/// Where a file is going to be.
pub(crate) enum Place {
    /// Written under the second name and renamed to the first.
    File(PathBuf, PathBuf),
    /// A pipe or a device, which cannot be renamed to.
    Stream(PathBuf),
}

/// Finds the place of an output; refuses names that no file can have.
pub(crate) fn place(path: &Path) -> Result<Place, Failure> {
    // A link keeps pointing where it points.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(there) if there.is_dir() => return Err(refuse!("-o {}: is a directory", path.display())),
        Ok(there) if !there.is_file() => return Ok(Place::Stream(target)),
        _ => {}
    }
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(refuse!("-o {}: is no name of a file", path.display()));
    };
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(refuse!("-o {}: there is no folder {}", path.display(), folder.display()));
    }
    let mut beside = name.to_os_string();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = target.with_file_name(beside);
    Ok(Place::File(target, beside))
}

/// Writes every array beside its place and then renames all: no file is ever half-written, and if one cannot
/// be written, none appears.
pub(crate) fn write_all(arrays: impl IntoIterator<Item = (Place, Array)>) -> Result<(), Failure> {
    let mut aside = Aside(Vec::new());
    for (place, array) in arrays {
        let (name, file) = match place {
            Place::Stream(name) => (name.clone(), File::create(name)),
            Place::File(target, beside) => {
                let file = File::options().write(true).create_new(true).open(&beside);
                if file.is_ok() {
                    aside.0.push((target.clone(), beside));
                }
                (target, file)
            }
        };
        file.and_then(|file| write(&array, file)).map_err(|e| refuse!("-o {}: {e}", name.display()))?;
    }
    while let Some((target, beside)) = aside.0.last() {
        fs::rename(beside, target).map_err(|e| refuse!("-o {}: {e}", target.display()))?;
        aside.0.pop();
    }
    Ok(())
}

/// Files that still have to be renamed; removed if that does not happen.
struct Aside(Vec<(PathBuf, PathBuf)>);

impl Drop for Aside {
    fn drop(&mut self) {
        for (_, beside) in &self.0 {
            // There is nobody left to tell.
            let _ = fs::remove_file(beside);
        }
    }
}
