//! The command line of `sanitize`.

use super::common::asked::{self, Inputs};
use super::common::{Args, Failure, exit_code, npy, refuse, say};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tilework::analysis::Interleaving;
use tilework::program::{DeviceProfile, Settings};
use tilework::shader::{Spec, Target, expand_text};
use tilework::sim::{self, Counts, Options, Report, Schedule};

const USAGE: &str = "\
usage: sanitize OP INPUT.npy ... [--key value ...]
       sanitize KERNEL.wgsl --entry NAME --workgroups X,Y,Z --buffer DATA ...

  --entry NAME         entry point (the only one)
  --workgroups X,Y,Z   workgroups of the dispatch (1,1,1)
  --buffer DATA        a bound buffer, in order of group and binding, uniforms included: a .npy file, zeros:BYTES, or
                       words:7,-1,0.5 (u32; i32 with a sign; f32 with a point)
  --immediates DATA    contents of var<immediate>, in the same form
  --variant NAME       for an op: the variant to run (auto)
  --profile NAME       for an op: the device to plan for: h100, webgpu, mesa or swiftshader (h100)

  --subgroup N         lanes of a subgroup: 4 to 64 (32)
  --schedule NAME      in-order, reverse, random, random:SEED, last-first, stalled or adversarial (in-order)
  --sector BYTES       bytes per transfer of memory: 32, 64 or 128 (32)
  --banks N            banks of workgroup memory (32)
  --dram B,C,N         count bursts of B bytes, interleaved over C channels of N banks
  --steps N            maximum steps of a subgroup
  --max-workgroups N   run a sample of larger grids (4096)
  --nan                report NaN results of operands without NaN
  --untouched          report bytes that no thread touches
  --locals             report reads of local variables declared without a value
  --scratch            for an op: report reads of scratch before the first write
  --zeroed             zero workgroup and private memory first
  --worst N            number of most wasteful lines to print (10)
  --source             print the whole source with counts in the margin
  --json               print everything as JSON
";

/// Maximum bytes of all buffers in the simulator.
const MAX_BYTES: u64 = 1 << 30;

/// An op or a kernel.
enum What {
    Op(Settings),
    Kernel(PathBuf),
}

struct Request {
    what: What,
    inputs: Vec<PathBuf>,
    variant: String,
    profile: DeviceProfile,
    entry: Option<String>,
    workgroups: [u32; 3],
    buffers: Vec<String>,
    options: Options,
    worst: usize,
    source: bool,
    json: bool,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(parser: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = parse(parser).and_then(|request| {
        let (text, code) = match request {
            None => (USAGE.to_owned(), 0),
            Some(request) => {
                let report = simulate(&request)?;
                (shown(&report, &request), u8::from(!report.is_clean()))
            }
        };
        say(out, &text).map(|()| code)
    });
    exit_code("sanitize", done, err)
}

/// Returns the request, or `None` for `--help`.
fn parse(parser: lexopt::Parser) -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut parser = Args::new(parser, &["buffer"]);
    let mut what: Option<What> = None;
    let (mut inputs, mut buffers) = (Vec::new(), Vec::new());
    let (mut variant, mut entry) = ("auto".to_owned(), None);
    let mut profile = DeviceProfile::h100();
    let mut workgroups = [1; 3];
    let mut options = Options::default();
    let mut room = MAX_BYTES;
    let (mut worst, mut source, mut json) = (10, false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(None),
            Long("entry") => entry = Some(parser.value()?.string()?),
            Long("workgroups") => workgroups = extents("workgroups", &parser.value()?.string()?)?,
            Long("buffer") => buffers.push(parser.value()?.string()?),
            Long("immediates") => options.immediates = data(&parser.value()?.string()?, &mut room)?,
            Long("variant") => variant = parser.value()?.string()?,
            Long("profile") => profile = device(&parser.value()?.string()?)?,
            Long("subgroup") => options.subgroup_size = number("subgroup", &parser.value()?.string()?)?,
            Long("schedule") => options.schedule = schedule(&parser.value()?.string()?)?,
            Long("sector") => options.sector_bytes = number("sector", &parser.value()?.string()?)?,
            Long("banks") => options.banks = number("banks", &parser.value()?.string()?)?,
            Long("dram") => {
                let text = parser.value()?.string()?;
                let parts = numbers("dram", &text)?;
                let [burst, channels, banks] = parts[..] else {
                    return Err(refuse!("--dram {text}: must be three numbers: bytes of a burst, channels, banks"));
                };
                options.interleaving = Some(Interleaving { burst, channels, banks });
            }
            Long("steps") => options.step_limit = number("steps", &parser.value()?.string()?)?,
            Long("max-workgroups") => {
                options.max_workgroups = number("max-workgroups", &parser.value()?.string()?)?;
            }
            Long("worst") => worst = number("worst", &parser.value()?.string()?)?,
            Long("nan") => options.check_nan = true,
            Long("untouched") => options.check_untouched = true,
            Long("locals") => options.check_locals = true,
            Long("scratch") => options.check_scratch = true,
            Long("zeroed") => options.zero_initialized = true,
            Long("source") => source = true,
            Long("json") => json = true,
            Long(name) => {
                let name = name.to_owned();
                let Some(What::Op(settings)) = &mut what else {
                    return Err(refuse!("no option --{name} here; see --help, and `op --list` for the keys of ops"));
                };
                asked::take(settings, &name, &mut parser)?;
            }
            Value(name) if what.is_none() => {
                let name = name.string()?;
                let is_kernel = name.ends_with(".wgsl");
                what = Some(if is_kernel {
                    What::Kernel(name.into())
                } else {
                    What::Op(Settings::new(asked::find(&name)?))
                });
            }
            Value(path) => inputs.push(PathBuf::from(path)),
            Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let what = what.ok_or_else(|| refuse!("name an op or a kernel; see --help"))?;
    // Plan the op for the simulated subgroup size.
    profile.subgroup_sizes = (options.subgroup_size, options.subgroup_size);
    Ok(Some(Request { what, inputs, variant, profile, entry, workgroups, buffers, options, worst, source, json }))
}

fn number<T: FromStr>(key: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| refuse!("--{key} {text}: must be a whole number within bounds"))
}

