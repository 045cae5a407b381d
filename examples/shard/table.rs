//! The table of `shard`.

use super::common::measured::{aligned, digits, time};
use super::work::{Job, Measured};

/// A number of devices and what was measured on them.
pub(crate) struct Row {
    ranks: usize,
    seconds: f64,
    work: f64,
    bytes: u64,
    share: Option<f64>,
    predicted: f64,
}

impl Row {
    /// The time, if it is that of one device.
    pub(crate) fn alone(&self) -> Option<f64> {
        (self.ranks == 1).then_some(self.seconds)
    }

    pub(crate) fn new(ranks: usize, measured: &[Measured]) -> Self {
        let largest = |of: fn(&Measured) -> f64| measured.iter().map(of).fold(0.0, f64::max);
        let seconds = largest(|m| m.seconds);
        // Of the rank that sends most.
        let share = measured.iter().filter_map(|m| Some(m.bytes as f64 / seconds / m.link?.bandwidth)).reduce(f64::max);
        Self {
            ranks,
            seconds,
            work: measured.iter().map(|m| m.work).sum(),
            bytes: measured.iter().map(|m| m.bytes).sum(),
            share,
            predicted: largest(|m| m.predicted),
        }
    }
}

/// Returns the table. Speed-ups compare rates of work, because one device may not hold all of it.
pub(crate) fn table(job: &Job, link: &str, rows: &[Row]) -> String {
    let (unit, scale) = job.unit();
    let columns = [
        ("devices", 7, true),
        ("time", 10, true),
        (unit, 14, true),
        ("speed-up", 8, true),
        ("moved MB", 10, true),
        ("GB/s", 8, true),
        ("of link", 7, true),
        ("predicted", 10, true),
    ];
    let title: Vec<String> = columns.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let mut text = format!("\n{}, link: {link}\n{}", job.describe(), aligned(&title, &columns));
    let rate = |row: &Row| row.work / row.seconds;
    // One device reduces nothing.
    let alone = rows.first().filter(|row| row.ranks == 1 && !matches!(job, Job::Reduce { .. }));
    let first = alone.map(rate);
    for row in rows {
        let cells = [
            row.ranks.to_string(),
            time(row.seconds),
            digits(rate(row) * scale),
            first.map_or_else(|| "-".into(), |one| format!("{:.2}", rate(row) / one)),
            digits(row.bytes as f64 * 1e-6),
            digits(row.bytes as f64 / row.seconds * 1e-9),
            row.share.map_or_else(|| "-".into(), |share| format!("{:.0} %", 100.0 * share)),
            if row.predicted > 0.0 { time(row.predicted) } else { "-".into() },
        ];
        text += &aligned(&cells, &columns);
    }
    text
}
