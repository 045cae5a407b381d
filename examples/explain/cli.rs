//! The command line of `explain`.

use super::common::asked::{self, read_matrix};
use super::common::pictures::roofline::{Dot, RooflinePicture};
use super::common::{Args, Failure, adapter, exit_code, open_gpu, pictures, profile_of, refuse, say};
use super::inputs::{self, Fill, Made, Shape};
use super::occupancy;
use super::table::{short, table};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use tilework::gpu::{Clock, OpProfile, Profile};
use tilework::io::{check_outputs, shown};
use tilework::program::{Ask, DeviceProfile, Grid, OpCall, Operation, Program, Settings, Variant};
use tilework::sparse::Csr;
use tilework::{DType, Error, ErrorKind, Gpu, KernelReport, MatrixJob, ReadyCall, Report};

const USAGE: &str = "\
usage: explain OP --shape SHAPE [--shape SHAPE ...] [--key value ...] [-o ROOFLINE.svg]
       explain --list
       explain occupancy --threads N [--shared BYTES] [--registers N] [--device NAME] (see explain occupancy --help)

  --shape SHAPE        an input such as 512x512, or 1000:u32 for another type; omit inputs that the first implies
  --dtype TYPE         element type: f32, f16, i32, u32, u8 or i8 (f32)
  --matrix FILE.mtx    sparse input; without, the first --shape is ROWSxCOLS or ROWSxCOLSxENTRIES_PER_ROW
  --op-shape A,B,C,D   the op's own key --shape, if it has one
  --variant NAME       explain this variant only; may repeat
  -o FILE              draw the roofline, as SVG or PNG
  --reports            print each variant's report
  --no-measure         predict only, run nothing
  --runs N             runs of each variant; the median counts (11; 3 on a processor)
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

Other keys are the op's: see the example op.
";

struct Request {
    settings: Settings,
    shapes: Vec<Shape>,
    dtype: DType,
    matrix: Option<PathBuf>,
    variants: Vec<&'static Variant>,
    picture: Option<PathBuf>,
    reports: bool,
    measure: bool,
    runs: Option<usize>,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|asked| match asked {
        Asked::Text(text) => say(out, &text).map(|()| 0),
        Asked::For(request) => explain(&request, out),
    });
    exit_code("explain", result, err)
}

/// The parsed command line.
enum Asked {
    Text(String),
    For(Box<Request>),
}

fn parse(args: lexopt::Parser) -> Result<Asked, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &["shape", "variant"]);
    let mut settings: Option<Settings> = None;
    let (mut shapes, mut names) = (Vec::new(), Vec::new());
    let (mut dtype, mut matrix, mut picture, mut runs, mut adapter) = (None, None, None, None, None);
    let (mut reports, mut measure) = (false, true);
    let once = |slot: &mut Option<OsString>, key: &str, value: OsString| match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(refuse!("{key} is given twice")),
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("list") => return Ok(Asked::Text(list())),
            Short('h') | Long("help") => return Ok(Asked::Text(USAGE.into())),
            Long("shape") => shapes.push(Shape::parse(&args.value()?.string()?)?),
            Long("dtype") => once(&mut dtype, "--dtype", args.value()?)?,
            Long("matrix") => once(&mut matrix, "--matrix", args.value()?)?,
            Long("variant") => names.push(args.value()?.string()?),
            Short('o') => once(&mut picture, "-o", args.value()?)?,
            Long("reports") => reports = true,
            Long("no-measure") => measure = false,
            Long("runs") => once(&mut runs, "--runs", args.value()?)?,
            Long("adapter") => once(&mut adapter, "--adapter", args.value()?)?,
            Long(name) => {
                let own = if name == "op-shape" { "shape" } else { name }.to_owned();
                let Some(settings) = &mut settings else {
                    return Err(refuse!("--{name} precedes the op's name; write the name first (see --help)"));
                };
                asked::take(settings, &own, &mut args)?;
            }
            Value(name) if settings.is_none() && name == "occupancy" => {
                return occupancy::answer(&mut args).map(Asked::Text);
            }
            Value(name) if settings.is_none() => {
                settings = Some(Settings::new(asked::find(&name.string()?)?));
            }
            Value(_) | Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let Some(settings) = settings else {
        return Err(refuse!("no op named; usage: explain OP --shape SHAPE (see --help and --list)"));
    };
    let op = settings.op();
    let text = |slot: Option<OsString>| slot.map(|s| s.to_string_lossy().into_owned());
    let runs = match text(runs).map(|n| (n.parse(), n)) {
        None => None,
        Some((Ok(n @ 1..=2048), _)) => Some(n),
        Some((_, n)) => return Err(refuse!("--runs {n}: must be a whole number of runs, from 1 to 2048")),
    };
    let all = (op.variants)();
    let find = |name: &String| {
        let names = || all.iter().map(|v| v.name).collect::<Vec<_>>().join(", ");
        let found = all.iter().find(|v| v.name == name);
        found.ok_or_else(|| refuse!("{}: no variant `{name}`; there are: {}", op.name, names()))
    };
    let variants = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let picture = picture.map(PathBuf::from);
    if let Some(path) = &picture {
        pictures::is_png(path).map_err(Failure::bad_input)?;
    }
    Ok(Asked::For(Box::new(Request {
        settings,
        shapes,
        dtype: text(dtype).map_or(Ok(DType::F32), |name| inputs::dtype(&name))?,
        matrix: matrix.map(PathBuf::from),
        variants: if names.is_empty() { all.iter().collect() } else { variants },
        picture,
        reports,
        measure,
        runs,
        adapter: text(adapter),
    })))
}

