//! Pictures from files and to files.

use super::failure::{Failure, open_file};
use ::image::codecs::jpeg::JpegEncoder;
use ::image::codecs::png::PngEncoder;
use ::image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageReader, Limits};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use tilework::image::Image;

/// Bytes that a decoder may take: a picture of 2 GiB, and as much again to turn it.
const MOST_BYTES: u64 = 4 << 30;
/// Quality of JPEG files.
const QUALITY: u8 = 92;

/// Pixels of 8 bits a channel: grey or red, green and blue, and maybe opacity.
pub(crate) struct Picture {
    pub(crate) image: Image,
    pub(crate) pixels: Vec<u8>,
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = ["", "grey", "grey and opacity", "colours", "colours and opacity"];
        let colours = colours.get(self.image.channels).copied().unwrap_or("");
        write!(f, "{} x {} pixels, {colours}", self.image.w, self.image.h)
    }
}

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

/// Reads a picture, upright.
pub(crate) fn read(path: &Path) -> Result<Picture, Failure> {
    let failure = |e: ImageError| Failure::bad_input(format!("{e}; it must be a PNG or JPEG file")).at(path);
    let (file, _) = open_file(path)?;
    let reader = ImageReader::new(BufReader::new(file)).with_guessed_format();
    let mut reader = reader.map_err(|e| Failure::file(path, &e))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failure)?;
    let orientation = decoder.orientation().map_err(failure)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(failure)?;
    decoded.apply_orientation(orientation);
    let [h, w] = [decoded.height() as usize, decoded.width() as usize];
    if h == 0 || w == 0 {
        return Err(Failure::bad_input("has no pixels").at(path));
    }
    let colour = decoded.color();
    let (channels, pixels) = match (colour.has_color(), colour.has_alpha()) {
        (false, false) => (1, decoded.into_luma8().into_raw()),
        (false, true) => (2, decoded.into_luma_alpha8().into_raw()),
        (true, false) => (3, decoded.into_rgb8().into_raw()),
        (true, true) => (4, decoded.into_rgba8().into_raw()),
    };
    Ok(Picture { image: Image::new(h, w, channels), pixels })
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
