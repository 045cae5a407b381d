//! The command line of `shard`.

use super::common::pictures::{is_png, save};
use super::common::{Args, Failure, answer, open_gpu_with, say};
use super::picture::RankTimelines;
use super::table::{Row, table};
use super::work::{Job, Measured, Runs, measure};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tilework::gpu::AdapterFilter;
use tilework::program::DeviceClass;
use tilework::shard::RankSpan;
use tilework::{ErrorKind, Gpu, GpuOptions, shard};

const USAGE: &str = "\
usage: shard reduce|sort|gemm|solve|train ...

  reduce               all-reduce of an f32 array that each device holds
    --bytes BYTES      its size (1G; 4M on a software driver)
  sort                 sample sort of random u32 keys
    --items N          keys of all devices together (2^28; 2^16 on a software driver)
  gemm [N]             f32 product of two N x N matrices in blocks (8192; 256 on a software driver)
  solve [A.mtx]        conjugate gradients; without a matrix, the 7-point stencil of a 3-D Poisson problem
    --grid N           points along each side of that (200; 16 on a software driver)
    --max-iter N       iterations (200)
    --partition FILE   the rank of each row of the matrix, a number a line, for one number of ranks
  train                data-parallel training of a small convolutional network on random images
    --batch N          images of all devices together (4096; 64 on a software driver)

  --ranks N,...        numbers of devices (1, 2, 4, ... and all); above the number of devices they share
  --link NAME          local: through the host's memory; nccl: by NCCL, with the feature `nccl`; mpi: between the
                       processes that mpirun started, with the feature `mpi` (local)
  --repeat N           runs of each, of which the median counts (5)
  --timeline PICTURE   draw when devices and links were busy in one more run of the last row, as .svg or .png
  --adapter SUBSTRING  only devices with this backend, or this in their name or driver
  --timeout SECONDS    how long a rank waits for another (60)

BYTES may end in K, M or G; N of keys may be a power such as 2^28. By default all cards take part, each through the
backend of the best.
";

struct Options {
    job: Asked,
    ranks: Vec<usize>,
    link: AskedLink,
    repeat: usize,
    timeline: Option<PathBuf>,
    adapter: Option<String>,
    timeout: u64,
}

/// The link between ranks.
#[derive(Clone, Copy, PartialEq)]
enum AskedLink {
    Local,
    Nccl,
    Mpi,
}

impl AskedLink {
    fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Nccl => "nccl",
            Self::Mpi => "mpi",
        }
    }
}