/// Lists the ops with one program: no solvers.
fn list() -> String {
    tilework::operations().filter(|op| !op.solver).map(asked::described).collect()
}

/// Source of inputs. Arrays are made when they are needed.
struct Material<'a> {
    matrix: Option<Csr>,
    shapes: &'a [Shape],
    /// The device that decides the format.
    profile: DeviceProfile,
}

impl Request {
    fn op(&self) -> &'static Operation {
        self.settings.op()
    }

    fn material(&self) -> Result<Material<'_>, Failure> {
        let op = self.op();
        let (mut matrix, mut shapes) = (None, &self.shapes[..]);
        match (op.matrix, &self.matrix) {
            (false, None) => {}
            (false, Some(_)) => {
                return Err(refuse!("{}: the op takes no sparse matrix; leave --matrix out", op.name));
            }
            (true, Some(path)) => matrix = Some(read_matrix(path)?),
            (true, None) => {
                let Some((first, others)) = shapes.split_first() else {
                    return Err(refuse!("{}: give --matrix FILE.mtx, or --shape ROWSxCOLS", op.name));
                };
                shapes = others;
                matrix = Some(made_up(op, first)?);
            }
        }
        let (given, most) = (shapes.len(), op.inputs.len());
        if given > most {
            let name = op.name;
            return Err(refuse!("{name}: {given} inputs given; it takes at most {most} (see --list)"));
        }
        let profile = profile_of(&adapter(None, self.adapter.as_deref())?);
        Ok(Material { matrix, shapes, profile })
    }

    /// Forms the op with a variant, and describes its inputs.
    fn build(&self, material: &Material<'_>, variant: &str, fill: Fill) -> Result<(OpCall, Vec<String>), Failure> {
        let mut made = Made::new(material.shapes, self.dtype, fill);
        let settings = &self.settings;
        let call = match &material.matrix {
            Some(matrix) => {
                let profile = &material.profile;
                MatrixJob { matrix, inputs: Vec::new(), settings, variant, profile }.build(Some(&mut made))?
            }
            None => self.op().build(Ask::new(settings).variant(variant).supplied_by(&mut made))?,
        };
        Ok((call, made.described))
    }
}

/// Makes a matrix from the first shape.
fn made_up(op: &Operation, shape: &Shape) -> Result<Csr, Failure> {
    let (rows, cols, entries) = match shape.extents[..] {
        [rows, cols] => (rows, cols, 16),
        [rows, cols, entries] => (rows, cols, entries),
        _ => {
            return Err(refuse!(
                "{}: the first --shape is the matrix: ROWSxCOLS, or ROWSxCOLSxENTRIES_PER_ROW",
                op.name
            ));
        }
    };
    inputs::matrix(rows, cols, entries)
}

