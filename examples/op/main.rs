//! Runs any op on NumPy files: `op NAME input.npy ... -o output.npy [--key value ...]`. Sparse matrices are Matrix
//! Market files.
//!
//! ```sh
//! cargo run --release --example op -- --list
//! cargo run --release --example op -- reduce x.npy -o rows.npy --op max --axis last --report
//! ```
//!
//! `--list` shows the catalogue, [`tilework::operations`]. Exit code 0 on success, 2 with one line on standard error
//! for bad input, 3 without an adapter, 1 if a device fails.

#[path = "../common/mod.rs"]
mod common;
mod cuda;
mod emit;

use common::asked::{self, Inputs};
use common::{Args, Failure, adapter, exit_code, npy, open_gpu_with, profile_of, refuse, say};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use tilework::gpu::{AdapterFilter, Clock};
use tilework::io::check_outputs;
use tilework::io::matrix_market::{self, Matrix};
use tilework::program::{DeviceProfile, Settings};
use tilework::{Driven, ErrorKind, Gpu, GpuOptions, MatrixJob, ReadyCall, Report};

const USAGE: &str = "\
usage: op NAME INPUT.npy ... -o OUTPUT.npy [-o ...] [--key value ...]
       op NAME INPUT.npy ... --emit FOLDER [--key value ...]
       op --list

  --list               list all ops with their inputs, keys and variants
  --variant NAME       the variant to run (auto)
  --backend NAME       only adapters of this backend: vulkan, metal, dx12 or gl; or cuda, if the program was built with it
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
  --report             print the plan's report and the measured time to standard error
  --repeat N           time N runs and print minimum, median and maximum
  --checked            run kernels with runtime checks
  --emit FOLDER        write the program there, program.json and *.wgsl, instead of running it: for any device with WebGPU's default limits, or for the one that --adapter or --backend names

Files hold arrays in C order: f32, f16, i32, u32, u8, i8; sparse matrices come as Matrix Market files, .mtx or .mtx.gz. Of several words for a key the first is the default.
";

/// Timed runs of `--report` without `--repeat`.
const DEFAULT_RUNS: usize = 5;
/// Maximum timed runs.
const MAX_RUNS: usize = 1 << 24;
/// Runs per submission.
const BATCH: usize = 1024;

/// The parsed command line.
struct Request {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
    settings: Settings,
    variant: String,
    adapter: AdapterFilter,
    /// A part of the device's name, if the op runs on CUDA.
    cuda: Option<String>,
    report: bool,
    repeat: Option<usize>,
    checked: bool,
    /// Where to write the program, and whether for the chosen adapter.
    emit: Option<(PathBuf, bool)>,
}

fn main() -> ExitCode {
    common::main("op", std::io::stdout().lock(), |args, out, err| {
        let result = parse(args, out).and_then(|request| request.map_or(Ok(()), |r| run(&r, out)));
        exit_code("op", result.map(|()| 0), err)
    })
}

/// Returns the request, or `None` after `--list` or `--help`.
fn parse(parser: lexopt::Parser, out: &mut dyn Write) -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut parser = Args::new(parser, &["o"]);
    let mut settings: Option<Settings> = None;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let (mut variant, mut backend, mut named, mut repeat, mut emit) = (None, None, None, None, None);
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
            Long("backend") => once(&mut backend, "backend", parser.value()?)?,
            Long("adapter") => once(&mut named, "adapter", parser.value()?)?,
            Long("repeat") => once(&mut repeat, "repeat", parser.value()?)?,
            Long("emit") => emit = Some(PathBuf::from(parser.value()?)),
            Long("report") => {
                report = true;
                parser.no_value()?;
            }
            Long("checked") => {
                checked = true;
                parser.no_value()?;
            }
            Long(name) => {
                let name = name.to_owned();
                let Some(settings) = &mut settings else {
                    return Err(refuse!("--{name} precedes the op's name; write the name first (see --help)"));
                };
                asked::take(settings, &name, &mut parser)?;
            }
            Value(name) if settings.is_none() => {
                settings = Some(Settings::new(asked::find(&name.string()?)?));
            }
            Value(path) => inputs.push(PathBuf::from(path)),
            Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let Some(settings) = settings else {
        return Err(refuse!("no op named; usage: op NAME INPUT.npy ... -o OUTPUT.npy (see --help and --list)"));
    };
    let repeat = match repeat.as_deref().map(|n| (n, n.parse())) {
        None => None,
        Some((_, Ok(n @ 1..=MAX_RUNS))) => Some(n),
        Some((text, _)) => {
            return Err(refuse!("--repeat {text}: must be a whole number of runs from 1 to {MAX_RUNS}"));
        }
    };
    let variant = variant.unwrap_or_else(|| "auto".into());
    let chosen = backend.is_some() || named.is_some();
    let emit = emit.map(|folder| (folder, chosen));
    let (adapter, cuda) = match backend.as_deref() {
        Some("cuda") => (AdapterFilter::Best, Some(named.unwrap_or_default())),
        backend => (adapter(backend, named.as_deref())?, None),
    };
    Ok(Some(Request { inputs, outputs, settings, variant, adapter, cuda, report, repeat, checked, emit }))
}

/// Lists all ops with their inputs, keys and variants.
fn list() -> String {
    let floor = DeviceProfile::webgpu_defaults();
    let mut text = String::new();
    for op in tilework::operations() {
        text += &asked::described(op);
        text += "  variants  auto: chosen by shape and device\n";
        for variant in (op.variants)() {
            let needs = variant.requires.missing(&floor).map(|what| format!("; needs {what}")).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "            {}: {}{needs}", variant.name, variant.about);
        }
    }
    text
}

