//! The pictures: lines and bars per op, a roofline per device.

use super::backends::Backend;
use super::cases::Case;
use super::chart::{Bar, Bars, Chart, Line};
use super::common::measured::{digits, time};
use super::common::pictures::roofline::{Dot, RooflinePicture};
use super::common::pictures::save;
use super::rows::{Row, least_seconds, rate, unit};
use std::path::{Path, PathBuf};

/// Writes all pictures as SVG and PNG, and returns their number.
pub(crate) fn all(folder: &Path, cases: &[&'static Case], rows: &[Row], backends: &[Backend]) -> Result<usize, String> {
    let mut written = Pictures { folder: folder.to_owned(), count: 0 };
    for case in cases {
        let of: Vec<_> = rows.iter().filter(|r| r.case.id() == case.id() && r.timed.is_some()).collect();
        let mut extents: Vec<_> = of.iter().map(|r| r.extent).collect();
        extents.sort_unstable();
        extents.dedup();
        let Some(largest) = extents.last() else { continue };
        if extents.len() > 1 {
            written.save(&format!("{}-time", case.id()), &times(case, &of, backends))?;
            written.save(&format!("{}-throughput", case.id()), &throughput(case, &of, backends))?;
        }
        // The largest size that most backends reached, and the largest of all.
        let count = |extent: &usize| of.iter().filter(|r| r.extent == *extent).count();
        let shared = extents.iter().max_by_key(|e| (count(e), **e)).unwrap_or(largest);
        written.save(&format!("{}-bars", case.id()), &bars(case, &of, *shared, backends))?;
        if shared != largest {
            written.save(&format!("{}-bars-largest", case.id()), &bars(case, &of, *largest, backends))?;
        }
    }
    for (place, backend) in backends.iter().enumerate() {
        if let Some(picture) = roofline(place, backend, rows) {
            written.save(&format!("roofline-{}", backend.name), &picture)?;
        }
    }
    Ok(written.count)
}

struct Pictures {
    folder: PathBuf,
    count: usize,
}

impl Pictures {
    fn save(&mut self, name: &str, picture: &impl super::common::pictures::Picture) -> Result<(), String> {
        for ending in ["svg", "png"] {
            save(&self.folder.join(format!("{name}.{ending}")), picture)?;
        }
        self.count += 1;
        Ok(())
    }
}

/// Formats a size.
fn short(x: f64) -> String {
    let n = x.round() as u64;
    match n {
        _ if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
        _ if n >= 1 << 13 && n.is_multiple_of(1 << 10) => format!("{}K", n >> 10),
        _ => n.to_string(),
    }
}

/// Returns a line of `y` values for each backend that has results.
fn lines(
    of: &[&Row], backends: &[Backend], y: impl Fn(&Row, f64) -> f64, ceiling: impl Fn(&Row, &Backend) -> Option<f64>,
) -> Vec<Line> {
    let line = |(place, backend): (usize, &Backend)| {
        let mine: Vec<_> = of.iter().filter(|r| r.place == place).collect();
        let x = |r: &Row| r.extent as f64;
        let points = mine.iter().filter_map(|r| r.seconds().map(|s| (x(r), y(r, s)))).collect();
        let ceiling = mine.iter().filter_map(|r| ceiling(r, backend).map(|y| (x(r), y))).collect();
        (!mine.is_empty()).then(|| Line { name: backend.name.clone(), place, points, ceiling })
    };
    backends.iter().enumerate().filter_map(line).collect()
}

fn times(case: &Case, of: &[&Row], backends: &[Backend]) -> Chart {
    Chart {
        title: format!("{} {}: time", case.op, case.dtype),
        x: case.axis.into(),
        y: "median time".into(),
        lines: lines(of, backends, |_, seconds| seconds, |_, _| None),
        ceiling: String::new(),
        x_label: short,
        y_label: |y| time(y).replace(".00 ", " ").replace(".0 ", " "),
    }
}

fn throughput(case: &Case, of: &[&Row], backends: &[Backend]) -> Chart {
    let roof = |row: &Row, backend: &Backend| least_seconds(row.cost, backend).map(|s| rate(case, row.cost, s));
    Chart {
        title: format!("{} {}: throughput", case.op, case.dtype),
        x: case.axis.into(),
        y: unit(case).into(),
        lines: lines(of, backends, |row, seconds| rate(case, row.cost, seconds), roof),
        ceiling: "roof: copies, f32 multiply-adds".into(),
        x_label: short,
        y_label: |y| if y >= 1.0 { format!("{y:.0}") } else { format!("{y}") },
    }
}

fn bars(case: &Case, of: &[&Row], extent: usize, backends: &[Backend]) -> Bars {
    let mut chosen: Vec<_> = of.iter().filter(|r| r.extent == extent).collect();
    chosen.sort_by(|a, b| a.seconds().unwrap_or(0.0).total_cmp(&b.seconds().unwrap_or(0.0)));
    let (size, unit) = (chosen.first().map_or("", |r| r.size.as_str()), unit(case));
    let bar = |row: &&&Row| {
        let seconds = row.seconds()?;
        let amount = rate(case, row.cost, seconds);
        Some(Bar {
            name: backends[row.place].name.clone(),
            place: row.place,
            amount,
            text: format!("{} {unit}, {} ({})", digits(amount), time(seconds), row.variant),
        })
    };
    Bars {
        title: format!("{} {}: {size}", case.op, case.dtype),
        about: unit.into(),
        bars: chosen.iter().filter_map(bar).collect(),
    }
}

/// Returns a device's roofline with each op at its largest size.
fn roofline(place: usize, backend: &Backend, rows: &[Row]) -> Option<RooflinePicture> {
    let roof = backend.roof?;
    let mine = || rows.iter().filter(|r| r.place == place && r.cost.flop > 0.0);
    let last = |row: &&Row| !mine().any(|r| r.case.id() == row.case.id() && r.extent > row.extent);
    let dot = |row: &Row| {
        let seconds = row.seconds()?;
        Some(Dot { text: row.case.id(), intensity: row.cost.flop / row.cost.bytes, flops: row.cost.flop / seconds })
    };
    let dots: Vec<_> = mine().filter(last).filter_map(dot).collect();
    (!dots.is_empty()).then(|| RooflinePicture {
        title: format!("{}: every op at its largest size", backend.name),
        intensity: "operations per byte (minimum traffic)",
        roof,
        dots,
    })
}