/// A variant's report and measurements on this device.
struct Explained {
    name: &'static str,
    report: Report,
    /// Bytes that its workgroups request, if known.
    asked: Option<f64>,
    /// The slowest kernel.
    kernel: Option<KernelReport>,
    seconds: Option<f64>,
}

/// The error of a request that no device takes.
fn refused<T>(lowered: tilework::Result<T>) -> Option<Error> {
    lowered.err().filter(|e| matches!(e.kind(), ErrorKind::Shape | ErrorKind::InvalidArgument))
}

fn explain(request: &Request, out: &mut dyn Write) -> Result<u8, Failure> {
    let op = request.op();
    check_outputs(&request.picture)?;
    let material = request.material()?;
    // Reject what the device cannot run before opening it.
    let (auto, arrays) = request.build(&material, "auto", Fill::Blank)?;
    if let Some(e) = refused(auto.lower(&material.profile))
        && request.variants.iter().all(|v| match request.build(&material, v.name, Fill::Blank) {
            Ok((call, _)) => refused(call.lower(&material.profile)).is_some(),
            Err(_) => true,
        })
    {
        return Err(e.into());
    }
    let gpu = open_gpu(request.adapter.clone())?;
    let ceilings = gpu.ceilings()?;
    let mut text = format!("{}: {}\n", op.name, op.about);
    let of_matrix =
        material.matrix.iter().map(|a| format!("a {} x {} matrix of {} entries", a.rows, a.cols, a.values.len()));
    let inputs: Vec<_> = of_matrix.chain(arrays).collect();
    text += &format!("  inputs   {}\n", inputs.join(", "));
    text += &format!(
        "  adapter  {} ({}): {} GB/s, {} GFLOP/s; ridge at {} operations per byte\n",
        gpu.profile().name,
        gpu.profile().driver,
        short(ceilings.copy_bytes_per_second * 1e-9),
        short(ceilings.fma_flop_per_second * 1e-9),
        short(ceilings.fma_flop_per_second / ceilings.copy_bytes_per_second),
    );
    // As planned: a tuned choice, if there is one.
    let chosen = match gpu.lower_call(&auto) {
        Ok(program) => {
            text += &format!("  auto     {} ({})\n", program.variant(), program.decision.why);
            Some(program.variant())
        }
        // An option that belongs to another variant.
        Err(e) if e.kind() == ErrorKind::InvalidArgument => {
            text += &format!("  auto     none: {e}\n");
            None
        }
        Err(e) => return Err(e.into()),
    };
    drop(auto);
    say(out, &text)?;

    let (mut done, mut without, mut clock) = (Vec::new(), Vec::new(), None);
    for variant in &request.variants {
        if let Some(missing) = variant.requires.missing(gpu.profile()) {
            without.push(format!("{}: needs {missing}", variant.name));
            continue;
        }
        match explained(request, &material, &gpu, variant.name)? {
            Ok((explained, measured_by)) => {
                clock = measured_by.or(clock);
                if request.reports {
                    say(out, &format!("\n{}\n", explained.report))?;
                }
                done.push(explained);
            }
            Err(refused) => without.push(format!("{}: {refused}", variant.name)),
        }
    }
    say(out, &format!("\n{}", numbers(&done, chosen)))?;
    if chosen.is_some_and(|chosen| done.iter().any(|d| d.name == chosen)) {
        say(out, "*: chosen by auto\n")?;
    }
    say(
        out,
        "MB, flop/byte and minimum: minimum traffic; predicted: by the bytes that the variant requests, without caches\n",
    )?;
    if let Some(clock) = clock {
        say(out, &format!("measured: the median, by the {clock} clock\n").replace("wall clock", "host clock"))?;
    }
    say(out, &analysis(&done))?;
    say(out, &block("not here", without.iter().map(|line| format!("  {line}\n"))))?;
    if let Some(path) = &request.picture {
        match picture(op.name, &inputs, &gpu, &done) {
            Some(picture) => {
                pictures::save(path, &picture).map_err(Failure::bad_input)?;
                say(out, &format!("\n{}\n", shown(path)))?;
            }
            None => say(out, "\nno picture: no variant both computes and runs\n")?,
        }
    }
    Ok(0)
}

