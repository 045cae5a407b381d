//! Runs any op on NumPy files: `op NAME input.npy ... -o output.npy [--key value ...]`. Sparse matrices are Matrix
//! Market files.
//!
//! ```sh
//! cargo run --release --example op -- --list
//! cargo run --release --example op -- reduce x.npy -o rows.npy --op max --axis last --report
//! ```
//!
//! Which op takes what is in `commands.rs`. Exit code 0 on success, 2 with one line on standard error for bad
//! input, 3 if this machine has no adapter, 1 if a device fails.

mod array;
mod commands;
mod convert;
#[allow(dead_code, reason = "other programs open files by it")]
#[path = "../streaming/failure.rs"]
mod failure;
mod header;
mod npy;

use array::{Array, DeviceArray, refuse};
use commands::{Before, Call, Command, Job, Keys, Operand, read_matrix};
use failure::{Args, Failure, exit_code, profile_at_hand, say};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tilework::gpu::AdapterFilter;
use tilework::gpu::Recorder;
use tilework::io::check_outputs;
use tilework::program::DeviceProfile;
use tilework::{ErrorKind, Gpu, GpuOptions, Report};

const USAGE: &str = "\
usage: op NAME INPUT.npy ... -o OUTPUT.npy [-o ...] [--key value ...]
       op --list

  --list               every op with its inputs, keys and variants
  --variant NAME       the variant to run (auto)
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
  --report             the plan's report and the measured time, on standard error
  --repeat N           time N runs: least, median, greatest
  --checked            run the kernels with runtime checks

Files hold arrays in C order: f32, f16, i32, u32, u8, i8; sparse matrices come as Matrix Market files, .mtx or .mtx.gz. Of several words for a key the first is the default.
";

/// Runs timed for `--report` where `--repeat` does not say how many.
const DEFAULT_RUNS: usize = 5;
/// Runs timed at the most.
const MAX_RUNS: usize = 1 << 24;
/// Runs timed in one go.
const BATCH: usize = 1024;

/// What the command line asks for.
struct Request {
    command: &'static Command,
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
    keys: Keys,
    variant: String,
    adapter: Option<String>,
    report: bool,
    repeat: Option<usize>,
    checked: bool,
}

fn main() -> ExitCode {
    failure::main("op", std::io::stdout().lock(), |args, out, err| {
        let result = parse(args, out).and_then(|request| request.map_or(Ok(()), |r| run(&r, out)));
        exit_code("op", result.map(|()| 0), err)
    })
}

/// The request, or nothing if `--list` or `--help` has been answered.
fn parse(parser: lexopt::Parser, out: &mut dyn Write) -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut parser = Args::new(parser, &["o"]);
    let mut command: Option<&'static Command> = None;
    let (mut inputs, mut outputs, mut keys) = (Vec::new(), Vec::new(), Keys::default());
    let (mut variant, mut adapter, mut repeat) = (None, None, None);
    let (mut report, mut checked) = (false, false);
    let once = |slot: &mut Option<String>, key: &str, value: OsString| -> Result<(), Failure> {
        match slot.replace(value.string()?) {
            None => Ok(()),
            Some(_) => Err(refuse!("--{key} is given twice")),
        }
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Long("list") => {
                say(out, &list())?;
                return Ok(None);
            }
            Short('h') | Long("help") => {
                say(out, USAGE)?;
                return Ok(None);
            }
            Short('o') => outputs.push(PathBuf::from(parser.value()?)),
            Long("variant") => once(&mut variant, "variant", parser.value()?)?,
            Long("adapter") => once(&mut adapter, "adapter", parser.value()?)?,
            Long("repeat") => once(&mut repeat, "repeat", parser.value()?)?,
            Long("report") => report = true,
            Long("checked") => checked = true,
            Long(name) => {
                let Some(command) = command else {
                    return Err(refuse!(
                        "--{name} stands before the op's name; write the name first (see --help)"
                    ));
                };
                let Some(key) = command.key(name) else {
                    return Err(refuse!(
                        "{} has no key --{name}; it has {}",
                        command.name,
                        command.key_names()
                    ));
                };
                let value = if key.takes_value { Some(parser.value()?) } else { None };
                keys.add(key.name, value)?;
            }
            Value(name) if command.is_none() => command = Some(Command::find(&name.string()?)?),
            Value(path) => inputs.push(PathBuf::from(path)),
            Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let Some(command) = command else {
        return Err(refuse!(
            "no op named; usage: op NAME INPUT.npy ... -o OUTPUT.npy (see --help and --list)"
        ));
    };
    let repeat = match repeat.as_deref().map(|n| (n, n.parse())) {
        None => None,
        Some((_, Ok(n @ 1..=MAX_RUNS))) => Some(n),
        Some((text, _)) => {
            return Err(refuse!("--repeat {text}: must be a whole number of runs from 1 to {MAX_RUNS}"));
        }
    };
    let variant = variant.unwrap_or_else(|| "auto".into());
    Ok(Some(Request { command, inputs, outputs, keys, variant, adapter, report, repeat, checked }))
}

/// Every op with its inputs, keys and variants.
fn list() -> String {
    let floor = DeviceProfile::webgpu_defaults();
    let mut text = String::new();
    for info in tilework::operations().filter(|info| Command::find(info.name).is_ok()) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}: {}\n  inputs    {}\n  keys      {}",
            info.name, info.about, info.inputs, info.keys
        );
        let _ = writeln!(text, "  variants  auto: chosen by shape and device");
        for variant in (info.variants)() {
            let needs =
                variant.requires.missing(&floor).map(|what| format!("; needs {what}")).unwrap_or_default();
            let _ = writeln!(text, "            {}: {}{needs}", variant.name, variant.about);
        }
    }
    text
}

