//! A picture of a quadtree.

use super::common::levels::canvas::{self, Canvas, Colour, Map, mix};
use super::points::Point;
use super::tree::Tree;
use tilework::reference::{TreeSquare, quadtree_square};

/// From black over purple to light yellow, perceptually uniform also in print and for most colour-blind readers (S. van
/// der Walt and N. Smith, 2015). The polynomials are M. Zucker's.
const MAGMA: Map = [
    [-0.002_136, -0.000_750, -0.005_386],
    [0.251_661, 0.677_523, 2.494_027],
    [8.353_717, -3.577_72, 0.314_468],
    [-27.668_733, 14.264_731, -13.649_213],
    [52.176_14, -27.943_606, 12.944_169],
    [-50.768_525, 29.046_583, 4.234_153],
    [18.655_705, -11.489_774, -5.601_962],
];
const PAPER: Colour = [0.035, 0.030, 0.065];
const POINT: Colour = [1.0, 0.97, 0.90];
/// Cells smaller than this many pixels get no cross.
const LEAST: f64 = 2.5;

/// Draws the cells, lighter for deeper levels, with dividing lines, and the points as light on them.
pub(crate) fn picture(tree: &Tree, points: &[Point], size: usize) -> Canvas {
    let mut canvas = Canvas::new(size, size, PAPER);
    let margin = size as f64 / 40.0;
    let extent = size as f64 - 2.0 * margin;
    // The y axis points up.
    let across = |ends: [f64; 2]| ends.map(|x| margin + extent * x);
    let down = |[low, high]: [f64; 2]| [high, low].map(|y| margin + extent * (1.0 - y));
    let first = tree.leaves().map(|cell| cell.level).min().unwrap_or(0);
    let deepest = tree.cells.last().map_or(0, |cell| cell.level);
    let levels = (deepest - first).max(1) as f32;
    let colour = |level: u32| canvas::colour(&MAGMA, 0.10 + 0.72 * level.saturating_sub(first) as f32 / levels);
    for cell in tree.leaves() {
        let [x, y] = cell.ends();
        canvas.fill(across(x), down(y), colour(cell.level), 0.9);
    }
    // Lines of large cells are wide; those of small cells fade.
    let line = |level: u32| mix(colour(level), [0.93, 0.80, 0.95], 0.38);
    for cell in tree.cells.iter().filter(|cell| cell.child.is_some()) {
        let [x, y] = cell.ends();
        let pixels = extent * (x[1] - x[0]) / 2.0;
        let opacity = (0.12 * (pixels - LEAST)).clamp(0.0, 0.8) as f32;
        let width = (2.4 - 0.3 * f64::from(cell.level)).max(1.0);
        canvas.cross(across(x), down(y), width, line(cell.level + 1), opacity);
    }
    let ([left, right], [top, bottom]) = (across([0.0, 1.0]), down([0.0, 1.0]));
    for at in [left, right] {
        canvas.fill([at - 1.2, at + 1.2], [top - 1.2, bottom + 1.2], line(first), 0.9);
    }
    for at in [top, bottom] {
        canvas.fill([left - 1.2, right + 1.2], [at - 1.2, at + 1.2], line(first), 0.9);
    }
    let lit = light(points, size, (margin, extent));
    canvas.shade(|column, row, below| {
        let amount = 1.0 - (-lit[row * size + column]).exp();
        mix(below, POINT, 0.75 * amount)
    });
    canvas
}

/// Returns the light that points throw on each pixel. The more points, the weaker each.
fn light(points: &[Point], size: usize, (margin, extent): (f64, f64)) -> Vec<f32> {
    let TreeSquare { low, side } = quadtree_square(points);
    let mut lit = vec![0.0; size * size];
    let shine = (0.025 * (size * size) as f32 / points.len().max(1) as f32).clamp(0.04, 1.3);
    // A few points are drawn as discs.
    let radius = (size as f64 / (points.len().max(1) as f64).sqrt() / 30.0).clamp(0.8, 4.0);
    for point in points {
        let part = |i: usize| (f64::from(point[i]) - f64::from(low[i])) / f64::from(side);
        let (x, y) = (margin + extent * part(0), margin + extent * (1.0 - part(1)));
        let near = |at: f64| ((at - radius).floor().max(0.0) as usize)..((at + radius).ceil() as usize + 1).min(size);
        for row in near(y) {
            for column in near(x) {
                let distance = (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y);
                lit[row * size + column] += shine * (1.0 - distance / (radius + 0.5)).max(0.0) as f32;
            }
        }
    }
    lit
}