fn run(request: &Request, out: &mut dyn Write) -> Result<(), Failure> {
    let op = request.settings.op();
    check_outputs(&request.outputs)?;
    let inputs = Inputs::read(op, &request.inputs)?;
    if let Some((folder, for_adapter)) = &request.emit {
        return emit::write(request, inputs, folder, *for_adapter);
    }
    if Gpu::drives(op) {
        if request.cuda.is_some() {
            return Err(refuse!("{}: has no CUDA kernel; run it on another backend, such as vulkan", op.name));
        }
        return drive(request, inputs, out);
    }
    let profile = profile_of(&request.adapter);
    let call = inputs.build(&request.settings, &request.variant, &profile)?;
    check_number(request, call.operands.iter().filter(|role| role.is_output()).count())?;
    if let Some(device) = &request.cuda {
        return cuda::run(request, device, call, out);
    }
    // Reject what the device cannot run before opening it, which is slow and makes some drivers print.
    if let Err(e) = call.lower(&profile)
        && matches!(e.kind(), ErrorKind::Shape | ErrorKind::InvalidArgument | ErrorKind::Unsupported)
    {
        return Err(e.into());
    }
    let gpu = open(request)?;
    let ready = gpu.ready(call)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    let results = ready.results()?;
    let report = request.report.then(|| ready.counted_report());
    measure(request, report.as_ref(), out, |runs| {
        let measured = gpu.measure(runs, |rec| ready.record(rec))?;
        Ok((measured.seconds, measured.clock))
    })?;
    npy::write_all(request.outputs.iter().zip(results))
}

fn open(request: &Request) -> Result<Gpu, Failure> {
    open_gpu_with(GpuOptions { adapter: request.adapter.clone(), checked: request.checked, ..Default::default() })
}

/// Rejects a wrong number of outputs.
fn check_number(request: &Request, outputs: usize) -> Result<(), Failure> {
    let (name, given) = (request.settings.op().name, request.outputs.len());
    if given == outputs {
        return Ok(());
    }
    Err(refuse!("{name}: {given} output files given with -o; it has {outputs}"))
}

/// Runs an op that the host drives, and writes its outputs. Reports and measures the op itself, without conversions.
fn drive(request: &Request, inputs: Inputs, out: &mut dyn Write) -> Result<(), Failure> {
    check_number(request, request.settings.op().outputs.len().max(1))?;
    let matrix = &inputs.matrix.unwrap_or_default();
    let Request { settings, variant, .. } = request;
    let profile = &profile_of(&request.adapter);
    let job = MatrixJob { matrix, inputs: inputs.arrays, settings, variant, profile };
    let op = settings.op();
    let call = if op.solver { None } else { Some(job.build(None)?) };
    if let Some(call) = &call {
        call.lower(profile)?;
    }
    let gpu = open(request)?;
    let driven = gpu.drive(&job, &mut |_, _| ())?;
    let Some(driven) = driven else { return Err(refuse!("{}: the host does not drive this op", op.name)) };
    if let (true, Driven::Vector(_, solution)) = (request.report, &driven) {
        let (outcome, n, residual) = (&solution.outcome, solution.iterations, solution.residual);
        let _ = writeln!(std::io::stderr(), "{}: {outcome} after {n} iterations, residual {residual:.3e}", op.name);
    }
    let measured = request.report || request.repeat.is_some();
    let ready = call.filter(|_| measured).map(|call| gpu.ready(call)).transpose()?;
    let report = ready.as_ref().filter(|_| request.report).map(ReadyCall::counted_report);
    measure(request, report.as_ref(), out, |runs| {
        if let Some(ready) = &ready {
            let measured = gpu.measure(runs, |rec| ready.record(rec))?;
            return Ok((measured.seconds, measured.clock));
        }
        let seconds = (0..runs).map(|_| {
            let start = Instant::now();
            gpu.drive(&job, &mut |_, _| ())?;
            Ok(start.elapsed().as_secs_f64())
        });
        Ok((seconds.collect::<tilework::Result<Vec<_>>>()?, Clock::Wall))
    })?;
    match driven {
        Driven::Matrix(matrix) => {
            let matrix = Matrix::Sparse(matrix);
            Ok(request.outputs.iter().try_for_each(|path| matrix_market::write_file(path, &matrix))?)
        }
        Driven::Vector(x, _) => npy::write_all(request.outputs.iter().zip(x)),
    }
}

/// Times runs and reports them, if requested.
fn measure(
    request: &Request, report: Option<&Report>, out: &mut dyn Write,
    run: impl Fn(usize) -> tilework::Result<(Vec<f64>, Clock)>,
) -> Result<(), Failure> {
    if !request.report && request.repeat.is_none() {
        return Ok(());
    }
    let runs = request.repeat.unwrap_or(DEFAULT_RUNS);
    let mut seconds = Vec::with_capacity(runs);
    let mut clock = None;
    while seconds.len() < runs {
        let (more, by) = run((runs - seconds.len()).min(BATCH))?;
        clock = Some(by);
        seconds.extend(more);
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
        let rates = report.map(|report| rates(report, median)).unwrap_or_default();
        let report = report.map(|report| format!("{report}\n")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "{report}  measured    {times}{rates}");
    }
    if request.repeat.is_some() {
        say(out, &format!("{}: {times}\n", request.settings.op().name))?;
    }
    Ok(())
}

/// Formats bytes and operations per second.
fn rates(report: &Report, seconds: f64) -> String {
    if seconds <= 0.0 {
        return String::new();
    }
    let (bytes, flop) = (report.cost.bytes / seconds * 1e-9, report.cost.flop / seconds * 1e-9);
    let percent = report.percent_of_roofline(seconds).map(|p| format!(", {p:.0} % of the roofline"));
    format!("; {bytes:.3} GB/s, {flop:.3} GFLOP/s{}", percent.unwrap_or_default())
}
