//! Losses of training, as a picture.

use super::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Losses on a logarithmic axis: each batch, and means.
pub(crate) struct CurvePicture {
    pub(crate) title: String,
    pub(crate) losses: Vec<f32>,
    /// Batches of a mean, and its name.
    pub(crate) per_mean: usize,
    pub(crate) mean: &'static str,
}

impl CurvePicture {
    /// Returns the points of both lines: steps and losses that a logarithm exists of.
    fn lines(&self) -> [Vec<(f64, f64)>; 2] {
        let shown = |y: f64| y.is_finite() && y > 0.0;
        let batches = self.losses.iter().enumerate().map(|(i, y)| (i as f64, f64::from(*y)));
        let means = self.losses.chunks(self.per_mean.max(1)).enumerate().map(|(i, part)| {
            let mean = part.iter().map(|y| f64::from(*y)).sum::<f64>() / part.len() as f64;
            ((i * self.per_mean + part.len() / 2) as f64, mean)
        });
        [batches.filter(|p| shown(p.1)).collect(), means.filter(|p| shown(p.1)).collect()]
    }
}

impl Picture for CurvePicture {
    fn size(&self) -> (u32, u32) {
        (900, 520)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let lines = self.lines();
        let all = || lines.iter().flatten().map(|p| p.1);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let range = if least <= most { 0.9 * least..1.1 * most } else { 0.1..1.0 };
        let steps = self.losses.len().max(2) as f64;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..steps, range.log_scale())
            .map_err(|e| said(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.1))
            .x_desc("steps")
            .y_desc("loss")
            .x_label_formatter(&|x| format!("{x}"))
            .y_label_formatter(&|y| format!("{y:.3}"))
            .label_style(("sans-serif", 14))
            .draw()
            .map_err(|e| said(&e))?;
        let [batches, means] = lines;
        for (i, (points, name, width)) in [(batches, "batch", 1), (means, self.mean, 3)].into_iter().enumerate() {
            let style = colour(i).stroke_width(width);
            chart
                .draw_series(LineSeries::new(points, style).point_size(width))
                .map_err(|e| said(&e))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        }
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 14))
            .background_style(WHITE)
            .border_style(BLACK.mix(0.2))
            .draw()
            .map_err(|e| said(&e))
    }
}
