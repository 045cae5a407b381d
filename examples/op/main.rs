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
use commands::{Before, Call, Command, Job, Keys, Operand};
use failure::{Failure, exit_code};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tilework::gpu::AdapterFilter;
use tilework::gpu::Recorder;
use tilework::io::matrix_market::{self, Matrix};
use tilework::program::DeviceProfile;
use tilework::sparse::{Csr, Duplicates};
use tilework::{ErrorKind, Gpu, GpuOptions, Report};

const USAGE: &str = "\
usage: op NAME INPUT.npy ... -o OUTPUT.npy [-o ...] [--key value ...]
       op --list

  --list               every op with its inputs, keys and variants
  --variant NAME       the variant to run (auto)
  --adapter SUBSTRING  the adapter, by a part of its name or driver (the best one)
  --report             the plan's report and the measured time, on standard error
  --repeat N           time N runs: least, median, greatest
  --checked            run the kernels with runtime checks

Files hold arrays in C order: f32, f16, i32, u32, u8, i8; sparse matrices come as Matrix Market files, .mtx or .mtx.gz. Of several words for a key the first is the default.
";

/// Runs timed for `--report` where `--repeat` does not say how many.
const DEFAULT_RUNS: usize = 5;
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
    let result = parse().and_then(|request| request.map_or(Ok(()), |r| run(&r)));
    ExitCode::from(exit_code("op", result.map(|()| 0), &mut std::io::stderr()))
}

/// Prints to standard output; a reader that has gone away is no failure.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The request, or nothing if `--list` or `--help` has been answered.
fn parse() -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
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
                say(&list());
                return Ok(None);
            }
            Short('h') | Long("help") => {
                say(USAGE);
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
        Some((_, Ok(n @ 1..))) => Some(n),
        Some((text, _)) => {
            return Err(refuse!("--repeat {text}: must be a whole number of runs, at least 1"));
        }
    };
    let variant = variant.unwrap_or_else(|| "auto".into());
    Ok(Some(Request { command, inputs, outputs, keys, variant, adapter, report, repeat, checked }))
}

/// Every op with its inputs, keys and variants.
fn list() -> String {
    let floor = DeviceProfile::webgpu_defaults();
    let mut text = String::new();
    for info in tilework::ops() {
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

fn run(request: &Request) -> Result<(), Failure> {
    let command = request.command;
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
    let places = match &before {
        Some(Before::Convert(..)) => convert::target(request).map(|_| vec![])?,
        _ => places(request, &job)?,
    };
    // What no device can run is refused before one is opened, which takes a while and lets some drivers talk.
    if let Err(e) = (job.lower)(&DeviceProfile::h100())
        && matches!(e.kind(), ErrorKind::Shape | ErrorKind::InvalidArgument | ErrorKind::Unsupported)
    {
        return Err(e.into());
    }
    let adapter = request.adapter.clone().map_or(AdapterFilter::Best, AdapterFilter::Name);
    let options = GpuOptions { adapter, checked: request.checked, ..Default::default() };
    let gpu = pollster::block_on(Gpu::request(options))?;
    match before {
        Some(Before::Convert(matrix, target)) => return convert::run(&gpu, request, &matrix, target),
        Some(Before::Suit(matrix, suited)) => {
            let (matrix, seen) = gpu.suit_matrix(&gpu.upload_matrix(&matrix)?)?;
            job = suited(job, &matrix.read()?, &seen)?;
        }
        None => {}
    }
    let arrays = execute(&gpu, job, request)?;
    npy::write_all(places.into_iter().zip(arrays))
}

/// A sparse matrix; entries at one position are added up.
fn read_matrix(path: &Path) -> Result<Csr, Failure> {
    match matrix_market::read_file(path)? {
        Matrix::Sparse(triplets) => Ok(Csr::from_triplets(&triplets, Duplicates::Sum)?),
        Matrix::Dense(_) => Err(refuse!("{}: an array file; a coordinate file is wanted", path.display())),
    }
}

/// Where the outputs go.
fn places(request: &Request, job: &Job) -> Result<Vec<npy::Place>, Failure> {
    let results = job.operands.iter().filter(|o| !matches!(o, Operand::Given(_) | Operand::Count)).count();
    if request.outputs.len() != results {
        let name = request.command.name;
        return Err(refuse!(
            "{name}: {} output files given with -o, {results} wanted",
            request.outputs.len()
        ));
    }
    for (i, path) in request.outputs.iter().enumerate() {
        if request.outputs[..i].contains(path) {
            return Err(refuse!("-o {} is given twice; each output needs a file of its own", path.display()));
        }
    }
    request.outputs.iter().map(|path| npy::place(path)).collect()
}

/// Runs the job once for its results, and then again to measure it if that was asked for.
fn execute(gpu: &Gpu, job: Job, request: &Request) -> Result<Vec<Array>, Failure> {
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
    measure(gpu, request, || Report::of(&executable), |rec| executable.record(rec, &raw))?;
    Ok(results)
}

/// Times runs and says what they are, if that was asked for.
fn measure(
    gpu: &Gpu,
    request: &Request,
    report: impl Fn() -> Report,
    mut record: impl FnMut(&mut Recorder) -> tilework::Result<()>,
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
            say(&format!("{}: {times}\n", request.command.name));
        }
    }
    Ok(())
}
