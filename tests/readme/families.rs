//! Measurements by family of ops: a row each in the README, and the chart.

use super::{by_cuda, number, text};
use serde_json::Value;
use std::fmt::Write as _;

/// A family as the README names it, and the peer's time divided by ours in each of its cases.
pub(super) struct Family {
    name: &'static str,
    peers: Vec<String>,
    ratios: Vec<f64>,
}

/// The families in the order of the table. Every op that has a peer belongs to one.
const FAMILIES: [(&str, &[&str]); 21] = [
    ("elementwise, casts, transposes", &["map", "zip", "axpy", "cast", "transpose"]),
    ("reductions, histograms", &["reduce", "reduce-by-key", "segmented-reduce", "histogram"]),
    (
        "scans, selections",
        &[
            "scan",
            "segmented-scan",
            "scan-by-key",
            "select",
            "select-if",
            "partition",
            "unique",
            "unique-by-key",
            "run-length",
        ],
    ),
    ("dot products, vector norms", &["dot", "nrm2", "asum", "iamax"]),
    ("random numbers", &["random"]),
    ("merges, sorted sets", &["merge", "set-union", "set-intersection", "set-difference"]),
    ("sorts", &["sort", "merge-sort", "argsort", "shuffle"]),
    ("segments by offsets", &["segmented-sort", "reduce-offsets"]),
    ("gather, scatter, search", &["gather", "scatter", "lower-bound", "upper-bound"]),
    ("reverse, rotate, differences", &["reverse", "rotate", "adjacent-difference"]),
    ("top-k", &["top-k", "top-k-rows"]),
    ("matrix products, f32", &["gemm", "gemm-batched", "gemv"]),
    ("triangular and symmetric matrices", &["trsm", "trmm", "syrk", "symm"]),
    ("matrix products, tensor cores", &[]),
    ("int8 products, quantisation", &["gemm-int8", "quantize", "dequantize"]),
    ("sparse products", &["spmv", "spmm"]),
    ("image and volume filters", &["filter1d", "filter2d", "filter3d"]),
    ("convolution layers, f32", &["conv", "conv-backward-data", "conv-backward-weights", "conv-transpose"]),
    ("convolution layers, f16: inference", &[]),
    ("convolution layers, f16: gradients", &[]),
    (
        "norms, softmax, pooling",
        &[
            "softmax",
            "log-softmax",
            "layer-norm",
            "rms-norm",
            "pool",
            "batch-norm",
            "batch-norm-train",
            "batch-norm-backward",
        ],
    ),
];

/// The family of a measurement.
fn family_of(row: &Value) -> &'static str {
    let (op, dtype) = (text(row, "op"), text(row, "dtype"));
    match op {
        "attention" if by_cuda(row) => "attention, by CUDA",
        "attention" => "attention",
        "attention-backward" => "attention: gradients",
        "conv" if dtype == "f16" => "convolution layers, f16: inference",
        "conv-backward-data" | "conv-backward-weights" if dtype == "f16" => "convolution layers, f16: gradients",
        "gemm" | "gemm-int8" if by_cuda(row) => "matrix products, by CUDA",
        "gemm" if dtype != "f32" => "matrix products, tensor cores",
        _ => FAMILIES.iter().find(|(_, ops)| ops.contains(&op)).unwrap_or_else(|| panic!("{op} has no family")).0,
    }
}

/// Sorts the measurements into families.
pub(super) fn grouped(rows: &[Value]) -> Vec<Family> {
    let names = FAMILIES.iter().map(|(name, _)| *name);
    let names = names.chain(["attention", "attention: gradients", "matrix products, by CUDA", "attention, by CUDA"]);
    let family = |name| {
        let of: Vec<_> = rows.iter().filter(|row| family_of(row) == name).collect();
        let mut peers: Vec<_> = of.iter().map(|row| text(row, "peer").to_owned()).collect();
        peers.sort();
        peers.dedup();
        let ratios = of.iter().map(|row| number(row, "peer_seconds") / number(row, "seconds")).collect();
        Family { name, peers, ratios }
    };
    names.map(family).filter(|family| !family.ratios.is_empty()).collect()
}

impl Family {
    fn median(&self) -> f64 {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let (left, right) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        (left * right).sqrt()
    }

    fn slowest(&self) -> f64 {
        self.ratios.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn fastest(&self) -> f64 {
        self.ratios.iter().copied().fold(0.0, f64::max)
    }
}

/// Writes a row for each family.
pub(super) fn table(families: &[Family]) -> String {
    let mut table =
        "| family | peer | cases | slowest case | median | fastest case |\n|---|---|---:|---:|---:|---:|\n".to_owned();
    for f in families {
        let (peers, cases) = (f.peers.join(", "), f.ratios.len());
        let _ = writeln!(
            table,
            "| {} | {peers} | {cases} | {:.2} | **{:.2}** | {:.2} |",
            f.name,
            f.slowest(),
            f.median(),
            f.fastest()
        );
    }
    table
}

const WIDTH: f64 = 860.0;
/// Where the axis lies, from left to right.
const AXIS: (f64, f64) = (250.0, 800.0);
const TOP: f64 = 76.0;
const ROW: f64 = 26.0;
/// The ends of the axis, as powers of 2.
const POWERS: (i32, i32) = (-4, 5);

/// Where a ratio lies on the axis.
fn place(ratio: f64) -> f64 {
    let (low, high) = (f64::from(POWERS.0), f64::from(POWERS.1));
    AXIS.0 + (ratio.log2().clamp(low, high) - low) / (high - low) * (AXIS.1 - AXIS.0)
}

/// Draws a bar from 1 to the median of each family, and a dot for each case.
pub(super) fn chart(families: &[Family]) -> String {
    let bottom = TOP + ROW * families.len() as f64;
    let height = bottom + 46.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"#24292f\">\n\
         <title>Time of NVIDIA's libraries divided by tilework's, by family of ops</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"bold\">Speed against NVIDIA's libraries on an H100</text>\n\
         <text x=\"16\" y=\"46\" fill=\"#57606a\">Their time divided by ours; right of 1 tilework is faster. \
         Bar: median. Dot: one case.</text>\n"
    );
    for power in POWERS.0..=POWERS.1 {
        let (x, ratio) = (place(2f64.powi(power)), 2f64.powi(power));
        let (color, width) = if power == 0 { ("#57606a", 1.5) } else { ("#d8dee4", 1.0) };
        let label = if power < 0 { format!("1/{}", 2f64.powi(-power)) } else { format!("{ratio}") };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#57606a\">{label}</text>",
            TOP - 8.0,
            bottom + 18.0
        );
    }
    for (i, family) in families.iter().enumerate() {
        let (y, median) = (TOP + ROW * (i as f64 + 0.5), family.median());
        let (from, to) = (place(median.min(1.0)), place(median.max(1.0)));
        let color = if median < 1.0 { "#d4a72c" } else { "#2da44e" };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" fill=\"{color}\"/>",
            AXIS.0 - 12.0,
            y + 4.5,
            family.name,
            y - 7.0,
            (to - from).max(1.0)
        );
        for ratio in &family.ratios {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"#24292f\" fill-opacity=\"0.45\"/>",
                place(*ratio)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"bold\">{median:.2}</text>",
            AXIS.1 + 12.0,
            y + 4.5
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#57606a\">Vulkan unless \u{201c}by CUDA\u{201d}; \
         peers: CUB, Thrust, cuBLAS, cuSPARSE, cuRAND, PyTorch (cuDNN)</text>",
        WIDTH - 16.0,
        bottom + 38.0
    );
    svg + "</svg>\n"
}
