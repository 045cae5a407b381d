//! How far the automatic choice is from the best that the catalogue offers, on shapes that nobody chose.
//!
//! `cargo bench --bench sweep -- gemm softmax` draws shapes of these ops, or of all. It measures the automatic choice,
//! every variant that the device runs, and every tile and number of slices that the variant offers. The regret of a
//! shape is the time of the automatic choice over the best time found.
//!
//! - `--shapes N` of each op, drawn from `--seed N`; `--seconds N` bounds all, `--most-ms N` one run of a way
//! - `--types N` of each op at most
//! - `--json FILE` for the rows, written after each; `--all on` adds all times to them
//! - `--given FILE` measures the shapes of a list instead
//! - `--list FILE` for the shapes, which `benches/peers/sweep.py` measures with PyTorch; `--merge FILE` adds its times
//! - `--picture FILE.svg`: regret over size
//! - `--cuda on` sweeps products and attention of f16 by CUDA
//! - `--check N` measures nothing: of each op N shapes without elements, of one, one beyond a tile, or at the end of
//!   the largest binding, by every variant in turn, compared with the reference
//! - `--plans FILE` measures nothing and needs no device: the plans of the shapes on profiles of cards, to compare two
//!   versions of the policies
//! - `--tiles off` measures variants only; with `--plain on` no product is transposed and all its sides are multiples
//!   of eight, so that few kernels are compiled

#[path = "sweep/candidates.rs"]
mod candidates;
#[path = "sweep/catalogue.rs"]
mod catalogue;
#[path = "sweep/checked.rs"]
mod checked;
#[cfg(feature = "cuda")]
#[path = "sweep/on_cuda.rs"]
mod on_cuda;
#[path = "sweep/picture.rs"]
mod picture;
#[path = "sweep/plans.rs"]
mod plans;
#[path = "sweep/shapes.rs"]
mod shapes;
mod support;

use candidates::Measured;
use serde_json::{Value, json};
use shapes::{Drawn, Kind, Random};
use std::time::{Duration, Instant};
use tilework::Result;
use tilework::gpu::{AdapterFilter, Tuning};
use tilework::prelude::*;
use tilework::program::DeviceProfile;

/// What the command line asks for.
struct Options {
    ops: Vec<String>,
    shapes: usize,
    types: usize,
    seed: u64,
    seconds: f64,
    most_seconds: f64,
    tiles: bool,
    json: Option<String>,
    given: Option<String>,
    list: Option<String>,
    picture: Option<String>,
    merge: Option<String>,
    all: bool,
    plain: bool,
    cuda: bool,
    check: usize,
    plans: Option<String>,
}

impl Options {
    fn read() -> std::result::Result<Self, String> {
        let mut options = Self {
            ops: Vec::new(),
            shapes: 20,
            types: usize::MAX,
            seed: 1,
            seconds: 300.0,
            most_seconds: 0.1,
            tiles: true,
            json: None,
            given: None,
            list: None,
            picture: None,
            merge: None,
            all: false,
            plain: false,
            cuda: false,
            check: 0,
            plans: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            if !arg.starts_with("--") {
                options.ops.push(arg);
                continue;
            }
            if arg == "--bench" {
                continue;
            }
            let value = args.next().ok_or(format!("{arg} needs a value"))?;
            let number = || value.parse::<f64>().map_err(|e| format!("{arg} {value}: {e}"));
            match arg.as_str() {
                "--shapes" => options.shapes = number()? as usize,
                "--types" => options.types = number()? as usize,
                "--seed" => options.seed = number()? as u64,
                "--seconds" => options.seconds = number()?,
                "--most-ms" => options.most_seconds = number()? * 1e-3,
                "--tiles" => options.tiles = value != "off",
                "--json" => options.json = Some(value),
                "--given" => options.given = Some(value),
                "--list" => options.list = Some(value),
                "--picture" => options.picture = Some(value),
                "--all" => options.all = value != "off",
                "--cuda" => options.cuda = value != "off",
                "--plain" => options.plain = value != "off",
                "--check" => options.check = number()? as usize,
                "--plans" => options.plans = Some(value),
                "--merge" => options.merge = Some(value),
                _ => return Err(format!("unknown option {arg}")),
            }
        }
        Ok(options)
    }

    fn wants(&self, op: &str) -> bool {
        self.ops.is_empty() || self.ops.iter().any(|name| name == op)
    }
}

