//! Pictures of matrix patterns and residuals.

use super::super::Failure;
use super::super::pictures::{Picture, colour, encoded, save, whole};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;
use tilework::sparse::Csr;

/// Maximum pixels of the longer side of a matrix.
const SIDE: usize = 800;
/// Minimum pixels of the shorter side.
const LEAST: usize = 8;
/// White margin around the frame, with marks at each quarter.
const MARGIN: usize = 12;
const MARK: usize = 6;

/// An 8-bit RGB picture.
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Pixels {
    fn set(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        let at = 3 * (y * self.width + x);
        self.pixels[at..at + 3].copy_from_slice(&colour);
    }

    #[cfg(test)]
    pub(crate) fn get(&self, x: usize, y: usize) -> [u8; 3] {
        let at = 3 * (y * self.width + x);
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }
}

/// Light to dark, by the logarithm of the number of entries.
fn shade(count: u32, most: u32) -> [u8; 3] {
    if count == 0 {
        return [255; 3];
    }
    let part = if most > 1 { f64::from(count).ln() / f64::from(most).ln() } else { 1.0 };
    let (light, dark) = ([150.0, 190.0, 235.0], [8.0, 24.0, 88.0]);
    [0, 1, 2].map(|i| (light[i] + (dark[i] - light[i]) * part) as u8)
}

/// Draws the pattern of a matrix. A cell covers as many rows and columns as needed to fit, darker for more entries;
/// small matrices are enlarged.
pub(crate) fn pattern(csr: &Csr) -> Pixels {
    let longest = csr.rows.max(csr.cols).max(1);
    let fold = longest.div_ceil(SIDE);
    let cells = |extent: usize| extent.div_ceil(fold).max(1);
    let (wide, high) = (cells(csr.cols), cells(csr.rows));
    let mut counts = vec![0u32; wide * high];
    for row in 0..csr.rows {
        for (col, _) in csr.row(row) {
            counts[row / fold * wide + col as usize / fold] += 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let zoom = (SIDE / wide.max(high)).max(1);
    // A narrow matrix would be a hairline.
    let [zoom_x, zoom_y] = [wide, high].map(|cells| if cells * zoom < LEAST { LEAST.div_ceil(cells) } else { zoom });
    let (inner_w, inner_h) = (wide * zoom_x, high * zoom_y);
    let (width, height) = (inner_w + 2 * MARGIN + 2, inner_h + 2 * MARGIN + 2);
    let mut picture = Pixels { width, height, pixels: vec![255; 3 * width * height] };
    for y in 0..inner_h {
        for x in 0..inner_w {
            let count = counts[y / zoom_y * wide + x / zoom_x];
            picture.set(x + MARGIN + 1, y + MARGIN + 1, shade(count, most));
        }
    }
    let grey = [110; 3];
    let (right, bottom) = (MARGIN + inner_w + 1, MARGIN + inner_h + 1);
    for x in MARGIN..=right {
        picture.set(x, MARGIN, grey);
        picture.set(x, bottom, grey);
    }
    for y in MARGIN..=bottom {
        picture.set(MARGIN, y, grey);
        picture.set(right, y, grey);
    }
    for quarter in 0..=4 {
        let (x, y) = (MARGIN + quarter * (right - MARGIN) / 4, MARGIN + quarter * (bottom - MARGIN) / 4);
        for i in 1..=MARK {
            picture.set(x, MARGIN - i, grey);
            picture.set(MARGIN - i, y, grey);
        }
    }
    picture
}

/// Writes a matrix's pattern as a PNG file.
pub(crate) fn spy(path: &Path, csr: &Csr) -> Result<(), Failure> {
    let picture = pattern(csr);
    let bytes = encoded(&picture.pixels, (picture.width as u32, picture.height as u32));
    bytes.and_then(|bytes| whole(path, &bytes)).map_err(Failure::bad_input)
}

/// Residuals by iteration, on a logarithmic axis.
pub(crate) struct Residuals<'a> {
    pub(crate) title: String,
    /// Label of the axis.
    pub(crate) what: &'a str,
    /// Iteration of the first residual.
    pub(crate) from: usize,
    pub(crate) residuals: &'a [f64],
}

impl Residuals<'_> {
    pub(crate) fn plot(&self, path: &Path) -> Result<(), Failure> {
        save(path, self).map_err(Failure::bad_input)
    }
}

impl Picture for Residuals<'_> {
    fn size(&self) -> (u32, u32) {
        (800, 500)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let Self { title, what, from, residuals } = self;
        // A logarithmic axis has no 0 and no NaN.
        let points: Vec<_> =
            (*from..).zip(residuals.iter().copied()).filter(|(_, r)| *r > 0.0 && r.is_finite()).collect();
        let least = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
        let (least, most) = if points.is_empty() { (0.1, 1.0) } else { (least / 2.0, most * 2.0) };
        let last = (from + residuals.len()).max(from + 2) - 1;
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 18))
            .margin(16)
            .x_label_area_size(40)
            .y_label_area_size(72)
            .build_cartesian_2d(*from..last, (least..most).log_scale())
            .map_err(|e| said(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.1))
            .x_desc("iteration")
            .y_desc(*what)
            .y_label_formatter(&|y| format!("{y:.0e}"))
            .label_style(("sans-serif", 14))
            .draw()
            .map_err(|e| said(&e))?;
        chart.draw_series(LineSeries::new(points, colour(0).stroke_width(2))).map_err(|e| said(&e))?;
        Ok(())
    }
}
