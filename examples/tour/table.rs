//! Formats rows as aligned text or Markdown.

use crate::cases::{Case, Outcome};
use crate::common::measured::{aligned, digits, time};
use crate::material::Material;
use tilework::Gpu;

/// Columns: title, width, right-aligned.
const COLUMNS: [(&str, usize, bool); 9] = [
    ("op", 20, false),
    ("type", 4, false),
    ("size", 14, true),
    ("variant", 15, false),
    ("time", 8, true),
    ("rate", 13, true),
    ("ceiling", 7, true),
    ("error", 7, true),
    ("result", 6, false),
];

type Cells = [String; COLUMNS.len()];

/// Formats the lines above an adapter's rows.
pub(crate) fn heading(gpu: &Gpu, material: &Material, markdown: bool) -> String {
    let p = gpu.profile();
    let (name, driver, backend) = (&p.name, &p.driver, &p.backend);
    let ceilings = gpu.ceilings().map_or_else(
        |e| format!("ceilings not measured: {e}"),
        |c| {
            let (copy, fma) = (c.copy_bytes_per_second * 1e-9, c.fma_flop_per_second * 1e-9);
            format!("copies {} GB/s, multiply-adds {} GFLOP/s", digits(copy), digits(fma))
        },
    );
    let clock = if p.features.timestamps { "timed by the device" } else { "timed by the host" };
    let facts = format!("{ceilings}; {clock}; {}", material.describe());
    let titles = line(&COLUMNS.map(|(title, ..)| title.to_owned()), markdown);
    if !markdown {
        return format!("\n{name}, {backend}, {driver}\n{facts}\n{titles}");
    }
    let rule: String =
        COLUMNS.iter().map(|(_, _, right)| if *right { "|---:" } else { "|---" }).chain(["|\n"]).collect();
    format!("\n**{name}**, {backend}, {driver}; {facts}\n\n{titles}{rule}")
}

/// Formats the row of an op that ran.
pub(crate) fn row(case: &Case, outcome: &Outcome, markdown: bool) -> String {
    let o = outcome;
    let rate = match o.report.bound() {
        Some("arithmetic") => format!("{} GFLOP/s", digits(o.gflops())),
        _ => format!("{} GB/s", digits(o.gbps())),
    };
    let cells = [
        case.op.name.to_owned(),
        case.dtype.to_string(),
        o.size.clone(),
        o.report.decision.variant.to_owned(),
        time(o.seconds),
        rate,
        o.percent().map_or_else(|| "-".to_owned(), |p| format!("{p:.0} %")),
        if o.check.error == 0.0 { "0".to_owned() } else { format!("{:.1e}", o.check.error) },
        if o.check.passed { "pass" } else { "FAILED" }.to_owned(),
    ];
    line(&cells, markdown)
}

/// Formats the row of an op that could not run.
pub(crate) fn remark(case: &Case, text: &str, markdown: bool) -> String {
    if !markdown {
        let ((_, op, _), (_, dtype, _)) = (COLUMNS[0], COLUMNS[1]);
        return format!("{:<op$}  {:<dtype$}  {text}\n", case.op.name, case.dtype);
    }
    let mut cells: Cells = Default::default();
    (cells[0], cells[1]) = (case.op.name.to_owned(), case.dtype.to_string());
    cells[COLUMNS.len() - 1] = text.to_owned();
    line(&cells, markdown)
}

fn line(cells: &Cells, markdown: bool) -> String {
    if markdown {
        return format!("| {} |\n", cells.join(" | "));
    }
    aligned(cells, &COLUMNS)
}
