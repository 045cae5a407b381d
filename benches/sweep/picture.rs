//! Regret over size, one panel an op.

use super::number;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use serde_json::Value;

const PANEL: (u32, u32) = (320, 240);
const ACROSS: usize = 4;

/// Writes the rows as an SVG.
pub(crate) fn save(path: &str, rows: &[Value]) -> Result<(), String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).map_err(|_| "no font".to_owned())?;
    let mut kinds: Vec<String> = Vec::new();
    for row in rows {
        let kind = kind_of(row);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let down = kinds.len().div_ceil(ACROSS).max(1);
    let area = SVGBackend::new(path, (PANEL.0 * ACROSS as u32, PANEL.1 * down as u32)).into_drawing_area();
    area.fill(&WHITE).map_err(|e| e.to_string())?;
    for (kind, panel) in kinds.iter().zip(area.split_evenly((down, ACROSS))) {
        let points: Vec<_> = rows
            .iter()
            .filter(|row| kind_of(row) == *kind)
            .map(|row| (number(row, "work").max(1.0), number(row, "regret")))
            .filter(|(_, regret)| regret.is_finite())
            .collect();
        let fold =
            |start: f64, pick: fn(f64, f64) -> f64, of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(start, pick);
        let (least, most) = (fold(f64::MAX, f64::min, |p| p.0), fold(1.0, f64::max, |p| p.0));
        let worst = fold(1.5, f64::max, |p| p.1);
        let mut chart = ChartBuilder::on(&panel)
            .caption(format!("{kind}: regret over size"), ("sans-serif", 14))
            .margin(6)
            .x_label_area_size(22)
            .y_label_area_size(34)
            .build_cartesian_2d((least.min(most)..most * 1.5).log_scale(), (0.95..worst * 1.05).log_scale())
            .map_err(|e| e.to_string())?;
        let power = |x: &f64| format!("1e{:.0}", x.log10());
        let mesh = chart.configure_mesh().x_labels(4).y_labels(5).x_label_formatter(&power).draw();
        mesh.map_err(|e| e.to_string())?;
        let dots = points.iter().map(|point| Circle::new(*point, 2, BLUE.filled()));
        chart.draw_series(dots).map_err(|e| e.to_string())?;
    }
    area.present().map_err(|e| e.to_string())
}

fn kind_of(row: &Value) -> String {
    let [op, dtype] = ["op", "dtype"].map(|key| row[key].as_str().unwrap_or(""));
    format!("{op} {dtype}")
}