fn run(request: &Request, out: &mut dyn Write) -> Result<(), Failure> {
    let command = request.command;
    check_outputs(&request.outputs)?;
    if !command.inputs.contains(&request.inputs.len()) {
        let (least, most) = (command.inputs.start(), command.inputs.end());
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        return Err(refuse!(
            "{}: {} input files given, {wanted} wanted (see --list)",
            command.name,
            request.inputs.len()
        ));
    }
    let (matrices, arrays) = request.inputs.split_at(usize::from(command.takes_matrix()));
    let matrix = matrices.first().map(|path| read_matrix(path)).transpose()?.unwrap_or_default();
    let inputs = arrays.iter().map(|path| npy::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut job = (command.job)(Call { matrix, inputs, keys: &request.keys, variant: &request.variant })?;
    let before = job.before.take();
    let outputs = match &before {
        Some(Before::Convert(..)) => 1,
        _ => job.operands.iter().filter(|o| !matches!(o, Operand::Given(_) | Operand::Count)).count(),
    };
    if request.outputs.len() != outputs {
        let (name, given) = (command.name, request.outputs.len());
        return Err(refuse!("{name}: {given} output files given with -o, {outputs} wanted"));
    }
    // What the device cannot run is refused before it is opened, which takes a while and lets some drivers talk.
    if let Err(e) = (job.lower)(&profile_at_hand(request.adapter.as_deref()))
        && matches!(e.kind(), ErrorKind::Shape | ErrorKind::InvalidArgument | ErrorKind::Unsupported)
    {
        return Err(e.into());
    }
    let adapter = request.adapter.clone().map_or(AdapterFilter::Best, AdapterFilter::Name);
    let options = GpuOptions { adapter, checked: request.checked, ..Default::default() };
    let gpu = pollster::block_on(Gpu::request(options))?;
    match before {
        Some(Before::Convert(matrix, target)) => return convert::run(&gpu, request, &matrix, target, out),
        Some(Before::Suit(matrix, suited)) => {
            let (matrix, seen) = gpu.suit_matrix(&gpu.upload_matrix(&matrix)?)?;
            job = suited(job, &matrix.read()?, &seen)?;
        }
        None => {}
    }
    let arrays = execute(&gpu, job, request, out)?;
    npy::write_all(request.outputs.iter().zip(arrays))
}

/// Runs the job once for its results, and then again to measure it if that was asked for.
fn execute(gpu: &Gpu, job: Job, request: &Request, out: &mut dyn Write) -> Result<Vec<Array>, Failure> {
    let executable = (job.plan)(gpu)?;
    let mut buffers: Vec<Box<dyn DeviceArray>> = Vec::new();
    for (operand, wanted) in job.operands.iter().zip(&executable.program().operands) {
        buffers.push(match operand {
            Operand::Given(array) | Operand::Updated(array) => array::upload(gpu, &array.data)?,
            Operand::Result(_) | Operand::Counted | Operand::Count => {
                array::alloc(gpu, wanted.dtype, wanted.len)?
            }
        });
    }
    let raw: Vec<_> = buffers.iter().map(|b| b.raw()).collect();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &raw)?;
    rec.submit()?;
    let mut results = Vec::new();
    let count = match (job.operands.last(), buffers.last()) {
        (Some(Operand::Count), Some(buffer)) => buffer.read()?.first_count(),
        _ => 0,
    };
    for (operand, buffer) in job.operands.into_iter().zip(&buffers) {
        let (shape, data) = match operand {
            Operand::Given(_) | Operand::Count => continue,
            Operand::Updated(array) => (array.shape, buffer.read()?),
            Operand::Result(shape) => (shape, buffer.read()?),
            Operand::Counted => (vec![count], buffer.read()?.front(count)),
        };
        results.push(Array { shape, data });
    }
    measure(gpu, request, || Report::of(&executable), |rec| executable.record(rec, &raw), out)?;
    Ok(results)
}

/// Times runs and says what they are, if that was asked for.
fn measure(
    gpu: &Gpu,
    request: &Request,
    report: impl Fn() -> Report,
    mut record: impl FnMut(&mut Recorder) -> tilework::Result<()>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if request.report || request.repeat.is_some() {
        let runs = request.repeat.unwrap_or(DEFAULT_RUNS);
        let mut seconds = Vec::with_capacity(runs);
        let mut clock = None;
        while seconds.len() < runs {
            let batch = (runs - seconds.len()).min(BATCH);
            let measured = gpu.measure(batch, &mut record)?;
            clock = Some(measured.clock);
            seconds.extend(measured.seconds);
        }
        seconds.sort_by(f64::total_cmp);
        let [min, median, max] = [0, runs / 2, runs - 1].map(|i| seconds[i]);
        let clock = clock.map(|c| format!(" (clock: {c})")).unwrap_or_default();
        let times = format!(
            "min {:.3} us, median {:.3} us, max {:.3} us of {runs} runs{clock}",
            min * 1e6,
            median * 1e6,
            max * 1e6
        );
        if request.report {
            let report = report();
            let rates = if median > 0.0 {
                let (bytes, flop) = (report.cost.bytes / median * 1e-9, report.cost.flop / median * 1e-9);
                let percent =
                    report.percent_of_roofline(median).map(|p| format!(", {p:.0} % of the roofline"));
                format!("; {bytes:.3} GB/s, {flop:.3} GFLOP/s{}", percent.unwrap_or_default())
            } else {
                String::new()
            };
            let _ = writeln!(std::io::stderr(), "{report}\n  measured    {times}{rates}");
        }
        if request.repeat.is_some() {
            say(out, &format!("{}: {times}\n", request.command.name))?;
        }
    }
    Ok(())
}
