//! Rows of results, as text and as JSON.

use super::backends::{Backend, Timed};
use super::cases::Case;
use super::common::measured::{aligned, digits, time};
use serde_json::{Value, json};
use tilework::program::Cost;

/// A result, right or wrong.
pub(crate) struct Row {
    pub(crate) case: &'static Case,
    pub(crate) extent: usize,
    pub(crate) size: String,
    /// Index of its backend.
    pub(crate) place: usize,
    pub(crate) variant: String,
    pub(crate) cost: Cost,
    pub(crate) error: f64,
    /// `None` if the result is wrong.
    pub(crate) timed: Option<Timed>,
}

impl Row {
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.timed.as_ref().map(|t| t.median)
    }
}

/// Returns whether an op's rate counts operations, not bytes.
fn arithmetic(case: &Case) -> bool {
    matches!(case.op, "gemm" | "conv" | "filter2d" | "attention")
}

/// Returns the unit of an op's rate.
pub(crate) fn unit(case: &Case) -> &'static str {
    if arithmetic(case) { "GFLOP/s" } else { "GB/s" }
}

/// Returns the rate in GFLOP/s or GB/s.
pub(crate) fn rate(case: &Case, cost: Cost, seconds: f64) -> f64 {
    let work = if arithmetic(case) { cost.flop } else { cost.bytes };
    work / seconds * 1e-9
}

/// Returns the minimum time of the work, by the device's ceilings.
pub(crate) fn least_seconds(cost: Cost, backend: &Backend) -> Option<f64> {
    backend.roof.map(|roof| (cost.bytes / roof.bandwidth).max(cost.flop / roof.peak))
}

/// Columns: title, width, right-aligned.
const COLUMNS: [(&str, usize, bool); 8] = [
    ("op", 16, false),
    ("size", 28, true),
    ("backend", 26, false),
    ("variant", 16, false),
    ("time", 8, true),
    ("rate", 13, true),
    ("roof", 6, true),
    ("error", 7, true),
];

pub(crate) fn heading() -> String {
    aligned(&COLUMNS.map(|(title, ..)| title.to_owned()), &COLUMNS)
}

pub(crate) fn describe(row: &Row, backends: &[Backend]) -> String {
    let backend = &backends[row.place];
    let (times, rates, share) = match row.seconds() {
        None => ("WRONG".into(), String::new(), String::new()),
        Some(s) => (
            time(s),
            format!("{} {}", digits(rate(row.case, row.cost, s)), unit(row.case)),
            least_seconds(row.cost, backend).map_or_else(String::new, |l| format!("{:.0} %", 100.0 * l / s)),
        ),
    };
    let cells = [
        row.case.id(),
        row.size.clone(),
        backend.name.clone(),
        row.variant.clone(),
        times,
        rates,
        share,
        if row.error == 0.0 { "0".to_owned() } else { format!("{:.1e}", row.error) },
    ];
    aligned(&cells, &COLUMNS)
}

/// Rows in the format of the committed results, with additional fields. A row's peer is the vendor's library on the
/// same card.
pub(crate) fn json(rows: &[Row], backends: &[Backend], date: &str) -> Value {
    let peer = |row: &Row| {
        rows.iter().find(|r| {
            let same = r.case.id() == row.case.id() && r.size == row.size;
            same && r.place != row.place && backends[r.place].name.starts_with("cublas")
        })
    };
    let one = |row: &Row| {
        let backend = &backends[row.place];
        let seconds = row.seconds();
        let peer = peer(row).and_then(Row::seconds);
        let percent = seconds.and_then(|s| least_seconds(row.cost, backend).map(|least| 100.0 * least / s));
        json!({
            "op": row.case.op,
            "variant": row.variant,
            "dtype": row.case.dtype,
            "size": row.size,
            "seconds": seconds,
            "min_seconds": row.timed.as_ref().map(|t| t.min),
            "gbps": seconds.map(|s| row.cost.bytes / s * 1e-9),
            "gflops": seconds.map(|s| row.cost.flop / s * 1e-9),
            "clock": row.timed.as_ref().map(|t| &t.clock),
            "peer": peer.map(|_| "cuBLAS"),
            "peer_seconds": peer,
            "backend": backend.name,
            "adapter": backend.adapter,
            "driver": backend.driver,
            "date": date,
            "version": env!("CARGO_PKG_VERSION"),
            "percent": percent,
            "error": row.error,
            "passed": row.timed.is_some(),
        })
    };
    rows.iter().map(one).collect()
}
