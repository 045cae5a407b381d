//! The command line of `ladder`.

use super::common::pictures::roofline::{Dot, RooflinePicture};
use super::common::{Args, Failure, exit_code, pictures, room_for, say};
use std::io::Write;
use std::path::Path;
use tilework::analysis::{Matmul, Roofline};
use tilework::dense::{Gemm, ProductTile, ThreadTile};
use tilework::gpu::AdapterFilter;
use tilework::io::{check_outputs, shown};
use tilework::program::Ceilings;
use tilework::{ErrorKind, Gpu, GpuOptions, Plannable};

const USAGE: &str = "\
usage: ladder [SIZE | M N K] [--adapter SUBSTRING] [--out FILE.svg]

  SIZE, or M N K       rows, columns, and terms per element; 2048 on a card, 256 on a processor
  --adapter SUBSTRING  an adapter of this backend, or with this in its name or driver
  --out FILE           the picture, as SVG or PNG (ladder.svg)
";

/// A measured step: a variant, and how it is adjusted.
struct Step {
    name: String,
    seconds: f64,
    flops: f64,
    /// Operations per byte that its workgroups request.
    intensity: f64,
    /// Largest difference from the first variant.
    difference: f32,
}

struct Arguments {
    shape: Option<[usize; 3]>,
    adapter: String,
    out: String,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = arguments(args).and_then(|arguments| match arguments {
        Some(arguments) => Ok(u8::from(!measure(&arguments, out)?)),
        None => Ok(say(out, USAGE).map(|()| 0)?),
    });
    exit_code("ladder", result.map_err(Failure::from), err)
}

fn arguments(parser: lexopt::Parser) -> Result<Option<Arguments>, Box<dyn std::error::Error>> {
    use lexopt::prelude::*;
    let mut parser = Args::new(parser, &[]);
    let (mut sizes, mut adapter, mut out) = (Vec::new(), String::new(), "ladder.svg".to_owned());
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
        return Err("the sizes must be at least 1".into());
    }
    pictures::is_png(Path::new(&out))?;
    Ok(Some(Arguments { shape, adapter, out }))
}

fn measure(arguments: &Arguments, out: &mut dyn Write) -> Result<bool, Box<dyn std::error::Error>> {
    check_outputs([&arguments.out])?;
    let adapter = match arguments.adapter.as_str() {
        "" => AdapterFilter::Best,
        name => AdapterFilter::Name(name.to_owned()),
    };
    let gpu = pollster::block_on(Gpu::request(GpuOptions { adapter, ..Default::default() }))?;
    let profile = gpu.profile();
    let [m, n, k] = arguments.shape.unwrap_or([if profile.is_cpu() { 256 } else { 2048 }; 3]);
    fits(&gpu, [m, n, k])?;
    let ceilings = gpu.ceilings()?;
    say(
        out,
        &format!(
            "{} ({})\n{m} x {n} x {k} f32: {:.4} GFLOP; ceilings {:.0} GFLOP/s and {:.0} GB/s\n\n",
            profile.name,
            profile.driver,
            Matmul { m: m as u64, n: n as u64, k: k as u64 }.flop() as f64 * 1e-9,
            ceilings.fma_flop_per_second * 1e-9,
            ceilings.copy_bytes_per_second * 1e-9,
        ),
    )?;
    let steps = climb(&gpu, [m, n, k], &ceilings, out)?;
    let dot = |s: &Step| Dot {
        text: format!("{} ({:.3} ms)", s.name, s.seconds * 1e3),
        intensity: s.intensity,
        flops: s.flops,
    };
    let picture = RooflinePicture {
        title: format!("{m} x {n} x {k} f32 on {}", profile.name),
        intensity: "operations per byte requested by workgroups",
        roof: roof(&ceilings),
        dots: steps.iter().map(dot).collect(),
    };
    pictures::save(Path::new(&arguments.out), &picture)?;
    say(out, &format!("\n{}\n", shown(&arguments.out)))?;
    // The order of summation differs, which may change the last bits of sums of k terms below 1.
    let bound = 2.0 * k as f32 * f32::EPSILON * k as f32;
    let wrong: Vec<_> = steps.iter().filter(|s| s.difference > bound).map(|s| s.name.as_str()).collect();
    if !wrong.is_empty() {
        say(out, &format!("wrong: {}\n", wrong.join(", ")))?;
    }
    Ok(wrong.is_empty())
}

/// Rejects matrices that the device cannot bind or the host cannot hold.
fn fits(gpu: &Gpu, [m, n, k]: [usize; 3]) -> Result<(), Box<dyn std::error::Error>> {
    let limits = &gpu.profile().limits;
    let most = limits.max_storage_binding.min(limits.max_buffer_size);
    let mut all = 0usize;
    for (name, rows, columns) in [("A", m, k), ("B", k, n), ("C", m, n)] {
        let elements = rows.saturating_mul(columns);
        let bytes = elements.saturating_mul(4);
        if bytes as u64 > most {
            let device = &gpu.profile().name;
            return Err(format!(
                "{name} of {rows} x {columns} f32: the maximum is {most} bytes on {device}; take a smaller size"
            )
            .into());
        }
        all += elements;
    }
    // The first result is kept while the next is read.
    Ok(room_for("the matrices", all + 2 * m * n, 4)?)
}

