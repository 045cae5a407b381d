//! The command line of `image`.

use super::failure::{Failure, exit_code, open_gpu};
use super::files::{self, Picture};
use super::steps::Step;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tilework::Gpu;

const USAGE: &str = "\
usage: image INPUT OUTPUT --ops STEP,... [--check]

  --ops STEP,...       what is done, in this order:
                         grey            brightness of colours, by ITU-R BT.601
                         blur=RADIUS     mean of the window of 2 RADIUS + 1 pixels a side (1)
                         gaussian=SIGMA  mean weighted by a bell curve, in pixels (1)
                         sobel           how fast each channel changes
                         equalize        values of each channel spread over their whole range
  --check              hold each step's result against the processor's
  --adapter SUBSTRING  the adapter, by a part of its name or driver (the best one)

Files are PNG or JPEG, by their contents when read and by their ending when written; deeper colours are read as 8 bits
a channel, and a picture that lies on its side is turned upright. JPEG keeps no opacity.
";

struct Options {
    input: PathBuf,
    output: PathBuf,
    steps: Vec<Step>,
    check: bool,
    adapter: Option<String>,
}

/// Runs the program and gives its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => process(&options, out),
        None => {
            // A reader that has gone away is no failure.
            let _ = out.write_all(USAGE.as_bytes());
            Ok(0)
        }
    });
    exit_code("image", result, err)
}

/// The options, or nothing if `--help` is asked for.
fn parse(mut args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let (mut paths, mut steps, mut check, mut adapter) = (Vec::new(), None, false, None);
    while let Some(arg) = args.next()? {
        match arg {
            Long("ops") => {
                let list = args.value()?.string()?;
                steps = Some(list.split(',').map(Step::parse).collect::<Result<Vec<_>, _>>()?);
            }
            Long("check") => check = true,
            Long("adapter") => adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(path) => paths.push(PathBuf::from(path)),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let [input, output] = paths.try_into().map_err(|paths: Vec<PathBuf>| {
        Failure::bad_input(format!(
            "{} files named; usage: image INPUT OUTPUT --ops STEP,... (see --help)",
            paths.len()
        ))
    })?;
    let Some(steps) = steps else {
        return Err(Failure::bad_input("--ops is missing: what shall be done? (see --help)"));
    };
    Ok(Some(Options { input, output, steps, check, adapter }))
}

fn process(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let format = files::format_of(&options.output)?;
    let start = Instant::now();
    let picture = files::read(&options.input)?;
    say(out, &format!("{}: {picture}, read in {}\n", options.input.display(), milliseconds(start.elapsed())))?;
    let gpu = open_gpu(options.adapter.clone())?;
    let (picture, same) = work(&gpu, picture, options, out)?;
    let start = Instant::now();
    let picture = files::write(&options.output, format, picture)?;
    say(out, &format!("{}: {picture}, written in {}\n", options.output.display(), milliseconds(start.elapsed())))?;
    Ok(u8::from(!same))
}

/// All steps, one after the other on the device; whether every one is what the processor finds.
fn work(gpu: &Gpu, picture: Picture, options: &Options, out: &mut dyn Write) -> Result<(Picture, bool), Failure> {
    let bar = ProgressBar::new(options.steps.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} steps, {msg}") {
        bar.set_style(style);
    }
    let (mut image, mut same) = (picture.image, true);
    let mut x = gpu.upload(&picture.pixels)?;
    let mut host = picture.pixels;
    for step in &options.steps {
        bar.set_message(step.to_string());
        let Some(plan) = step.plan(gpu, image)? else {
            bar.suspend(|| say(out, &format!("  {:<16} there are no colours\n", step.to_string())))?;
            bar.inc(1);
            continue;
        };
        let y = gpu.alloc::<u8>(plan.program().operands[1].len)?;
        let seconds = gpu.measure(if gpu.profile().is_cpu() { 3 } else { 25 }, |rec| plan.record(rec, &x, &y))?;
        let program = plan.program();
        let mut line = format!(
            "  {:<16} {:<10} {:>12} on the device, {:.1} GB/s",
            step.to_string(),
            program.variant,
            milliseconds(Duration::from_secs_f64(seconds.median())),
            program.cost.bytes / seconds.median() * 1e-9
        );
        if options.check {
            let got = y.read()?;
            let found = step.difference(image, &host, &got)?;
            let verdict = if found.fits { "largest difference" } else { "DIFFERS by" };
            line += &format!("; {verdict} {:.3}", found.largest);
            same &= found.fits;
            host = got;
        }
        bar.suspend(|| say(out, &(line + "\n")))?;
        bar.inc(1);
        (image, x) = (step.result(image), y);
    }
    bar.finish_and_clear();
    Ok((Picture { image, pixels: x.read()? }, same))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn say(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes()).map_err(|e| Failure::output(&e))
}