fn main() -> Result<()> {
    let options = match Options::read() {
        Ok(options) => options,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2);
        }
    };
    if let Some(path) = &options.plans {
        write(path, &plans::of_cards(&options));
        return Ok(());
    }
    let rows = match &options.merge {
        Some(path) => merged(&read(options.json.as_deref().unwrap_or(path)), &read(path)),
        #[cfg(feature = "cuda")]
        None if options.cuda => swept_on_cuda(&options)?,
        None => {
            let named = std::env::var("TILEWORK_ADAPTER").unwrap_or_default();
            let adapter = if named.is_empty() { AdapterFilter::Best } else { AdapterFilter::Name(named) };
            let request = GpuOptions { adapter, tuning: Tuning::Off, ..Default::default() };
            match pollster::block_on(Gpu::request(request)) {
                Ok(gpu) if options.check > 0 => {
                    let wrong = checked::check(&gpu, &options);
                    std::process::exit(i32::from(wrong > 0));
                }
                Ok(gpu) => swept(&gpu, &options)?,
                Err(e) => {
                    println!("skipped: {e}");
                    return Ok(());
                }
            }
        }
    };
    print!("{}", summary(&rows));
    if let Some(path) = &options.json {
        write(path, &lines(&rows));
    }
    if let Some(path) = &options.list {
        let asked: Vec<_> = rows.iter().map(|row| row["shape"].clone()).collect();
        write(path, &lines(&asked));
    }
    if let Some(path) = &options.picture {
        picture::save(path, &rows).unwrap_or_else(|e| println!("{path}: {e}"));
    }
    Ok(())
}

fn read(path: &str) -> Vec<Value> {
    let rows = std::fs::read_to_string(path).map_err(|e| e.to_string());
    let rows = rows.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    rows.unwrap_or_else(|e| {
        eprintln!("{path}: {e}");
        std::process::exit(2)
    })
}

fn lines(values: &[Value]) -> String {
    serde_json::to_string_pretty(values).unwrap_or_default() + "\n"
}

fn write(path: &str, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|e| println!("{path}: {e}"));
}

/// All ops and types with a choice of variants on this device.
fn kinds(profile: &DeviceProfile, options: &Options) -> Vec<Kind> {
    let unlisted = catalogue::kinds(profile, shapes::KINDS);
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in shapes::KINDS.iter().copied().chain(unlisted) {
        if kinds.iter().filter(|known| known.op == kind.op).count() < options.types {
            kinds.push(kind);
        }
    }
    kinds
}

/// Shapes of all ops in turn, so that the time that is left cuts all alike; or those of a list.
fn drawn<'k>(profile: &DeviceProfile, options: &Options, all: &'k [Kind]) -> Vec<(&'k Kind, Drawn)> {
    let kinds = || all.iter().filter(|kind| options.wants(kind.op));
    if let Some(path) = &options.given {
        let known = |shape: &Value| kinds().find(|k| shape["op"] == k.op && shape["dtype"] == k.dtype);
        return read(path).iter().filter_map(|shape| Some((known(shape)?, Drawn::listed(shape)?))).collect();
    }
    let largest = if profile.is_cpu() { 1.0 / 4096.0 } else { 1.0 };
    let of = |round: usize, kind: &'k Kind| {
        let mut random = Random::new(options.seed ^ (round as u64) << 20 ^ shapes::seed_of(kind));
        let drawn = match kind.draw {
            Some(draw) => draw(&mut random, largest, round),
            None => catalogue::draw(kind, &mut random, largest, profile)?,
        };
        Some((kind, if options.plain { drawn.plain() } else { drawn }))
    };
    let all = (0..options.shapes).flat_map(|round| kinds().map(move |kind| (round, kind)));
    all.filter_map(|(round, kind)| of(round, kind)).collect()
}

fn swept(gpu: &Gpu, options: &Options) -> Result<Vec<Value>> {
    let profile = gpu.profile().clone();
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(options.seconds));
    let mut rows = Vec::new();
    for (kind, drawn) in drawn(&profile, options, &kinds(&profile, options)) {
        if start.elapsed() > limit || kind.dtype == "f16" && !profile.features.f16 {
            continue;
        }
        let left = limit.saturating_sub(start.elapsed());
        match candidates::measure(gpu, kind, &drawn, options.most_seconds, options.tiles, left) {
            Ok(measured) if !measured.is_empty() => {
                rows.push(row(kind, &drawn, &measured, [&profile.id(), &profile.name, &profile.driver], options.all));
                if let Some(path) = &options.json {
                    write(path, &lines(&rows));
                }
            }
            Ok(_) => {}
            Err(e) => println!("{} {}: {e}", kind.op, drawn.name()),
        }
    }
    Ok(rows)
}

