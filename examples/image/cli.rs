//! The command line of `image`.

use super::common::{Args, Failure, answer, bar, open_gpu, say};
use super::files::{self, Picture};
use super::steps::Step;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tilework::image::Image;
use tilework::io::{check_outputs, shown};
use tilework::{Buffer, Gpu, Slice};

const USAGE: &str = "\
usage: image INPUT OUTPUT --ops STEP,... [--check]

  --ops STEP,...       steps, in this order:
                         grey            brightness by ITU-R BT.601
                         blur=RADIUS     mean of a square of 2 RADIUS + 1 pixels a side (1)
                         gaussian=SIGMA  Gaussian blur, sigma in pixels (1)
                         sobel           gradient magnitude of each channel
                         equalize        spread each channel's values over the whole range
  --check              compare each step with the processor's result
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

Files are PNG or JPEG, detected by contents when read and by extension when written. Pictures are reduced to 8 bits a
channel and turned upright. JPEG keeps no opacity.
";

struct Options {
    input: PathBuf,
    output: PathBuf,
    steps: Vec<Step>,
    check: bool,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("image", USAGE), parse(args), process, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
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
        return Err(Failure::bad_input("--ops is missing; name the steps (see --help)"));
    };
    Ok(Some(Options { input, output, steps, check, adapter }))
}

fn process(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let format = files::format_of(&options.output)?;
    check_outputs([&options.output])?;
    let start = Instant::now();
    let picture = files::read(&options.input)?;
    say(out, &format!("{}: {picture}, read in {}\n", shown(&options.input), milliseconds(start.elapsed())))?;
    let gpu = open_gpu(options.adapter.clone())?;
    let (picture, same) = work(&gpu, picture, options, out)?;
    let start = Instant::now();
    let picture = files::write(&options.output, format, picture)?;
    say(out, &format!("{}: {picture}, written in {}\n", shown(&options.output), milliseconds(start.elapsed())))?;
    Ok(u8::from(!same))
}

/// Runs all steps. Returns whether every result matches the processor's.
fn work(gpu: &Gpu, picture: Picture, options: &Options, out: &mut dyn Write) -> Result<(Picture, bool), Failure> {
    let bar = bar(options.steps.len() as u64, "{bar:30} {pos} of {len} steps, {msg}", 0);
    let limits = &gpu.profile().limits;
    let room = limits.max_storage_binding.min(limits.max_buffer_size) as usize;
    let (mut image, mut same) = (picture.image, true);
    let mut held = if picture.pixels.len() > room { Held::Host } else { Held::Device(gpu.upload(&picture.pixels)?) };
    // The input of the last step, for checking.
    let mut host = picture.pixels;
    for step in &options.steps {
        bar.set_message(step.to_string());
        if *step == Step::Grey && image.channels < 3 {
            bar.suspend(|| say(out, &format!("  {:<16} there are no colours\n", step.to_string())))?;
            bar.inc(1);
            continue;
        }
        let (done, result) = match &held {
            Held::Device(x) => {
                let (done, y) = once(gpu, *step, image, x)?;
                let got = if options.check { y.read()? } else { Vec::new() };
                held = Held::Device(y);
                (done, got)
            }
            Held::Host => by_bands(gpu, *step, image, &host, room)?,
        };
        let mut line = format!(
            "  {:<16} {:<10} {:>12} on the device, {:.1} GB/s{}",
            step.to_string(),
            done.variant,
            milliseconds(Duration::from_secs_f64(done.seconds)),
            done.bytes / done.seconds * 1e-9,
            if done.bands > 1 { format!(", in {} bands", done.bands) } else { String::new() }
        );
        if options.check {
            let found = step.difference(image, &host, &result)?;
            let verdict = if found.fits { "largest difference" } else { "DIFFERS by" };
            line += &format!("; {verdict} {:.3}", found.largest);
            same &= found.fits;
        }
        host = result;
        bar.suspend(|| say(out, &(line + "\n")))?;
        bar.inc(1);
        image = step.result(image);
    }
    bar.finish_and_clear();
    let pixels = match held {
        Held::Device(x) => x.read()?,
        Held::Host => host,
    };
    Ok((Picture { image, pixels }, same))
}

/// Where the pixels are.
enum Held {
    Device(Buffer<u8>),
    /// On the host, because they exceed one binding.
    Host,
}

/// Measurements of a step.
pub(crate) struct Done {
    variant: &'static str,
    seconds: f64,
    bytes: f64,
    pub(crate) bands: usize,
}

/// Runs a step on a whole picture.
pub(crate) fn once(gpu: &Gpu, step: Step, image: Image, x: &Buffer<u8>) -> Result<(Done, Buffer<u8>), Failure> {
    let plan = step.plan(gpu, image)?;
    let program = plan.program();
    let y = gpu.alloc::<u8>(program.operands[1].len)?;
    let runs = if gpu.profile().is_cpu() { 3 } else { 25 };
    let operands = [x, &y].map(|buffer| Slice::from(buffer).untyped());
    let measured = gpu.measure(runs, |rec| plan.record(rec, &operands))?;
    let done = Done { variant: program.variant(), seconds: measured.median(), bytes: program.cost.bytes, bands: 1 };
    Ok((done, y))
}

/// Runs a step in bands of rows, each with the rows above and below that its result depends on, within `room` bytes.
pub(crate) fn by_bands(
    gpu: &Gpu, step: Step, image: Image, pixels: &[u8], room: usize,
) -> Result<(Done, Vec<u8>), Failure> {
    let pitch = image.w * image.channels;
    let most = room / pitch;
    let Some(reach) = step.reach().filter(|reach| most > 4 * reach) else {
        return Err(Failure::bad_input(format!(
            "{step}: the picture has {} bytes and {} binds at most {room}; this step cannot be split",
            pixels.len(),
            gpu.profile().name
        )));
    };
    let (mut all, mut result) = (Done { variant: "", seconds: 0.0, bytes: 0.0, bands: 0 }, Vec::new());
    for start in (0..image.h).step_by(most - 2 * reach) {
        let end = (start + most - 2 * reach).min(image.h);
        let (first, last) = (start.saturating_sub(reach), (end + reach).min(image.h));
        let part = Image { h: last - first, ..image };
        let (done, y) = once(gpu, step, part, &gpu.upload(&pixels[first * pitch..last * pitch])?)?;
        let pitch = image.w * step.result(image).channels;
        result.extend(&y.read()?[(start - first) * pitch..(end - first) * pitch]);
        all = Done { seconds: all.seconds + done.seconds, bytes: all.bytes + done.bytes, bands: all.bands + 1, ..done };
    }
    Ok((all, result))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}
