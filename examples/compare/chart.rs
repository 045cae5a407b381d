//! Line and bar charts by backend, on logarithmic axes.

use super::common::pictures::{Picture, colour};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use std::ops::Range;

/// A line of a [`Chart`].
pub(crate) struct Line {
    pub(crate) name: String,
    /// Selects colour and mark.
    pub(crate) place: usize,
    pub(crate) points: Vec<(f64, f64)>,
    /// Ceiling, dashed and without marks.
    pub(crate) ceiling: Vec<(f64, f64)>,
}

/// A line chart over sizes.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) lines: Vec<Line>,
    /// Legend of the dashed lines; empty if there are none.
    pub(crate) ceiling: String,
    pub(crate) x_label: fn(f64) -> String,
    pub(crate) y_label: fn(f64) -> String,
}

const TEXT: i32 = 14;
/// Pixels per line of the legend.
const LEGEND_LINE: i32 = 22;
const LEGEND_WIDTH: i32 = 330;

/// A logarithmic axis with given ticks.
struct Axis {
    least: f64,
    most: f64,
    ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let part = (value / self.least).ln() / (self.most / self.least).ln();
        begin + (part * f64::from(end - begin)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.least..self.most
    }
}

/// Returns ticks for a logarithmic axis from `least` to `most`: powers of ten, with 2 and 5 between if they are few,
/// and thinned out if they are many.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let (low, high) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let steps: &[f64] = if high - low <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = ((high - low) / 8 + 1) as usize;
    let inside = |x: &f64| *x >= least * 0.999 && *x <= most * 1.001;
    (low..=high)
        .step_by(every)
        .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
        .filter(inside)
        .collect()
}

/// Returns the smallest and the largest value, widened by a factor `room`.
fn range(values: impl Iterator<Item = f64> + Clone, room: f64) -> Option<(f64, f64)> {
    let values = values.filter(|v| v.is_finite() && *v > 0.0);
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    (most > 0.0).then(|| (least / room, most * room))
}

impl Picture for Chart {
    fn size(&self) -> (u32, u32) {
        // The legend stands beside the data.
        let legend = (self.lines.len() as i32 + 3) * LEGEND_LINE + 60;
        (1120, legend.max(520) as u32)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let all = self.lines.iter().flat_map(|l| l.points.iter().chain(&l.ceiling)).copied();
        let (x, y) = (range(all.clone().map(|p| p.0), 1.2), range(all.map(|p| p.1), 1.6));
        let (Some(x), Some(y)) = (x, y) else { return Err(format!("{}: nothing to draw", self.title)) };
        let (left, legend) = area.split_horizontally(self.size().0 as i32 - LEGEND_WIDTH);
        // Ticks at the measured sizes.
        let mut sizes: Vec<f64> = self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let sparse = sizes.len().div_ceil(9).max(1);
        let sizes: Vec<f64> = sizes.iter().rev().step_by(sparse).rev().copied().collect();
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(84)
            .build_cartesian_2d(
                Axis { least: x.0, most: x.1, ticks: sizes },
                Axis { least: y.0, most: y.1, ticks: ticks(y.0, y.1) },
            )
            .map_err(|e| said(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|x| (self.x_label)(*x))
            .y_label_formatter(&|y| (self.y_label)(*y))
            .label_style(("sans-serif", TEXT))
            .draw()
            .map_err(|e| said(&e))?;
        for line in &self.lines {
            let (ink, points) = (colour(line.place), line.points.iter().copied());
            if line.ceiling.len() > 1 {
                let dashes = DashedLineSeries::new(line.ceiling.iter().copied(), 5, 4, ink.mix(0.8).stroke_width(1));
                chart.draw_series(dashes).map_err(|e| said(&e))?;
            }
            chart.draw_series(LineSeries::new(points.clone(), ink.stroke_width(2))).map_err(|e| said(&e))?;
            for point in points {
                chart.plotting_area().draw(&mark(line.place, point)).map_err(|e| said(&e))?;
            }
        }
        let mut row = 48;
        for line in &self.lines {
            let bar = [(8, row), (40, row)];
            legend
                .draw(&PathElement::new(bar, colour(line.place).stroke_width(2)))
                .and_then(|()| legend.draw(&mark(line.place, (24, row))))
                .and_then(|()| write(&legend, &line.name, (48, row)))
                .map_err(|e| said(&e))?;
            row += LEGEND_LINE;
        }
        if self.lines.iter().any(|l| l.ceiling.len() > 1) {
            for start in [8, 20, 32] {
                let dash = PathElement::new([(start, row), (start + 8, row)], BLACK.stroke_width(1));
                legend.draw(&dash).map_err(|e| said(&e))?;
            }
            write(&legend, &self.ceiling, (48, row)).map_err(|e| said(&e))?;
        }
        Ok(())
    }
}

/// Writes text centred at height `y`.
fn write<D: DrawingBackend>(
    area: &DrawingArea<D, Shift>, text: &str, (x, y): (i32, i32),
) -> Result<(), DrawingAreaErrorKind<D::ErrorType>> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let style = ("sans-serif", TEXT).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text(text, &style, (x, y))
}