fn numbers<T: FromStr>(key: &str, text: &str) -> Result<Vec<T>, Failure> {
    text.split(',').map(|part| number(key, part.trim())).collect()
}

fn extents(key: &str, text: &str) -> Result<[u32; 3], Failure> {
    match numbers(key, text)?[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(refuse!("--{key} {text}: must be one to three numbers, X,Y,Z")),
    }
}

fn device(name: &str) -> Result<DeviceProfile, Failure> {
    Ok(match name {
        "h100" => DeviceProfile::h100(),
        "webgpu" => DeviceProfile::webgpu_defaults(),
        "mesa" => DeviceProfile::mesa(),
        "swiftshader" => DeviceProfile::swiftshader(),
        _ => return Err(refuse!("--profile {name}: must be h100, webgpu, mesa or swiftshader")),
    })
}

fn schedule(name: &str) -> Result<Schedule, Failure> {
    Ok(match name.split_once(':') {
        Some(("random", seed)) => Schedule::Random(number("schedule random", seed)?),
        _ => match name {
            "in-order" => Schedule::InOrder,
            "reverse" => Schedule::Reverse,
            "random" => Schedule::Random(0),
            "last-first" => Schedule::LastFirst,
            "stalled" => Schedule::Stalled,
            "adversarial" => Schedule::Adversarial,
            _ => {
                return Err(refuse!(
                    "--schedule {name}: must be in-order, reverse, random, random:SEED, last-first, stalled or \
                     adversarial"
                ));
            }
        },
    })
}

fn simulate(request: &Request) -> Result<Report, Failure> {
    match &request.what {
        What::Op(settings) => run_op(settings, request),
        What::Kernel(path) => run_kernel(path, request),
    }
}

fn run_op(settings: &Settings, request: &Request) -> Result<Report, Failure> {
    let op = settings.op();
    let call = Inputs::read(op, &request.inputs)?.build(settings, &request.variant, &request.profile)?;
    let program = call.lower(&request.profile)?;
    let all = program.operands.iter().map(|operand| operand.bytes()).fold(0u64, u64::saturating_add);
    if all > MAX_BYTES {
        return Err(refuse!("{}: operands of {all} bytes; the simulator's maximum is {MAX_BYTES} in all", op.name));
    }
    let operands = call.operands.iter().zip(&program.operands).map(|(role, wanted)| match role.input() {
        Some(array) => array.data().bytes().to_vec(),
        None => vec![0; wanted.bytes() as usize],
    });
    Ok(sim::run(&program, &mut operands.collect::<Vec<_>>(), &request.options)?)
}