/// What to do; sizes that are not given depend on the device.
enum Asked {
    Reduce { bytes: Option<u64> },
    Sort { items: Option<u64> },
    Gemm { n: Option<usize> },
    Solve { file: Option<PathBuf>, partition: Option<PathBuf>, grid: Option<usize>, iterations: usize },
    Train { batch: Option<usize> },
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("shard", USAGE), parse(args), scale, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let mut words = Vec::new();
    let mut partition = None;
    let (mut bytes, mut items, mut grid, mut batch, mut iterations) = (None, None, None, None, None);
    let mut options = Options {
        job: Asked::Reduce { bytes: None },
        ranks: Vec::new(),
        link: AskedLink::Local,
        repeat: 5,
        timeline: None,
        adapter: None,
        timeout: 60,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("bytes") => bytes = Some(size("--bytes", &args.value()?.string()?)?),
            Long("items") => items = Some(size("--items", &args.value()?.string()?)?),
            Long("partition") => partition = Some(PathBuf::from(args.value()?)),
            Long("grid") => grid = Some(args.number(1..=1290)?),
            Long("max-iter") => iterations = Some(args.number(1..=1_000_000)?),
            Long("batch") => batch = Some(args.number(1..=1 << 24)?),
            Long("ranks") => {
                let text = args.value()?.string()?;
                let ranks = text.split(',').map(|t| t.parse().ok().filter(|n| (1..=64).contains(n)));
                options.ranks = ranks
                    .collect::<Option<_>>()
                    .ok_or_else(|| Failure::bad_input(format!("--ranks {text}: must be whole numbers from 1 to 64")))?;
            }
            Long("link") => {
                let name = args.value()?.string()?;
                let links = [AskedLink::Local, AskedLink::Nccl, AskedLink::Mpi];
                options.link = links
                    .into_iter()
                    .find(|link| link.name() == name)
                    .ok_or_else(|| Failure::bad_input(format!("--link {name}: there are local, nccl and mpi")))?;
            }
            Long("repeat") => options.repeat = args.number(1..=1000)?,
            Long("timeline") => {
                let path = PathBuf::from(args.value()?);
                is_png(&path).map_err(Failure::bad_input)?;
                options.timeline = Some(path);
            }
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Long("timeout") => options.timeout = args.number(1..=86_400)?,
            Short('h') | Long("help") => return Ok(None),
            Value(word) => words.push(word),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let mut words = words.into_iter();
    let name = words.next().unwrap_or_default().string()?;
    let operand = words.next();
    if let Some(extra) = words.next() {
        return Err(Failure::bad_input(format!("{}: one word too many (see --help)", extra.display())));
    }
    let given = [
        ("--bytes", bytes.is_some(), "reduce"),
        ("--items", items.is_some(), "sort"),
        ("--grid", grid.is_some(), "solve"),
        ("--partition", partition.is_some(), "solve"),
        ("--max-iter", iterations.is_some(), "solve"),
        ("--batch", batch.is_some(), "train"),
    ];
    if let Some((key, _, of)) = given.iter().find(|(_, given, of)| *given && *of != name) {
        return Err(Failure::bad_input(format!("{key} belongs to `shard {of}`, not to `shard {name}`")));
    }
    let none = || match &operand {
        Some(word) => Err(Failure::bad_input(format!("{name} takes no {} (see --help)", word.display()))),
        None => Ok(()),
    };
    options.job = match name.as_str() {
        "reduce" => none().map(|()| Asked::Reduce { bytes })?,
        "sort" => none().map(|()| Asked::Sort { items })?,
        "train" => none().map(|()| Asked::Train { batch })?,
        "gemm" => {
            let n = operand.map(ValueExt::string).transpose()?;
            let n = n.map(|text| {
                let n = text.parse().ok().filter(|n| (1..=1 << 17).contains(n));
                n.ok_or_else(|| Failure::bad_input(format!("gemm {text}: must be a whole number up to 131072")))
            });
            Asked::Gemm { n: n.transpose()? }
        }
        "solve" => {
            if let (Some(file), true) = (&operand, grid.is_some()) {
                let text = format!("a matrix, {}, and --grid; name one of both", file.display());
                return Err(Failure::bad_input(text));
            }
            if partition.is_some() && (operand.is_none() || options.ranks.len() != 1) {
                return Err(Failure::bad_input("--partition needs a matrix, and one number of --ranks"));
            }
            Asked::Solve { file: operand.map(PathBuf::from), partition, grid, iterations: iterations.unwrap_or(200) }
        }
        _ => {
            return Err(Failure::bad_input("name what to do: reduce, sort, gemm, solve or train (see --help)"));
        }
    };
    Ok(Some(options))
}

/// Parses a number such as `1000`, `64K`, `1G` or `2^28`.
fn size(key: &str, text: &str) -> Result<u64, Failure> {
    let number = match (text.split_once('^'), text.char_indices().next_back()) {
        (Some(("2", power)), _) => power.parse().ok().and_then(|p: u32| 1u64.checked_shl(p)),
        (_, Some((end, unit @ ('K' | 'M' | 'G')))) => {
            let shift = 10 * (1 + "KMG".find(unit).unwrap_or(0));
            text[..end].parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift))
        }
        _ => text.parse().ok(),
    };
    number
        .filter(|n| (1..=1 << 40).contains(n))
        .ok_or_else(|| Failure::bad_input(format!("{key} {text}: must be from 1 to 1024G, as 1000, 64K, 1G or 2^28")))
}

/// The devices that take part, best first: all cards of the best adapter's backend, or the best adapter alone.
fn devices(name: Option<&str>) -> Result<Vec<Gpu>, Failure> {
    let all = Gpu::adapters();
    let filter = name.map(|name| AdapterFilter::Name(name.into())).unwrap_or_default();
    let best = Gpu::find_adapter(&GpuOptions { adapter: filter.clone(), ..Default::default() })?;
    let beside = |other: &tilework::program::DeviceProfile| {
        other.backend == best.backend && other.class == DeviceClass::Discrete && best.class == DeviceClass::Discrete
    };
    let mut wanted: Vec<usize> = (0..all.len()).filter(|&i| filter.fits(i, &all[i]) && beside(&all[i])).collect();
    if wanted.is_empty() {
        let same = all.iter().position(|p| p.name == best.name && p.backend == best.backend);
        wanted.extend(same);
    }
    wanted
        .into_iter()
        .map(|i| open_gpu_with(GpuOptions { adapter: AdapterFilter::Index(i), ..Default::default() }))
        .collect()
}

