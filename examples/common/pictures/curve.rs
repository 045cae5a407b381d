//! A curve of values by steps, with its running mean.

use super::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Values of steps 1, 2, ...
pub(crate) struct Curve {
    pub(crate) title: String,
    /// Labels of the axes.
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) values: Vec<f32>,
}

impl Picture for Curve {
    fn size(&self) -> (u32, u32) {
        (800, 450)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: DrawingAreaErrorKind<D::ErrorType>| e.to_string();
        let finite = || self.values.iter().copied().filter(|y| y.is_finite());
        let top = finite().fold(0.0, f32::max).max(1e-6) * 1.05;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0..self.values.len().max(1), 0f32..top)
            .map_err(said)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.1))
            .x_desc(self.x)
            .y_desc(self.y)
            .label_style(("sans-serif", 15))
            .draw()
            .map_err(said)?;
        let points = |values: &[f32]| -> Vec<(usize, f32)> {
            values
                .iter()
                .copied()
                .enumerate()
                .filter(|(_, y)| y.is_finite())
                .map(|(i, y)| (i + 1, y))
                .collect()
        };
        // The mean of the last twentieth of the steps.
        let window = (self.values.len() / 20).max(1);
        let mean = |i: usize| {
            let last = &self.values[(i + 1).saturating_sub(window)..=i];
            last.iter().sum::<f32>() / last.len() as f32
        };
        let means: Vec<f32> = (0..self.values.len()).map(mean).collect();
        chart.draw_series(LineSeries::new(points(&self.values), colour(0).mix(0.3))).map_err(said)?;
        chart.draw_series(LineSeries::new(points(&means), colour(0).stroke_width(2))).map_err(said)?;
        Ok(())
    }
}
