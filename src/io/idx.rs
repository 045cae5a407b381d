//! IDX files: the format of the MNIST digits and similar data sets.
//!
//! A file holds a magic number (two zeros, the type, the number of axes), the extents as big-endian 32-bit integers,
//! and the elements. [`read`] takes files of unsigned bytes, which images and labels use, plain or gzipped; it detects
//! gzip by the first bytes. The format: Y. LeCun, C. Cortes and C. Burges, *The MNIST database*, 1998.
//!
//! # Example
//! ```
//! use tilework::io::idx;
//!
//! let labels = idx::read([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1].as_slice())?;
//! assert_eq!((labels.shape, labels.data), (vec![3], vec![7, 2, 1]));
//! let swapped = idx::read([1, 8, 0, 0, 3, 0, 0, 0, 7, 2, 1].as_slice());
//! assert!(swapped.unwrap_err().to_string().contains("little-endian"));
//! # Ok::<(), tilework::Error>(())
//! ```

use crate::error::{Result, err};
use crate::shape::elements;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// An array from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements, row-major.
    pub data: Vec<u8>,
}

/// Images and their classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Number, height and width of the images.
    pub shape: [usize; 3],
    /// Their pixels.
    pub images: Vec<u8>,
    /// The class of each image.
    pub labels: Vec<u8>,
}

/// Reads an array of unsigned bytes.
///
/// # Errors
/// - [`Malformed`](crate::ErrorKind::Malformed): another magic number, or a number of elements that does not match the
///   extents.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): elements of another type.
/// - [`Io`](crate::ErrorKind::Io): the source fails.
pub fn read(mut source: impl BufRead) -> Result<Idx> {
    let start = source.fill_buf().map_err(|e| err!(Io, "idx: cannot read: {e}"))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return read_plain(MultiGzDecoder::new(source));
    }
    read_plain(source)
}

fn read_plain(mut source: impl Read) -> Result<Idx> {
    let magic = word(&mut source, "the magic number")?;
    let (dtype, axes) = match magic {
        [0, 0, dtype, axes] => (dtype, usize::from(axes)),
        [axes, dtype @ 8..=14, 0, 0] => {
            return Err(err!(
                Malformed,
                "idx: the magic number is {axes} {dtype} 0 0: the file is little-endian, but IDX is big-endian"
            ));
        }
        [a, b, c, d] => {
            return Err(err!(
                Malformed,
                "idx: the file starts with {a} {b} {c} {d}; an IDX file starts with 0 0, a type and the number of axes"
            ));
        }
    };
    match dtype {
        8 => {}
        9 | 11..=14 => {
            let name = ["signed bytes", "", "i16", "i32", "f32", "f64"][usize::from(dtype) - 9];
            return Err(err!(Unsupported, "idx: the elements are {name} (type {dtype}); use unsigned bytes (8)"));
        }
        _ => return Err(err!(Malformed, "idx: the magic number names the unknown type {dtype}")),
    }
    if axes == 0 {
        return Err(err!(Malformed, "idx: the array has no axes"));
    }
    let mut shape = Vec::with_capacity(axes);
    for axis in 0..axes {
        shape.push(u32::from_be_bytes(word(&mut source, &format!("extent {axis}"))?) as usize);
    }
    let len = elements("idx", "the file", &shape)?;
    let mut data = Vec::new();
    // One more byte than expected, to detect a longer file.
    let taken = source.take((len as u64).saturating_add(1)).read_to_end(&mut data);
    taken.map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => err!(Malformed, "idx: the compressed file ends early: {e}"),
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            err!(Malformed, "idx: the compressed file is damaged: {e}")
        }
        std::io::ErrorKind::OutOfMemory => {
            err!(OutOfMemory, "idx: out of host memory for the {len} elements of the file")
        }
        _ => err!(Io, "idx: cannot read: {e}"),
    })?;
    if data.len() != len {
        let there = if data.len() > len { "more".to_owned() } else { data.len().to_string() };
        return Err(err!(Malformed, "idx: the extents {shape:?} mean {len} elements; the file has {there}"));
    }
    Ok(Idx { shape, data })
}

fn word(source: &mut impl Read, what: &str) -> Result<[u8; 4]> {
    let mut bytes = [0; 4];
    source.read_exact(&mut bytes).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => err!(Malformed, "idx: the file ends within {what}"),
        _ => err!(Io, "idx: cannot read {what}: {e}"),
    })?;
    Ok(bytes)
}

/// Reads a file: see [`read`].
///
/// # Errors
/// As [`read`]; the text names the file.
pub fn read_file(path: impl AsRef<Path>) -> Result<Idx> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|e| err!(Io, "cannot open {}: {e}", path.display()))?;
    read(BufReader::with_capacity(1 << 20, file)).map_err(|e| e.context(&path.display().to_string()))
}

/// Reads the images `PART-images-idx3-ubyte` and labels `PART-labels-idx1-ubyte` of a folder, each plain or with `.gz`.
/// The parts of MNIST and Fashion-MNIST are `train` and `t10k`.
///
/// # Errors
/// As [`read_file`]; [`Malformed`](crate::ErrorKind::Malformed) for arrays that are not images or labels, or whose
/// numbers differ.
pub fn read_labelled(folder: impl AsRef<Path>, part: &str) -> Result<Labelled> {
    let find = |kind: &str| {
        let plain = folder.as_ref().join(format!("{part}-{kind}-ubyte"));
        let packed = folder.as_ref().join(format!("{part}-{kind}-ubyte.gz"));
        if packed.exists() && !plain.exists() { packed } else { plain }
    };
    let (of_images, of_labels) = (find("images-idx3"), find("labels-idx1"));
    let (images, labels) = (read_file(&of_images)?, read_file(&of_labels)?);
    let [n, h, w] = images.shape[..] else {
        let axes = images.shape.len();
        return Err(err!(Malformed, "{}: the array has {axes} axes; images need 3", of_images.display()));
    };
    if labels.shape != [n] {
        return Err(err!(
            Malformed,
            "{} has {n} images, {} labels of shape {:?}; use one label for each image",
            of_images.display(),
            of_labels.display(),
            labels.shape
        ));
    }
    Ok(Labelled { shape: [n, h, w], images: images.data, labels: labels.data })
}

#[cfg(test)]
mod tests;
