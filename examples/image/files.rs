//! Pictures from files and to files.

#[path = "read.rs"]
mod reading;

use super::failure::{self, Failure};
use ::image::codecs::jpeg::JpegEncoder;
use ::image::codecs::png::PngEncoder;
use ::image::{ExtendedColorType, ImageEncoder, ImageError};
pub(crate) use reading::{Picture, read};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Quality of JPEG files.
const QUALITY: u8 = 92;

/// What a file is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Png,
    Jpeg,
}

/// The format by the ending of a name.
pub(crate) fn format_of(path: &Path) -> Result<Format, Failure> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "png" => Ok(Format::Png),
        "jpg" | "jpeg" => Ok(Format::Jpeg),
        _ => Err(Failure::bad_input("must end with .png, .jpg or .jpeg").at(path)),
    }
}

/// Writes a picture beside its place and renames it: there is all of it or nothing. Returns what was written.
pub(crate) fn write(path: &Path, format: Format, mut picture: Picture) -> Result<Picture, Failure> {
    let channels = picture.image.channels;
    if format == Format::Jpeg && [2, 4].contains(&channels) {
        let opaque = picture.pixels.chunks_exact(channels).flat_map(|p| &p[..channels - 1]);
        picture.pixels = opaque.copied().collect();
        picture.image.channels -= 1;
    }
    // A link keeps pointing where it points.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut part = target.clone().into_os_string();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let done = encode(&part, format, &picture)
        .and_then(|()| fs::rename(&part, &target).map_err(ImageError::IoError));
    done.map_err(|e| {
        // What was begun is of no use.
        let _ = fs::remove_file(&part);
        Failure::bad_input(e.to_string()).at(path)
    })?;
    Ok(picture)
}

fn encode(path: &Path, format: Format, picture: &Picture) -> Result<(), ImageError> {
    let kind = match picture.image.channels {
        1 => ExtendedColorType::L8,
        2 => ExtendedColorType::La8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    let mut file = BufWriter::new(File::create(path)?);
    let (w, h) = (picture.image.w as u32, picture.image.h as u32);
    match format {
        Format::Png => PngEncoder::new(&mut file).write_image(&picture.pixels, w, h, kind)?,
        Format::Jpeg => {
            JpegEncoder::new_with_quality(&mut file, QUALITY).write_image(&picture.pixels, w, h, kind)?;
        }
    }
    file.flush()?;
    file.into_inner().map_err(io::Error::from)?.sync_all()?;
    Ok(())
}
