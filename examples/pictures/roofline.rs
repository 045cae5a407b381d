//! The roofline of a device with what ran on it.

use super::pictures::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;
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
            .label_style(("sans-serif", 14))
            .draw()
            .map_err(|e| said(&e))?;
        let corners = [least, roofline.ridge(), most].map(|x| (x, roofline.attainable(x)));
        chart.draw_series(LineSeries::new(corners, BLACK.stroke_width(2))).map_err(|e| said(&e))?;
        let label = |text: String, at: (f64, f64)| Text::new(text, at, ("sans-serif", 14));
        chart
            .draw_series([
                label(format!("{:.0} GFLOP/s", roofline.peak), (most / 3.0, roofline.peak * 1.5)),
                label(
                    format!("{:.0} GB/s", roofline.bandwidth),
                    (least * 1.5, roofline.attainable(least) * 2.6),
                ),
            ])
            .map_err(|e| said(&e))?;
        // From the top down, so that a text that would cover the one before moves below it.
        let mut order: Vec<_> = self.dots.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| b.flops.total_cmp(&a.flops));
        let mut taken: Vec<(i32, i32)> = Vec::new();
        for (i, dot) in order {
            let (at, colour) = ((dot.intensity, dot.flops * 1e-9), colour(i));
            let (x, y) = chart.backend_coord(&at);
            let mut line = y;
            while taken.iter().any(|(tx, ty)| (x - tx).abs() < 220 && (line - ty).abs() < 16) {
                line += 1;
            }
            taken.push((x, line));
            let dot = EmptyElement::at(at)
                + Circle::new((0, 0), 5, colour.filled())
                + Text::new(dot.text.clone(), (9, line - y - 6), ("sans-serif", 14));
            chart.draw_series([dot]).map_err(|e| said(&e))?;
        }
        Ok(())
    }
}
