//! Every variant of the matrix product on one shape: what each step of the ladder brings, and where it stands on the
//! roofline of this device.
//!
//! ```sh
//! cargo run --release --example ladder
//! cargo run --release --example ladder -- 1000 2000 500 --out ladder.svg
//! ```
//!
//! Exit code 1 if a result is wrong, 2 for bad arguments, 3 if this machine has no adapter.

use plotters::prelude::*;
use std::io::Write;
use std::process::ExitCode;
use tilework::analysis::{Matmul, Roofline};
use tilework::dense::Gemm;
use tilework::gpu::AdapterFilter;
use tilework::program::Ceilings;
use tilework::{ErrorKind, Gpu, GpuOptions, Plannable};

const USAGE: &str = "\
usage: ladder [SIZE | M N K] [--adapter SUBSTRING] [--out FILE.svg]

  SIZE, or M N K       rows and columns of the product, and terms of a sum; 2048 on a card, 256 on a processor
  --adapter SUBSTRING  an adapter with this in its name or driver
  --out FILE.svg       where the picture goes; ladder.svg
";

/// A variant that ran.
struct Step {
    variant: &'static str,
    seconds: f64,
    flops: f64,
    /// Operations for each byte that its workgroups ask for.
    intensity: f64,
    /// Largest difference from the first variant.
    difference: f32,
}

struct Arguments {
    shape: Option<[usize; 3]>,
    adapter: String,
    out: String,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            say(USAGE);
            return ExitCode::SUCCESS;
        }
        Err(e) => return fail(&e.to_string(), 2),
    };
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            let no_adapter = Gpu::adapters().is_empty();
            fail(&e.to_string(), if no_adapter { 3 } else { 2 })
        }
    }
}

fn fail(what: &str, code: u8) -> ExitCode {
    // Nobody may be reading.
    let _ = writeln!(std::io::stderr(), "ladder: {what}");
    ExitCode::from(code)
}

fn say(text: &str) {
    let _ = write!(std::io::stdout(), "{text}");
}

fn arguments() -> Result<Option<Arguments>, Box<dyn std::error::Error>> {
    use lexopt::prelude::*;
    let (mut sizes, mut adapter, mut out) = (Vec::new(), String::new(), "ladder.svg".to_owned());
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("adapter") => adapter = parser.value()?.string()?,
            Long("out") => out = parser.value()?.string()?,
            Short('h') | Long("help") => return Ok(None),
            Value(size) => sizes.push(size.parse::<usize>()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let shape = match sizes[..] {
        [] => None,
        [n] => Some([n; 3]),
        [m, n, k] => Some([m, n, k]),
        _ => return Err("give one size, or three".into()),
    };
    if shape.is_some_and(|s| s.contains(&0)) {
        return Err("a product without elements or terms has nothing to measure".into());
    }
    Ok(Some(Arguments { shape, adapter, out }))
}

fn run(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    let adapter = match arguments.adapter.as_str() {
        "" => AdapterFilter::Best,
        name => AdapterFilter::Name(name.to_owned()),
    };
    let gpu = pollster::block_on(Gpu::request(GpuOptions { adapter, ..Default::default() }))?;
    let profile = gpu.profile();
    let [m, n, k] = arguments.shape.unwrap_or([if profile.is_cpu() { 256 } else { 2048 }; 3]);
    let ceilings = gpu.ceilings()?;
    say(&format!(
        "{} ({})\n{m} x {n} x {k} f32: {:.4} GFLOP; at the most {:.0} GFLOP/s and {:.0} GB/s\n\n",
        profile.name,
        profile.driver,
        Matmul { m: m as u64, n: n as u64, k: k as u64 }.flop() as f64 * 1e-9,
        ceilings.fma_flop_per_second * 1e-9,
        ceilings.copy_bytes_per_second * 1e-9,
    ));
    let steps = climb(&gpu, [m, n, k], &ceilings)?;
    draw(&arguments.out, &format!("{m} x {n} x {k} f32 on {}", profile.name), &steps, &ceilings)
        .map_err(|e| format!("{}: {e}", arguments.out))?;
    say(&format!("\n{}\n", arguments.out));
    // The order of summation differs, and so may the last bits of sums of k terms below 1.
    let bound = 2.0 * k as f32 * f32::EPSILON * k as f32;
    let wrong: Vec<_> = steps.iter().filter(|s| s.difference > bound).map(|s| s.variant).collect();
    if !wrong.is_empty() {
        say(&format!("wrong: {}\n", wrong.join(", ")));
    }
    Ok(wrong.is_empty())
}

/// Runs every variant that this device has, and prints a line for each.
fn climb(gpu: &Gpu, [m, n, k]: [usize; 3], ceilings: &Ceilings) -> tilework::Result<Vec<Step>> {
    let random = |len: usize, mut state: u32| -> Vec<f32> {
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        std::iter::repeat_with(next).take(len).collect()
    };
    let (a, b) = (gpu.upload(&random(m * k, 1))?, gpu.upload(&random(k * n, 2))?);
    let roofline = Roofline { bandwidth: ceilings.copy_bytes_per_second, peak: ceilings.fma_flop_per_second };
    let once = roofline.bandwidth * Matmul { m: m as u64, n: n as u64, k: k as u64 }.best_intensity(4);
    say(&format!(
        "{:<16} {:>11} {:>10} {:>7} {:>9} {:>11}  {}\n",
        "variant", "time", "GFLOP/s", "of FMA", "of copy", "flop/byte", "what it does"
    ));
    let mut steps: Vec<Step> = Vec::new();
    let mut first: Option<Vec<f32>> = None;
    for variant in Gemm::variants() {
        let plan = match Gemm::new(m, n, k).variant(variant.name).plan::<f32>(gpu) {
            Ok(plan) => plan,
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                say(&format!("{:<16} {e}\n", variant.name));
                continue;
            }
            Err(e) => return Err(e),
        };
        let c = gpu.alloc::<f32>(m * n)?;
        let seconds = gpu.measure(9, |rec| plan.record(rec, &a, &b, &c))?.median();
        let result = c.read()?;
        let apart = |(x, y): (&f32, &f32)| {
            if x.is_nan() || y.is_nan() { f32::INFINITY } else { (x - y).abs() }
        };
        let difference =
            first.as_ref().map_or(0.0, |first| first.iter().zip(&result).map(apart).fold(0.0, f32::max));
        first.get_or_insert(result);
        let cost = plan.program().cost;
        let flops = cost.flop / seconds;
        let intensity = cost.flop / plan.program().traffic.unwrap_or(cost.bytes);
        say(&format!(
            "{:<16} {:>8.2} us {:>10.1} {:>5.1} % {:>7.1} % {:>11.2}  {}\n",
            variant.name,
            seconds * 1e6,
            flops * 1e-9,
            100.0 * flops / roofline.peak,
            100.0 * flops / once,
            intensity,
            variant.about,
        ));
        steps.push(Step { variant: variant.name, seconds, flops, intensity, difference });
    }
    Ok(steps)
}