/// The job, with sizes for the device where none are given.
fn job(asked: &Asked, ranks: Option<usize>, software: bool) -> Result<Job, Failure> {
    Ok(match asked {
        Asked::Reduce { bytes } => {
            Job::Reduce { elements: (bytes.unwrap_or(if software { 4 << 20 } else { 1 << 30 }) / 4).max(1) as usize }
        }
        Asked::Sort { items } => {
            Job::Sort { items: items.unwrap_or(if software { 1 << 16 } else { 1 << 28 }) as usize }
        }
        Asked::Gemm { n } => Job::Gemm { n: n.unwrap_or(if software { 256 } else { 8192 }) },
        Asked::Solve { file: Some(file), partition, iterations, .. } => {
            let matrix = super::common::matrices::read_square(file)?;
            match partition {
                None => Job::solve(matrix, None, *iterations),
                Some(list) => {
                    let text = std::fs::read_to_string(list)
                        .map_err(|e| Failure::bad_input(format!("{}: {e}", list.display())))?;
                    let parts = shard::read_partition(&text)?;
                    let cut = shard::partitioned(&matrix, &parts, ranks.unwrap_or(1))?;
                    Job::solve(cut.matrix, Some(cut.rows), *iterations)
                }
            }
        }
        Asked::Solve { grid, iterations, .. } => {
            Job::Poisson { side: grid.unwrap_or(if software { 16 } else { 200 }), iterations: *iterations }
        }
        Asked::Train { batch } => Job::Train { batch: batch.unwrap_or(if software { 64 } else { 4096 }) },
    })
}