/// Formats lines under a title; nothing if there are none.
fn block(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}

/// Reports and measures a variant. Returns an error text if it does not run here.
fn explained(
    request: &Request, material: &Material<'_>, gpu: &Gpu, variant: &'static str,
) -> Result<Result<(Explained, Option<Clock>), Error>, Failure> {
    let (call, _) = request.build(material, variant, Fill::Blank)?;
    let executable = match gpu.plan_call(&call) {
        Ok(executable) => executable,
        Err(e) if matches!(e.kind(), ErrorKind::DeviceLost | ErrorKind::OutOfMemory) => return Err(e.into()),
        Err(e) => return Ok(Err(e)),
    };
    drop(call);
    let (mut report, mut measured) = (Report::of(&executable), None);
    if request.measure {
        let (call, _) = request.build(material, variant, Fill::Random)?;
        let ready = gpu.ready(call)?;
        measured = Some(measure(gpu, &ready, request.runs)?);
        report = ready.counted_report();
    }
    let profile = measured.as_ref().and_then(|m| m.profile.ops.first());
    let main = main_kernel(executable.program(), &report, profile);
    let (kernel, asked) = (main.map(|i| report.kernels[i].clone()), report.requested);
    let (seconds, clock) = measured.map(|m| (m.seconds, m.profile.clock)).unzip();
    Ok(Ok((Explained { name: variant, report, asked, kernel, seconds }, clock)))
}

/// Finds the slowest kernel; without a profile, the one with the most threads.
fn main_kernel(program: &Program, report: &Report, profile: Option<&OpProfile>) -> Option<usize> {
    let weight = |kernel: usize| -> f64 {
        let dispatches = program.dispatches.iter().enumerate().filter(|(_, d)| d.kernel == kernel);
        let weights = dispatches.map(|(i, d)| {
            let timed = profile.and_then(|op| op.dispatches.get(i)?.seconds);
            timed.unwrap_or_else(|| match d.grid {
                Grid::Direct(grid) => {
                    grid.into_iter().map(f64::from).product::<f64>() * f64::from(report.kernels[kernel].invocations())
                }
                Grid::Indirect { .. } => 1.0,
            })
        });
        weights.sum()
    };
    (0..report.kernels.len()).max_by(|a, b| weight(*a).total_cmp(&weight(*b)))
}

/// Measurements of a variant.
struct Measured {
    /// Median.
    seconds: f64,
    /// Profile of one more run.
    profile: Profile,
}

fn measure(gpu: &Gpu, ready: &ReadyCall, runs: Option<usize>) -> Result<Measured, Failure> {
    let runs = runs.unwrap_or(if gpu.profile().is_cpu() { 3 } else { 11 });
    let seconds = gpu.measure(runs, |rec| ready.record(rec))?.median();
    let profile = gpu.profile_work(|rec| ready.record(rec))?;
    Ok(Measured { seconds, profile })
}