fn roof(ceilings: &Ceilings) -> Roofline {
    Roofline { bandwidth: ceilings.copy_bytes_per_second, peak: ceilings.fma_flop_per_second }
}

/// The variant with the sides that it offers, loops rolled and unrolled, and k in slices.
fn forms(variant: &'static str, op: &Gemm) -> Vec<(String, Gemm)> {
    let op = op.clone().variant(variant);
    let row = |columns| op.clone().thread_tile(ThreadTile { rows: 1, columns });
    let named = |what: &str, op: Gemm| (format!("{variant} {what}"), op);
    match variant {
        "coarsened" => [2, 4]
            .map(|by| {
                let tile = ProductTile { m: 16, n: 16 * by, k: 16 };
                named(&format!("x {by}"), row(by).tile(tile))
            })
            .into(),
        // A straight from storage and A staged, all else equal.
        "register-direct" | "register-staged" => [8, 16, 32]
            .into_iter()
            .flat_map(|u| [row(u), row(u).unrolled()].map(|op| (u, op)))
            .zip(["", " unrolled"].into_iter().cycle())
            .map(|((u, op), how)| named(&format!("1 x {u}{how}"), op))
            .collect(),
        "register" | "double" => vec![(variant.into(), op.clone()), named("rolled", op.rolled())],
        "split-k" | "split-k-atomic" => [None, Some(2), Some(4), Some(8)]
            .map(|slices| match slices {
                None => (variant.into(), op.clone()),
                Some(n) => named(&format!("{n} slices"), op.clone().slices(n)),
            })
            .into(),
        _ => vec![(variant.into(), op)],
    }
}

/// Runs every step that the device supports, and prints a line for each.
fn climb(gpu: &Gpu, [m, n, k]: [usize; 3], ceilings: &Ceilings, out: &mut dyn Write) -> Result<Vec<Step>, Failure> {
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
    let roofline = roof(ceilings);
    let once = roofline.bandwidth * Matmul { m: m as u64, n: n as u64, k: k as u64 }.best_intensity(4);
    say(
        out,
        &format!(
            "{:<32} {:>11} {:>10} {:>7} {:>9} {:>11}  {}\n",
            "variant", "time", "GFLOP/s", "of FMA", "of copy", "flop/byte", "what it does"
        ),
    )?;
    let mut steps: Vec<Step> = Vec::new();
    let mut first: Option<Vec<f32>> = None;
    let product = Gemm::new(m, n, k);
    let all = Gemm::variants().iter().flat_map(|v| {
        let about = std::iter::once(v.about).chain(std::iter::repeat(""));
        forms(v.name, &product).into_iter().zip(about)
    });
    for ((name, op), about) in all {
        let plan = match op.plan::<f32>(gpu) {
            Ok(plan) => plan,
            // A device without cooperative matrices, or without room for a tile.
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge) => {
                say(out, &format!("{name:<32} {e}\n"))?;
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        let c = gpu.alloc::<f32>(m * n)?;
        let seconds = gpu.measure(9, |rec| plan.record(rec, &a, &b, &c))?.median();
        let result = c.read()?;
        let apart = |(x, y): (&f32, &f32)| {
            if x.is_nan() || y.is_nan() { f32::INFINITY } else { (x - y).abs() }
        };
        let difference = first.as_ref().map_or(0.0, |first| first.iter().zip(&result).map(apart).fold(0.0, f32::max));
        first.get_or_insert(result);
        let cost = plan.program().cost;
        let flops = cost.flop / seconds;
        let intensity = cost.flop / plan.program().traffic.unwrap_or(cost.bytes);
        say(
            out,
            &format!(
                "{:<32} {:>8.2} us {:>10.1} {:>5.1} % {:>7.1} % {:>11.2}  {}\n",
                name,
                seconds * 1e6,
                flops * 1e-9,
                100.0 * flops / roofline.peak,
                100.0 * flops / once,
                intensity,
                about,
            ),
        )?;
        steps.push(Step { name, seconds, flops, intensity, difference });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::fits;
    use tilework::Gpu;

    #[test]
    fn ladder_refuses_matrices_that_no_device_binds() {
        let Ok(gpu) = Gpu::new() else { return };
        fits(&gpu, [64, 48, 32]).unwrap();
        for shape in [[5_000_000_000; 3], [usize::MAX, 1, 1], [1, 2, usize::MAX], [1 << 32, 1 << 32, 1]] {
            let refused = fits(&gpu, shape).unwrap_err().to_string();
            assert!(refused.contains("take a smaller size") && refused.lines().count() == 1, "{shape:?}: {refused}");
        }
    }
}