/// Returns the mark of line `place`.
fn mark<'a, C: Clone + 'a, D: DrawingBackend + 'a>(place: usize, at: C) -> DynElement<'a, D, C> {
    let ink = colour(place).filled();
    let here = EmptyElement::at(at);
    match place % 4 {
        0 => (here + Circle::new((0, 0), 5, ink)).into_dyn(),
        1 => (here + Rectangle::new([(-4, -4), (5, 5)], ink)).into_dyn(),
        2 => (here + TriangleMarker::new((0, 0), 6, ink)).into_dyn(),
        _ => (here + Polygon::new([(-6, 0), (0, -6), (6, 0), (0, 6)], ink)).into_dyn(),
    }
}

/// A bar, with its name before and its amount behind it.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) place: usize,
    pub(crate) amount: f64,
    pub(crate) text: String,
}

/// A bar chart, sorted by amount.
pub(crate) struct Bars {
    pub(crate) title: String,
    /// Meaning of the amounts.
    pub(crate) about: String,
    pub(crate) bars: Vec<Bar>,
}

const BAR: i32 = 34;
const NAMES: i32 = 290;
const AMOUNTS: i32 = 270;
/// Ratio of amounts above which the axis is logarithmic.
const FAR: f64 = 30.0;

impl Picture for Bars {
    fn size(&self) -> (u32, u32) {
        (1120, 100 + self.bars.len() as u32 * BAR as u32)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let amounts = self.bars.iter().map(|b| b.amount);
        let Some((least, most)) = range(amounts, 1.0) else {
            return Err(format!("{}: nothing to draw", self.title));
        };
        let title = ("sans-serif", 20).into_text_style(area);
        area.draw_text(&self.title, &title, (14, 12)).map_err(|e| said(&e))?;
        let room = f64::from(self.size().0 as i32 - NAMES - AMOUNTS);
        // On a linear axis short bars would vanish. The logarithmic one begins a decade below the shortest.
        let logarithmic = most > FAR * least;
        let (low, high) = (least.log10() - 1.0, most.log10());
        let length = |amount: f64| {
            let part = if logarithmic { (amount.log10() - low) / (high - low) } else { amount / most };
            (part * room) as i32
        };
        let scale = if logarithmic { "on a logarithmic scale, with rules at powers of ten" } else { "from zero" };
        write(area, &format!("{}, {scale}", self.about), (14, 50)).map_err(|e| said(&e))?;
        let (top, bottom) = (70, 70 + self.bars.len() as i32 * BAR);
        let powers = low.ceil() as i32..=high.floor() as i32;
        for tick in powers.filter(|_| logarithmic).map(|power| 10f64.powi(power)) {
            let x = NAMES + length(tick);
            let rule = PathElement::new([(x, top), (x, bottom)], BLACK.mix(0.15));
            area.draw(&rule).map_err(|e| said(&e))?;
        }
        for (bar, y) in self.bars.iter().zip((top..).step_by(BAR as usize)) {
            let end = NAMES + length(bar.amount).max(2);
            let shape = Rectangle::new([(NAMES, y + 5), (end, y + BAR - 5)], colour(bar.place).filled());
            area.draw(&shape)
                .and_then(|()| write(area, &bar.name, (14, y + BAR / 2)))
                .and_then(|()| write(area, &bar.text, (end + 8, y + BAR / 2)))
                .map_err(|e| said(&e))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(0.9, 45.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
        let wide = ticks(1e-9, 1e9);
        assert!(wide.len() < 10 && wide.iter().all(|x| x.log10().round() == x.log10()), "{wide:?}");
    }
}