/// Parses the bytes of a buffer; zeros count against `room`.
fn data(text: &str, room: &mut u64) -> Result<Vec<u8>, Failure> {
    if let Some(n) = text.strip_prefix("zeros:") {
        let n: u64 = number("buffer zeros", n)?;
        *room = room
            .checked_sub(n)
            .ok_or_else(|| refuse!("--buffer zeros:{n}: the simulator's maximum is {MAX_BYTES} bytes in all"))?;
        return Ok(vec![0; n as usize]);
    }
    let Some(words) = text.strip_prefix("words:") else {
        return Ok(npy::read(Path::new(text))?.data().bytes().to_vec());
    };
    let word = |word: &str| {
        let bits = if word.contains('.') {
            word.parse().ok().map(f32::to_bits)
        } else if word.starts_with(['-', '+']) {
            word.parse().ok().map(|x: i32| x as u32)
        } else {
            word.parse().ok()
        };
        bits.map(u32::to_le_bytes).ok_or_else(|| refuse!("--buffer words: {word} is not a 32-bit number"))
    };
    let words = words.split(',').map(|w| word(w.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(words.into_flattened())
}

fn run_kernel(path: &Path, request: &Request) -> Result<Report, Failure> {
    let name = path.display().to_string();
    if let Some(extra) = request.inputs.first() {
        return Err(refuse!("{}: give a kernel's buffers with --buffer", extra.display()));
    }
    let text = std::fs::read_to_string(path).map_err(|e| refuse!("{name}: {e}"))?;
    let mut room = MAX_BYTES;
    let buffers = request.buffers.iter().map(|b| data(b, &mut room));
    let mut buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let entry = match &request.entry {
        Some(entry) => entry.clone(),
        None => {
            let text = expand_text(&name, &text, &Spec::new(), Target::Naga)?;
            let module = text.validate()?;
            match module.entries()[..] {
                [one] => one.to_owned(),
                ref all => return Err(refuse!("{name}: --entry is missing; there are: {}", all.join(", "))),
            }
        }
    };
    Ok(sim::run_wgsl(&name, &text, &entry, request.workgroups, &mut buffers, &request.options)?)
}

fn shown(report: &Report, request: &Request) -> String {
    if request.json {
        return format!("{:#}\n", as_json(report));
    }
    let annotated = report.annotated(request.worst);
    let lines = if request.source { annotated.as_str() } else { annotated.split("\n\n").next().unwrap_or("") };
    let verdict = match report.findings.len() {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    format!("{report}{verdict}\n\n{}\n", lines.trim_end())
}

fn as_json(report: &Report) -> Json {
    let thread = |t: &sim::Thread| json!({ "workgroup": t.workgroup, "local": t.local, "global": t.global });
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            let other = f
                .other
                .as_ref()
                .map(|(line, who)| json!({ "file": line.file, "line": line.line, "thread": thread(who) }));
            json!({
                "kind": f.kind.name(), "kernel": f.kernel, "dispatch": f.dispatch, "file": f.at.file, "line": f.at.line,
                "thread": thread(&f.thread), "other": other, "message": f.message, "times": f.times,
            })
        })
        .collect();
    let lines: Vec<_> = report
        .lines
        .iter()
        .map(|(place, c)| json!({ "file": place.file, "line": place.line, "counts": counts(c) }))
        .collect();
    let bursts: Vec<_> = report
        .bursts
        .iter()
        .map(|((channel, bank), n)| json!({ "channel": channel, "bank": bank, "bursts": n }))
        .collect();
    json!({
        "findings": findings, "notes": report.notes, "subgroup_size": report.subgroup_size,
        "sector_bytes": report.sector_bytes, "bursts": bursts, "totals": counts(&report.totals), "lines": lines,
    })
}

fn counts(c: &Counts) -> Json {
    json!({
        "steps": c.steps, "active": c.active, "lanes": c.lanes, "branches": c.branches, "divergent": c.divergent,
        "read_bytes": c.read_bytes, "written_bytes": c.written_bytes, "used_bytes": c.used_bytes,
        "transactions": c.transactions, "moved_bytes": c.moved_bytes, "coalescing": c.coalescing(),
        "shared_reads": c.shared_reads, "shared_writes": c.shared_writes, "shared_passes": c.shared_passes,
        "bank_conflicts": c.bank_conflicts, "atomics": c.atomics, "contended": c.contended, "barriers": c.barriers,
        "flop": c.flop(), "add": c.add, "multiply": c.multiply, "fma": c.fma, "divide": c.divide, "special": c.special,
        "integer": c.integer,
    })
}
