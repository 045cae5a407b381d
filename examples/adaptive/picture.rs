//! A picture of a field and its cells.

use super::adaptive_grid::Grid;
use super::common::levels::canvas::{Canvas, Colour, Map, colour, mix};
use super::field::Field;

/// From purple over green to yellow, perceptually uniform also in print and for most colour-blind readers (S. van der
/// Walt and N. Smith, 2015). The polynomials are M. Zucker's.
const VIRIDIS: Map = [
    [0.277_727, 0.005_407, 0.334_100],
    [0.105_093, 1.404_614, 1.384_59],
    [-0.330_862, 0.214_848, 0.095_095],
    [-4.634_23, -5.799_101, -19.332_44],
    [6.228_27, 14.179_933, 56.690_55],
    [4.776_385, -13.745_145, -65.353_03],
    [-5.435_456, 4.645_853, 26.312_435],
];
/// A line's share of each pixel, before it has a colour.
const NONE: Colour = [0.0; 3];
const ALL: Colour = [1.0; 3];
/// Line colours on dark and on light ground.
const LINES: [Colour; 2] = [[0.55, 0.45, 0.70], [0.02, 0.02, 0.05]];
/// Lines closer than this many pixels fade.
const LEAST: f64 = 3.0;

/// Draws the field, coloured from its smallest to its largest value, and the edges of the cells. The longer side has
/// `size` pixels.
pub(crate) fn picture(grid: &Grid, field: &Field, first: u32, size: usize) -> Canvas {
    let (wide, high) = match field {
        Field::Image(grey) => (grey.width as f64, grey.height as f64),
        _ => (1.0, 1.0),
    };
    let pixels = |extent: f64| ((size as f64 * extent / wide.max(high)).round() as usize).max(8);
    let mut canvas = Canvas::new(pixels(wide), pixels(high), NONE);
    let (width, height) = (canvas.width as f64, canvas.height as f64);
    let value = |column: usize, row: usize| field.at((column as f64 + 0.5) / width, (row as f64 + 0.5) / height) as f32;
    let mut ends = (f32::INFINITY, f32::NEG_INFINITY);
    for row in 0..canvas.height {
        for x in (0..canvas.width).map(|column| value(column, row)) {
            ends = (x.min(ends.0), x.max(ends.1));
        }
    }
    // Each line once: the upper and left edges of the first level's cells, and the crosses of split cells.
    for cell in &grid.0 {
        let side = 0.5f64.powi(cell.level as i32);
        let across = width.min(height) * side;
        let opacity = |pixels: f64| (0.10 * (pixels - LEAST)).clamp(0.06, 0.5) as f32;
        let width_of = |level: u32| (1.9 - 0.2 * f64::from(level)).max(0.9);
        let [column, row] = cell.place;
        let [x, y] = [(column, width), (row, height)]
            .map(|(i, extent)| [f64::from(i) * side * extent, f64::from(i + 1) * side * extent]);
        if cell.level == first {
            let line = width_of(cell.level);
            canvas.fill([x[0] - line / 2.0, x[0] + line / 2.0], y, ALL, opacity(across));
            canvas.fill(x, [y[0] - line / 2.0, y[0] + line / 2.0], ALL, opacity(across));
        }
        if cell.child.is_some() {
            canvas.cross(x, y, width_of(cell.level + 1), ALL, opacity(across / 2.0));
        }
    }
    let span = (ends.1 - ends.0).max(f32::MIN_POSITIVE);
    canvas.shade(|column, row, line| {
        let ground = colour(&VIRIDIS, (value(column, row) - ends.0) / span);
        let light = 0.3 * ground[0] + 0.6 * ground[1] + 0.1 * ground[2];
        mix(ground, mix(LINES[0], LINES[1], ((light - 0.15) / 0.15).clamp(0.0, 1.0)), line[0])
    });
    canvas
}