fn scale(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    if options.link == AskedLink::Mpi {
        return as_process(options, out);
    }
    let gpus = devices(options.adapter.as_deref())?;
    let software = gpus[0].profile().is_cpu();
    let job = job(&options.job, options.ranks.first().copied(), software)?;

    for (i, gpu) in gpus.iter().enumerate() {
        say(out, &format!("device {i}: {} ({})\n", gpu.profile().name, gpu.profile().backend))?;
    }
    if software {
        say(out, "the device is the processor itself: ranks share its cores and gain little\n")?;
    }
    let mut ranks = options.ranks.clone();
    if ranks.is_empty() {
        ranks.extend((0..7).map(|power| 1 << power).take_while(|p| *p < gpus.len()));
        ranks.push(gpus.len());
        if let (Job::Reduce { .. }, [1, _, ..]) = (&job, &ranks[..]) {
            ranks.remove(0);
        }
    }
    let most = ranks.iter().copied().max().unwrap_or(1);
    let (mut rows, mut right, mut last) = (Vec::new(), true, Vec::new());
    for p in ranks {
        let group: Vec<Gpu> = (0..p).map(|i| gpus[i % gpus.len()].clone()).collect();
        let mut measured = match on(options, &job, &group)? {
            Ok(measured) => measured,
            Err(e) if e.kind() == ErrorKind::TooLarge && p < most => {
                say(out, &format!("{p} devices: the work does not fit: {e}\n"))?;
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        right &= measured.iter().all(|m| m.right);
        if matches!(job, Job::Train { .. }) {
            predict_training(rows.first(), p, &mut measured);
        }
        rows.push(Row::new(p, &measured));
        say(out, &format!("{}\n", job.note(p, &measured)))?;
        last = measured;
    }
    if let Some(path) = &options.timeline {
        draw(path, &job, options.link, last.into_iter().map(|m| m.spans).collect())?;
        say(out, &format!("wrote {}\n", path.display()))?;
    }
    say(out, &table(&job, options.link.name(), &rows))?;
    say(out, if right { "all results are right\n" } else { "some results are WRONG\n" })?;
    Ok(if right { 0 } else { 1 })
}

/// Adds the time of one device, which the model does not know, to that of the all-reduce.
fn predict_training(one: Option<&Row>, p: usize, measured: &mut [Measured]) {
    let one = if p == 1 { measured.first().map(|m| m.seconds) } else { one.and_then(Row::alone) };
    for m in measured {
        m.predicted = one.map_or(0.0, |one| one / p as f64 + m.predicted);
    }
}

/// Draws the spans of all ranks.
fn draw(path: &std::path::Path, job: &Job, link: AskedLink, ranks: Vec<Vec<RankSpan>>) -> Result<(), Failure> {
    let title = format!("{}, link: {}", job.describe(), link.name());
    save(path, &RankTimelines { title, ranks }).map_err(Failure::bad_input)
}

impl Options {
    fn runs(&self) -> Runs {
        Runs { repeat: self.repeat, watch: self.timeline.is_some() }
    }
}

/// Runs a job on a group of devices.
fn on(options: &Options, job: &Job, group: &[Gpu]) -> Result<Result<Vec<Measured>, tilework::Error>, Failure> {
    let timeout = Duration::from_secs(options.timeout);
    if options.link == AskedLink::Nccl {
        #[cfg(all(feature = "nccl", target_os = "linux"))]
        return Ok(shard::run_nccl(group, timeout, |rank| measure(job, rank, options.runs())));
        #[cfg(not(all(feature = "nccl", target_os = "linux")))]
        return Err(Failure::bad_input("--link nccl: this program was built without the feature `nccl`"));
    }
    Ok(shard::run(group, timeout, |rank| measure(job, rank, options.runs())))
}

/// Runs a job as one of the processes that mpirun started. The first prints.
#[cfg(feature = "mpi")]
fn as_process(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let mpi = shard::Mpi::new(Duration::from_secs(options.timeout))?;
    let gpus = devices(options.adapter.as_deref())?;
    let gpu = &gpus[mpi.place_on_machine() % gpus.len()];
    let job = job(&options.job, Some(shard::Transport::size(&mpi)), gpu.profile().is_cpu())?;
    let rank = shard::Rank::new(mpi, gpu);
    let mine = measure(&job, &rank, options.runs())?;
    let (first, p) = (rank.index() == 0, rank.size());
    let words = [mine.work.to_bits(), mine.bytes, u64::from(mine.right)];
    let (all, _) = rank.all_gather(&words)?;
    let measured: Vec<Measured> = all
        .chunks_exact(3)
        .map(|words| Measured {
            work: f64::from_bits(words[0]),
            bytes: words[1],
            right: words[2] == 1,
            note: mine.note.clone(),
            spans: Vec::new(),
            ..mine
        })
        .collect();
    let all_spans = gathered_spans(&rank, &mine.spans)?;
    let right = measured.iter().all(|m| m.right);
    if first {
        say(out, &format!("device of rank 0: {} ({})\n", gpu.profile().name, gpu.profile().backend))?;
        say(out, &format!("{}\n", job.note(p, &measured)))?;
        if let Some(path) = &options.timeline {
            draw(path, &job, AskedLink::Mpi, all_spans)?;
            say(out, &format!("wrote {}\n", path.display()))?;
        }
        say(out, &table(&job, "mpi", &[Row::new(p, &measured)]))?;
        say(out, if right { "all results are right\n" } else { "some results are WRONG\n" })?;
    }
    Ok(if right { 0 } else { 1 })
}

/// The spans of all ranks, on all ranks.
#[cfg(feature = "mpi")]
fn gathered_spans(rank: &shard::Rank<shard::Mpi>, spans: &[RankSpan]) -> Result<Vec<Vec<RankSpan>>, Failure> {
    use tilework::shard::Activity::{Device, Link};
    let words: Vec<u64> =
        spans.iter().flat_map(|s| [u64::from(s.activity == Link), s.begin.to_bits(), s.end.to_bits()]).collect();
    let (all, begins) = rank.all_gather(&words)?;
    let span = |w: &[u64]| RankSpan {
        activity: if w[0] == 1 { Link } else { Device },
        begin: f64::from_bits(w[1]),
        end: f64::from_bits(w[2]),
    };
    Ok(begins.windows(2).map(|b| all[b[0]..b[1]].chunks_exact(3).map(span).collect()).collect())
}

#[cfg(not(feature = "mpi"))]
fn as_process(_: &Options, _: &mut dyn Write) -> Result<u8, Failure> {
    Err(Failure::bad_input("--link mpi: this program was built without the feature `mpi`, which needs MPI's compiler"))
}