/// The roofline with each variant on it, both axes logarithmic.
fn draw(
    out: &str,
    title: &str,
    steps: &[Step],
    ceilings: &Ceilings,
) -> Result<(), Box<dyn std::error::Error>> {
    let roofline = Roofline {
        bandwidth: ceilings.copy_bytes_per_second * 1e-9,
        peak: ceilings.fma_flop_per_second * 1e-9,
    };
    let least = steps.iter().map(|s| s.intensity).fold(roofline.ridge(), f64::min) / 4.0;
    let most = steps.iter().map(|s| s.intensity).fold(roofline.ridge(), f64::max) * 4.0;
    let floor = steps.iter().map(|s| s.flops * 1e-9).fold(roofline.attainable(least), f64::min) / 4.0;
    let area = SVGBackend::new(out, (960, 600)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .margin_right(120)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((least..most).log_scale(), (floor..roofline.peak * 3.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(6)
        .bold_line_style(BLACK.mix(0.1))
        .x_desc("operations a byte that workgroups ask for")
        .y_desc("GFLOP/s")
        .x_label_formatter(&|x| format!("{x}"))
        .y_label_formatter(&|y| format!("{y}"))
        .label_style(("sans-serif", 14))
        .draw()?;
    let corners = [least, roofline.ridge(), most].map(|x| (x, roofline.attainable(x)));
    chart.draw_series(LineSeries::new(corners, BLACK.stroke_width(2)))?;
    let label = |text: String, at: (f64, f64)| Text::new(text, at, ("sans-serif", 14));
    chart.draw_series([
        label(format!("{:.0} GFLOP/s", roofline.peak), (most / 3.0, roofline.peak * 1.5)),
        label(format!("{:.0} GB/s", roofline.bandwidth), (least * 1.5, roofline.attainable(least) * 2.6)),
    ])?;
    // From the top down, so that a text that would cover the one before moves below it.
    let mut order: Vec<_> = steps.iter().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| b.flops.total_cmp(&a.flops));
    let mut taken: Vec<(i32, i32)> = Vec::new();
    for (i, step) in order {
        let (at, colour) = ((step.intensity, step.flops * 1e-9), Palette99::pick(i));
        let (x, y) = chart.backend_coord(&at);
        let mut line = y;
        while taken.iter().any(|(tx, ty)| (x - tx).abs() < 220 && (line - ty).abs() < 16) {
            line += 1;
        }
        taken.push((x, line));
        let text = format!("{} ({:.3} ms)", step.variant, step.seconds * 1e3);
        let dot = EmptyElement::at(at)
            + Circle::new((0, 0), 5, colour.filled())
            + Text::new(text, (9, line - y - 6), ("sans-serif", 14));
        chart.draw_series([dot])?;
    }
    area.present()?;
    Ok(())
}