/// Formats the numbers of all variants, one line each; a star marks the one that `auto` chooses.
fn numbers(done: &[Explained], chosen: Option<&str>) -> String {
    const HEAD: [&str; 15] = [
        "variant",
        "dispatches",
        "GFLOP",
        "MB",
        "flop/byte",
        "requested MB",
        "scratch MB",
        "workgroup",
        "shared B",
        "barriers",
        "occupancy",
        "minimum us",
        "predicted us",
        "measured us",
        "roofline",
    ];
    let text = |x: Option<String>| x.unwrap_or_else(|| "-".into());
    let mut rows = vec![HEAD.map(String::from).to_vec()];
    for Explained { name, report, asked, kernel, seconds } in done {
        let workgroup = kernel.as_ref().map(|k| k.workgroup_size.map(|n| n.to_string()).join("x"));
        // Barriers in loops run many times.
        let barriers = kernel.as_ref().map(|k| match k.barriers_in_loops {
            0 => k.barriers.to_string(),
            n if n == k.barriers => format!("{n} looped"),
            n => format!("{}, {n} looped", k.barriers),
        });
        let occupancy = kernel.as_ref().and_then(|k| k.occupancy(&report.multiprocessor).fraction());
        let percent = seconds.and_then(|s| report.percent_of_roofline(s)).filter(|p| *p > 0.0 && p.is_finite());
        rows.push(vec![
            format!("{name}{}", if chosen == Some(name) { " *" } else { "" }),
            report.dispatches.len().to_string(),
            short(report.cost.flop * 1e-9),
            short(report.cost.bytes * 1e-6),
            text(report.intensity().map(short)),
            text(asked.map(|b| short(b * 1e-6))),
            short(report.scratch as f64 * 1e-6),
            text(workgroup),
            text(kernel.as_ref().map(|k| k.workgroup_bytes.to_string())),
            text(barriers),
            text(occupancy.map(|f| format!("{:.0} %", 100.0 * f))),
            text(report.minimum_seconds().map(|s| short(s * 1e6))),
            text(report.predicted_seconds().map(|s| short(s * 1e6))),
            text(seconds.map(|s| short(s * 1e6))),
            text(percent.map(|p| format!("{p:.1} %"))),
        ]);
    }
    table(&rows)
}

/// Formats the results of the analysis, one column per formula, with a legend.
fn analysis(done: &[Explained]) -> String {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for fact in done.iter().flat_map(|d| &d.report.facts) {
        if !names.contains(&(fact.name, &fact.of)) {
            names.push((fact.name, &fact.of));
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![std::iter::once("analysis").chain(names.iter().map(|(name, _)| *name)).map(String::from).collect()];
    for Explained { name, report, .. } in done.iter().filter(|d| !d.report.facts.is_empty()) {
        let cell = |&(name, of): &(&str, &str)| {
            let known = report.facts.iter().find(|f| f.name == name && f.of == of);
            known.map_or("-".into(), |f| if f.value.fract() == 0.0 { f.value.to_string() } else { short(f.value) })
        };
        rows.push(std::iter::once((*name).to_owned()).chain(names.iter().map(cell)).collect());
    }
    let legend: String = names.iter().map(|(name, of)| format!("{name}: {of}\n")).collect();
    format!("\n{}{legend}", table(&rows))
}

/// Draws all variants that compute on the roofline.
fn picture(op: &str, inputs: &[String], gpu: &Gpu, done: &[Explained]) -> Option<RooflinePicture> {
    let roof = done.first()?.report.roofline()?;
    let by_asked = done.iter().all(|d| d.asked.is_some());
    let dots = done.iter().filter_map(|d| {
        let bytes = if by_asked { d.asked? } else { d.report.cost.bytes };
        let (seconds, note) = match d.seconds {
            Some(s) => (s, format!("{} ms", short(s * 1e3))),
            None => (d.report.predicted_seconds()?, "predicted".to_owned()),
        };
        let (intensity, flops) = (d.report.cost.flop / bytes, d.report.cost.flop / seconds);
        let drawn = intensity > 0.0 && flops > 0.0 && intensity.is_finite() && flops.is_finite();
        drawn.then(|| Dot { text: format!("{} ({note})", d.name), intensity, flops })
    });
    let dots: Vec<_> = dots.collect();
    let alike = inputs.windows(2).all(|w| w[0] == w[1]) && inputs.len() > 1;
    let of = if alike { format!("{} x {}", inputs.len(), inputs[0]) } else { inputs.join(", ") };
    (!dots.is_empty()).then(|| RooflinePicture {
        title: format!("{op} of {of} on {}", gpu.profile().name),
        intensity: if by_asked {
            "operations per byte requested by workgroups"
        } else {
            "operations per byte (minimum traffic)"
        },
        roof,
        dots,
    })
}
