//! A device's roofline, with measured kernels on it.

use super::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tilework::analysis::Roofline;

/// A measured kernel.
pub(crate) struct Dot {
    pub(crate) text: String,
    /// Operations per byte.
    pub(crate) intensity: f64,
    pub(crate) flops: f64,
}

/// A roofline on logarithmic axes. Labels stand in a column beside it, in the order of their dots.
pub(crate) struct RooflinePicture {
    pub(crate) title: String,
    /// Label of the horizontal axis.
    pub(crate) intensity: &'static str,
    pub(crate) roof: Roofline,
    pub(crate) dots: Vec<Dot>,
}

impl Picture for RooflinePicture {
    fn size(&self) -> (u32, u32) {
        (1040, 600)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let roofline = Roofline { bandwidth: self.roof.bandwidth * 1e-9, peak: self.roof.peak * 1e-9 };
        let intensities = || self.dots.iter().map(|s| s.intensity);
        let least = intensities().fold(roofline.ridge(), f64::min) / 4.0;
        let most = intensities().fold(roofline.ridge(), f64::max) * 4.0;
        let flops = || self.dots.iter().map(|s| s.flops * 1e-9);
        let floor = flops().fold(roofline.attainable(least), f64::min) / 4.0;
        let top = flops().fold(roofline.peak, f64::max) * 3.0;
        let letters = |text: &str| text.chars().count() as i32;
        let widest = self.dots.iter().map(|d| letters(&d.text) * LETTER.0).max().unwrap_or(0);
        // Long titles get a smaller font.
        let title = (TITLE * 80 / letters(&self.title).max(1)).min(TITLE);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", title))
            .margin(16)
            .margin_right(GAP + widest)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d((least..most).log_scale(), (floor..top).log_scale())
            .map_err(|e| said(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(6)
            .bold_line_style(BLACK.mix(0.1))
            .x_desc(self.intensity)
            .y_desc("GFLOP/s")
            .x_label_formatter(&|x| format!("{x}"))
            .y_label_formatter(&|y| format!("{y}"))
            .label_style(("sans-serif", TEXT))
            .draw()
            .map_err(|e| said(&e))?;
        let corners = [least, roofline.ridge(), most].map(|x| (x, roofline.attainable(x)));
        chart.draw_series(LineSeries::new(corners, BLACK.stroke_width(2))).map_err(|e| said(&e))?;
        let text = ("sans-serif", TEXT).into_text_style(area);
        // The peak rates stand above the ends of the roof.
        let above = text.pos(Pos::new(HPos::Right, VPos::Bottom));
        let number = |x: f64| if x < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") };
        let (slope, flat) = ((least * roofline.ridge()).sqrt(), most / 1.1);
        for (x, label) in [
            (slope, format!("{} GB/s", number(roofline.bandwidth))),
            (flat, format!("{} GFLOP/s", number(roofline.peak))),
        ] {
            let (x, y) = chart.backend_coord(&(x, roofline.attainable(x)));
            area.draw_text(&label, &above, (x - 6, y - 4)).map_err(|e| said(&e))?;
        }
        let at: Vec<_> = self.dots.iter().map(|d| chart.backend_coord(&(d.intensity, d.flops * 1e-9))).collect();
        let heights: Vec<_> = at.iter().map(|(_, y)| *y).collect();
        let left = self.size().0 as i32 - MARGIN - widest;
        let beside = text.pos(Pos::new(HPos::Left, VPos::Center));
        for (i, (&(x, y), height)) in at.iter().zip(spread(&heights, self.size().1 as i32)).enumerate() {
            let line = PathElement::new([(x, y), (left - 2 * DOT, height)], colour(i).mix(0.4));
            let dot = |place| Circle::new(place, DOT, colour(i).filled());
            area.draw(&line)
                .and_then(|()| area.draw(&dot((x, y))))
                .and_then(|()| area.draw(&dot((left - 2 * DOT, height))))
                .and_then(|()| area.draw_text(&self.dots[i].text, &beside, (left, height)))
                .map_err(|e| said(&e))?;
        }
        Ok(())
    }
}

const TITLE: i32 = 20;
const TEXT: i32 = 14;
const DOT: i32 = 5;
/// Width and height of a letter in pixels.
const LETTER: (i32, i32) = (8, 18);
/// Margin in pixels around the picture and beside the labels.
const MARGIN: i32 = 16;
const GAP: i32 = 56;

/// Returns the heights of labels for dots of these heights: in order, close to the dots, without overlap, inside the
/// picture.
fn spread(dots: &[i32], bottom: i32) -> Vec<i32> {
    let mut order: Vec<_> = (0..dots.len()).collect();
    order.sort_by_key(|i| dots[*i]);
    let mut found = dots.to_vec();
    let mut least = LETTER.1;
    for &i in &order {
        found[i] = found[i].max(least);
        least = found[i] + LETTER.1;
    }
    let mut most = bottom - LETTER.1;
    for &i in order.iter().rev() {
        found[i] = found[i].min(most);
        most = found[i] - LETTER.1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_apart_in_the_order_of_their_dots_and_inside() {
        for dots in [vec![300, 100, 101, 101, 590, 589, 2], vec![580; 9], vec![], vec![50]] {
            let found = spread(&dots, 600);
            for (i, a) in found.iter().enumerate() {
                assert!((LETTER.1..=600 - LETTER.1).contains(a), "{found:?}");
                for (j, b) in found.iter().enumerate().skip(i + 1) {
                    assert!((a - b).abs() >= LETTER.1, "{i} and {j}: {found:?}");
                    assert!(dots[i] == dots[j] || (a < b) == (dots[i] < dots[j]), "{i} and {j}: {found:?}");
                }
            }
        }
        assert_eq!(spread(&[100, 300], 600), [100, 300]);
    }
}