/// The shapes of products and attention of f16 on the first CUDA device.
#[cfg(feature = "cuda")]
fn swept_on_cuda(options: &Options) -> Result<Vec<Value>> {
    let cuda = match tilework::cuda::CudaGpu::new() {
        Ok(cuda) => cuda,
        Err(e) => {
            println!("skipped: {e}");
            return Ok(Vec::new());
        }
    };
    // Shapes for a card; nothing is planned for it.
    let profile = DeviceProfile::h100();
    let kinds = shapes::KINDS.iter().copied().filter(|kind| kind.dtype == "f16");
    let kinds: Vec<_> = kinds.chain([shapes::DECODE]).collect();
    let drawn = drawn(&profile, options, &kinds);
    let measured = on_cuda::measure(&cuda, &profile, &drawn, options.tiles)?;
    let [major, minor] = cuda.profile().driver;
    let adapter = format!("{}, by CUDA", cuda.profile().name);
    let on = [&cuda.profile().id(), &adapter, &format!("CUDA {major}.{minor}")];
    let rows = drawn.iter().zip(&measured).filter(|(_, measured)| !measured.is_empty());
    Ok(rows.map(|((kind, drawn), measured)| row(kind, drawn, measured, on, options.all)).collect())
}

fn row(
    kind: &Kind, drawn: &Drawn, measured: &[Measured], [backend, adapter, driver]: [&String; 3], all: bool,
) -> Value {
    let auto = &measured[0];
    let accurate = measured.iter().filter(|m| m.accurate);
    let best = accurate.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap_or(auto);
    let date = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let mut row = json!({
        "op": kind.op, "dtype": kind.dtype, "size": drawn.name(), "work": drawn.work,
        "shape": {"op": kind.op, "dtype": kind.dtype, "size": drawn.name(), "inputs": drawn.inputs,
            "supplied": drawn.supplied, "options": drawn.options, "matrix": drawn.matrix, "work": drawn.work},
        "seconds": auto.seconds, "variant": auto.name, "why": auto.why,
        "best_seconds": best.seconds, "best": best.name, "regret": auto.seconds / best.seconds,
        "backend": backend, "adapter": adapter, "driver": driver,
        "date": date.split('T').next(), "version": env!("CARGO_PKG_VERSION"),
    });
    if all {
        row["all"] = measured.iter().map(|m| json!([m.name, m.seconds])).collect();
    }
    row
}

/// The rows with the peers' times of the same shapes.
fn merged(rows: &[Value], peers: &[Value]) -> Vec<Value> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        let same = |p: &&Value| ["op", "dtype", "size"].iter().all(|key| p[key] == row[key]);
        if let Some(peer) = peers.iter().find(same) {
            let ratio = number(peer, "seconds") / number(row, "seconds");
            row["peer"] = peer["peer"].clone();
            row["peer_seconds"] = peer["seconds"].clone();
            row["ratio"] = json!(ratio);
        }
    }
    rows
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

/// Mean and worst regret and ratio of each op, and the ten worst shapes.
fn summary(rows: &[Value]) -> String {
    let mut text = String::new();
    let mut kinds: Vec<[&str; 2]> = Vec::new();
    let kind_of = |row: &'_ Value| ["op", "dtype"].map(|key| row[key].as_str().unwrap_or("").to_owned());
    for row in rows {
        let kind = ["op", "dtype"].map(|key| row[key].as_str().unwrap_or(""));
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for kind in kinds {
        let of: Vec<_> = rows.iter().filter(|row| kind_of(row) == kind).collect();
        let known =
            |key: &str| -> Vec<f64> { of.iter().map(|row| number(row, key)).filter(|x| x.is_finite()).collect() };
        let mean = |x: &[f64]| (x.iter().map(|x| x.ln()).sum::<f64>() / x.len() as f64).exp();
        let regret = known("regret");
        let worst = regret.iter().copied().fold(0.0, f64::max);
        text += &format!(
            "{:<14} {:<4} {:>4} shapes: regret {:.3}, worst {worst:.2}",
            kind[0],
            kind[1],
            of.len(),
            mean(&regret)
        );
        let ratio = known("ratio");
        if !ratio.is_empty() {
            let worst = ratio.iter().copied().fold(f64::INFINITY, f64::min);
            text += &format!("; peer's time over ours {:.2}, worst {worst:.2} ({} shapes)", mean(&ratio), ratio.len());
        }
        text.push('\n');
    }
    let mut worst: Vec<_> = rows.iter().collect();
    worst.sort_by(|a, b| number(b, "regret").total_cmp(&number(a, "regret")));
    for row in worst.iter().take(10) {
        let [op, dtype, size, variant, best] =
            ["op", "dtype", "size", "variant", "best"].map(|key| row[key].as_str().unwrap_or(""));
        text += &format!(
            "{:.2} {op} {dtype} {size}: {variant} {:.2} us, {best} {:.2} us\n",
            number(row, "regret"),
            number(row, "seconds") * 1e6,
            number(row, "best_seconds") * 1e6
        );
    }
    text
}
