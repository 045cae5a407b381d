//! The roofline of a device with what ran on it.

use super::pictures::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tilework::analysis::Roofline;

/// Something that ran.
pub(crate) struct Dot {
    pub(crate) text: String,
    /// Operations a byte.
    pub(crate) intensity: f64,
    pub(crate) flops: f64,
}

/// Both axes logarithmic; what is measured lies below the roof.
pub(crate) struct RooflinePicture {
    pub(crate) title: String,
    /// What operations a byte are counted of.
    pub(crate) intensity: &'static str,
    pub(crate) roof: Roofline,
    pub(crate) dots: Vec<Dot>,
}

impl Picture for RooflinePicture {
    fn size(&self) -> (u32, u32) {
        (960, 600)
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
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .margin_right(120)
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
        // The roof's own numbers stand above it, where they end.
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
        let at: Vec<_> =
            self.dots.iter().map(|d| chart.backend_coord(&(d.intensity, d.flops * 1e-9))).collect();
        let texts: Vec<_> = self.dots.iter().map(|d| d.text.as_str()).collect();
        let steps = (0..=64).map(|i| least * (most / least).powf(f64::from(i) / 64.0));
        let roof: Vec<_> = steps.map(|x| chart.backend_coord(&(x, roofline.attainable(x)))).collect();
        let right = self.size().0 as i32;
        for (i, (&(x, y), place)) in at.iter().zip(places(&at, &texts, &roof, right)).enumerate() {
            let dot = Circle::new((x, y), DOT, colour(i).filled());
            area.draw(&dot).and_then(|()| area.draw_text(texts[i], &text, place)).map_err(|e| said(&e))?;
        }
        Ok(())
    }
}

const TEXT: i32 = 14;
const DOT: i32 = 5;
/// Pixels of a letter, across and down.
const LETTER: (i32, i32) = (8, 16);

/// Where the texts of dots begin so that they cover neither dots nor one another nor the roof, as points close to one
/// another: beside, below or above their dot, or further away.
fn places(dots: &[(i32, i32)], texts: &[&str], roof: &[(i32, i32)], right: i32) -> Vec<(i32, i32)> {
    let around = |(x, y): &(i32, i32)| [x - DOT, y - DOT, x + DOT, y + DOT];
    let mut taken: Vec<[i32; 4]> = dots.iter().chain(roof).map(around).collect();
    let mut found = Vec::new();
    for (&(x, y), text) in dots.iter().zip(texts) {
        let (wide, high) = (text.chars().count() as i32 * LETTER.0, LETTER.1);
        let beside = DOT + 4;
        let near = [
            (x + beside, y - high / 2),
            (x - beside - wide, y - high / 2),
            (x - wide / 2, y + beside),
            (x - wide / 2, y - beside - high),
        ];
        let further = (1..8).flat_map(|i| [(x + beside, y + i * high), (x + beside, y - i * high)]);
        let cover = |&(left, top): &(i32, i32)| [left, top, left + wide, top + high];
        let free = |place: &(i32, i32)| {
            let [left, top, end, bottom] = cover(place);
            let apart = |[l, t, e, b]: &[i32; 4]| *e < left || end < *l || *b < top || bottom < *t;
            left > 0 && end < right && taken.iter().all(apart)
        };
        let place = near.into_iter().chain(further).find(free).unwrap_or(near[0]);
        taken.push(cover(&place));
        found.push(place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cover_neither_dots_nor_one_another() {
        let dots = [(100, 100), (104, 102), (110, 98), (100, 104), (590, 100)];
        let texts = ["gemm-f32", "gemm-f16", "conv-f32", "attention-f32", "attention-f16"];
        let found = places(&dots, &texts, &[], 600);
        for (i, (left, top)) in found.iter().enumerate() {
            let end = left + texts[i].len() as i32 * LETTER.0;
            assert!(end < 600);
            for (j, (l, t)) in found.iter().enumerate().filter(|(j, _)| *j != i) {
                let apart =
                    (top - t).abs() >= LETTER.1 || *l > end || *left > l + texts[j].len() as i32 * LETTER.0;
                assert!(apart, "{i} and {j}: {found:?}");
            }
        }
    }
}
