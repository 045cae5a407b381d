//! Pictures of measurements as SVG and PNG, with their own font.

pub(crate) mod curve;
mod png;
pub(crate) mod roofline;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
pub(crate) use png::{encoded, whole};
use std::path::Path;
use std::sync::OnceLock;

/// A drawing that works on any surface.
pub(crate) trait Picture {
    /// Width and height in pixels.
    fn size(&self) -> (u32, u32);

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String>;
}

/// Registers the font with plotters, which draws and measures text with it.
fn register() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // On failure, drawing reports that no font is available.
        let _ = register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular());
    });
}

/// Returns whether the file name ends in .png, not .svg. Rejects other names.
pub(crate) fn is_png(path: &Path) -> Result<bool, String> {
    let ends = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    match ends("png") {
        false if !ends("svg") => Err(format!("{}: must end with .svg or .png", path.display())),
        png => Ok(png),
    }
}

/// Writes the picture in the format of the file name.
pub(crate) fn save(path: &Path, picture: &impl Picture) -> Result<(), String> {
    let named = |e: String| format!("{}: {e}", path.display());
    let bytes = match is_png(path)? {
        true => png(picture).map_err(named)?,
        false => svg(picture).map_err(named)?.into_bytes(),
    };
    whole(path, &bytes)
}

/// Renders the picture as SVG.
fn svg(picture: &impl Picture) -> Result<String, String> {
    let mut text = String::new();
    drawn(picture, SVGBackend::with_string(&mut text, picture.size()))?;
    Ok(text)
}

/// Renders the picture as PNG.
fn png(picture: &impl Picture) -> Result<Vec<u8>, String> {
    let (width, height) = picture.size();
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    drawn(picture, BitMapBackend::with_buffer(&mut pixels, (width, height)))?;
    encoded(&pixels, (width, height))
}

fn drawn<D: DrawingBackend>(picture: &impl Picture, surface: D) -> Result<(), String> {
    register();
    let area = surface.into_drawing_area();
    area.fill(&WHITE).map_err(|e| e.to_string())?;
    picture.draw(&area)?;
    area.present().map_err(|e| e.to_string())
}

/// Colours that most colour-blind readers can tell apart (Okabe and Ito, 2008), and two more.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
    RGBColor(148, 103, 60),
    RGBColor(110, 60, 160),
    RGBColor(150, 160, 40),
];

/// Returns the colour of the `i`th item, cyclically.
pub(crate) fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}
