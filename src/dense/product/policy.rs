use super::coop::{CoopEnd, CoopForm};
use super::division::{Division, ProductTile};
use super::job::ProductJob;
use super::predict::{self, Rates, Work};
use super::register::RegisterForm;
use super::small::{SMALL_SIDE, SMALL_WORKGROUP};
use super::{Precision, Product};
use crate::program::prelude::*;

const fn row(tile: [u32; 3], thread: [u32; 2], percent: u32, [alone, start]: [u32; 2]) -> Division {
    Division::new(tile, thread).pace(percent, [alone, start])
}

/// For cards, largest first: the tile and the thread tile, and the pace. Fitted to 226 products and batches that were
/// drawn, on an H100 (Vulkan, driver 580.159.04): what they choose takes 3 % longer than the best in the mean, 36 % at
/// worst. A step of k of 16 with the larger tiles takes so much workgroup memory that fewer workgroups share a
/// multiprocessor.
const CARD: &[Division] = &[
    row([128, 128, 8], [8, 8], 80, [900, 3400]),
    row([64, 128, 8], [8, 8], 77, [600, 3000]),
    row([128, 64, 8], [8, 8], 76, [600, 3000]),
    row([64, 64, 16], [8, 4], 63, [600, 3000]),
    row([64, 64, 8], [8, 4], 65, [300, 2100]),
    row([32, 128, 8], [4, 8], 58, [300, 2300]),
    row([128, 32, 8], [8, 4], 60, [400, 1000]),
    row([32, 64, 16], [4, 4], 42, [400, 1000]),
    row([16, 128, 16], [4, 8], 34, [700, 2000]),
    row([64, 16, 16], [4, 4], 38, [400, 1000]),
    row([16, 64, 16], [4, 4], 38, [300, 1000]),
    row([32, 32, 16], [4, 4], 44, [300, 1000]),
    row([8, 128, 16], [4, 4], 27, [500, 1000]),
    row([4, 128, 16], [4, 4], 11, [600, 2000]),
];

/// For GPUs that were not measured: fewer registers.
const GPU: &[Division] = &[Division::new([64, 64, 8], [8, 4]), Division::new([32, 32, 8], [4, 4])];

/// For processors, which compile slowly and gain nothing from larger tiles.
const CPU: &[Division] = &[Division::new([16, 16, 4], [4, 4])];

/// For `unstaged` where one core runs all threads of a workgroup: eight threads.
const UNSTAGED: [Division; 4] = [
    Division::new([16, 64, 4], [8, 16]),
    Division::new([16, 32, 4], [8, 8]),
    Division::new([4, 64, 4], [4, 8]),
    Division::new([8, 16, 4], [4, 4]),
];

/// For cooperative matrices: the tile and the part of a subgroup, largest first. Fitted as those of [`CARD`].
const COOP: &[Division] = &[
    row([128, 256, 48], [64, 64], 47, [1300, 8000]),
    row([128, 128, 64], [64, 32], 43, [1100, 5000]),
    row([128, 128, 32], [64, 64], 42, [1000, 5600]),
    row([64, 128, 64], [32, 64], 30, [800, 4000]),
    row([128, 64, 64], [64, 32], 25, [800, 4000]),
    row([64, 128, 32], [32, 64], 32, [500, 5000]),
    row([64, 64, 64], [32, 32], 26, [500, 2800]),
    row([64, 64, 32], [32, 32], 27, [440, 3000]),
    row([32, 128, 64], [32, 32], 15, [500, 3000]),
    row([32, 64, 64], [16, 32], 11, [400, 1000]),
    row([64, 32, 64], [32, 16], 10, [400, 1000]),
    row([16, 128, 64], [16, 32], 7, [400, 1000]),
    row([16, 64, 128], [16, 16], 7, [800, 1100]),
    row([16, 64, 64], [16, 16], 9, [430, 1000]),
    row([32, 32, 64], [16, 16], 9, [420, 610]),
    row([32, 32, 32], [16, 32], 7, [300, 770]),
];

/// The same for factors in two halves, which take twice the registers and workgroup memory. At 1024, 2048 and 4096
/// cubed, TFLOP/s: the first 30, 71, 98; the second 37, 53, 64; the third 36, 57, 69.
const COOP_SPLIT: &[Division] = &[
    row([128, 128, 32], [64, 32], 15, [3000, 5000]),
    row([128, 64, 32], [32, 32], 11, [2000, 4000]),
    row([64, 64, 32], [32, 32], 10, [1200, 3000]),
    row([32, 32, 32], [16, 32], 4, [900, 2000]),
];

/// The pace of `small` with full subgroups, in percent of the peak rate, for matrices of as many elements as these
/// squares. On an H100 (Vulkan, driver 580.159.04) 10,000 of 32^3 take 53 us, 4096 of 48^3 57, 4096 of 64^3 93.
const SMALL_PACES: [(usize, u32); 3] = [(40 * 40, 22), (52 * 52, 31), (SMALL_SIDE * SMALL_SIDE, 43)];

/// The time of `register` over what its paces, those of single products, predict for batches. Fitted to 73 batches.
const BATCHED_REGISTER: f64 = 1.3;

/// The shortest slice of k.
const MIN_SLICE: usize = 64;

/// The most slices of k that are chosen, and rounds of the device that they fill.
const MAX_SLICES: usize = 128;
const ROUNDS: usize = 4;

fn rows(profile: &DeviceProfile) -> &'static [Division] {
    match profile.class {
        DeviceClass::Cpu => CPU,
        DeviceClass::Discrete => CARD,
        _ => GPU,
    }
}

/// The rows of a variant that a device accepts by name.
pub(crate) fn rows_of(variant: &str, profile: &DeviceProfile) -> Vec<String> {
    match variant {
        "register" | "double" | "split-k" | "split-k-atomic" => rows(profile).iter().map(Division::name).collect(),
        "unstaged" if profile.quirks.serial_workgroups => UNSTAGED.iter().map(Division::name).collect(),
        "coop" => COOP.iter().chain(COOP_SPLIT).map(Division::name).collect(),
        _ => Vec::new(),
    }
}

/// A way to compute a product, and how long it takes.
#[derive(Clone, Copy)]
pub(super) struct ProductPrediction {
    pub(super) division: Division,
    pub(super) slices: usize,
    seconds: f64,
}

/// The fastest row and slices of a variant, among rows that the device holds and that gave no wrong results there. A
/// forced row comes first.
pub(super) fn fastest(variant: &str, job: &ProductJob<'_>) -> ProductPrediction {
    let choices = &job.profile.choices;
    let table = match (variant, job.product.precision) {
        ("coop", Precision::Split) => COOP_SPLIT,
        ("coop", _) => COOP,
        _ => rows(job.profile),
    };
    let op = job.product.op();
    let usable = |row: &&Division| fits(variant, row, job) && !choices.denies_row(op, variant, || row.name());
    let forced = choices.row(op, variant).and_then(|name| table.iter().filter(usable).find(|row| row.name() == name));
    let best = |rows: &mut dyn Iterator<Item = &Division>| {
        rows.map(|row| sliced(variant, row, job)).min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    };
    let smallest = || sliced(variant, &table[table.len() - 1], job);
    match forced {
        Some(row) => sliced(variant, row, job),
        None => best(&mut table.iter().filter(usable)).unwrap_or_else(smallest),
    }
}

pub(super) fn unstaged(job: &ProductJob<'_>) -> Division {
    let Product { m, n, k, .. } = *job.product;
    let profile = job.profile;
    if !profile.quirks.serial_workgroups {
        return Division::new([64, 64, 4], [4, 4]);
    }
    let forced = profile.choices.row(job.product.op(), "unstaged");
    if let Some(row) = forced.and_then(|name| UNSTAGED.iter().find(|row| row.name() == name)) {
        return *row;
    }
    // Mesa 22.3's software driver, in this order: 512 cubed 17.7, 27.1, 36.4, 47.5 ms; 100 cubed 156, 165, 185, 286 us;
    // 4 x 256 x 256 134, 142, 76, 110. Longer kernels take longer to compile.
    UNSTAGED[if n <= 16 || m * n <= 1024 {
        3
    } else if m <= 4 {
        2
    } else if n >= 64 && m.saturating_mul(n).saturating_mul(k) >= 1 << 24 {
        0
    } else {
        1
    }]
}

/// The number of slices with which a division is predicted to be the fastest.
pub(super) fn sliced(variant: &str, division: &Division, job: &ProductJob<'_>) -> ProductPrediction {
    let Product { batch, m, n, k, slices, batched, .. } = *job.product;
    let rates = Rates::of(job.profile);
    let of = |slices: usize| ProductPrediction {
        division: *division,
        slices,
        seconds: predict::seconds(&rates, &work(variant, job), division, slices),
    };
    let splits = matches!(variant, "split-k" | "split-k-atomic");
    if batched || !splits && variant != "coop" {
        return of(1);
    }
    if let Some(slices) = slices {
        return of((slices as usize).clamp(1, k.max(1)));
    }
    let longest = (k / MIN_SLICE.max(2 * division.tile.k as usize)).min(MAX_SLICES);
    let tiles = division.tiles(m, n).saturating_mul(batch as u64).max(1);
    // As many as fill the device once, twice and so on.
    let filling = (1..=ROUNDS).map(|rounds| (rounds as f64 * rates.processors / tiles as f64) as usize);
    let filling = filling.map(|slices| slices.clamp(2, longest.max(2)));
    let whole = (!splits).then(|| of(1));
    let several = filling.filter(|_| splits || longest >= 2).map(of);
    several.chain(whole).min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap_or_else(|| of(1))
}

fn work(variant: &str, job: &ProductJob<'_>) -> Work {
    let Product { batch, m, n, k, precision, .. } = *job.product;
    let matrices = variant == "coop";
    let split = matrices && precision == Precision::Split;
    let factor_bytes = if split { 4.0 } else { job.types.factors.size() as f64 };
    Work {
        batch,
        m,
        n,
        k,
        factor_bytes,
        factors: factor_bytes * batch as f64 * k as f64 * (m + n) as f64,
        result_bytes: job.types.result.size() as f64,
        matrices,
    }
}

pub(crate) fn batch_seconds(batch: usize, [m, n, k]: [usize; 3], profile: &DeviceProfile) -> f64 {
    let factors = 4.0 * batch as f64 * k as f64 * (m + n) as f64;
    let work = Work { batch, m, n, k, factor_bytes: 4.0, result_bytes: 4.0, factors, matrices: false };
    let seconds = |row: &Division| predict::seconds(&Rates::of(profile), &work, row, 1);
    BATCHED_REGISTER * rows(profile).iter().map(seconds).fold(f64::INFINITY, f64::min)
}

/// Says if the device holds the tile.
fn fits(variant: &str, division: &Division, job: &ProductJob<'_>) -> bool {
    if variant == "coop" {
        // With the epilogue that takes the most memory.
        return CoopForm { end: CoopEnd::Staged, ..CoopForm::new(job, *division, 1) }.fits(job.profile);
    }
    // In both buffers, with both factors transposed.
    RegisterForm { trans_b: true, ..RegisterForm::of(*division) }.fits(job.profile)
}

/// Says if a copy of factor number `factor` costs less than reading it `unit` elements at a time.
pub(super) fn packing_pays(job: &ProductJob<'_>, division: &Division, factor: usize, unit: u32) -> bool {
    let single = job.types.factors == DType::F32;
    // Loads of f32 take twice the registers.
    let percent = if single { 30.0 } else { [0.0, 17.0, 8.0, 0.0, 0.0][unit as usize] };
    let rates = Rates::of(job.profile);
    let seconds = predict::seconds(&rates, &work("coop", job), division, 1);
    let at = job.layouts[factor].at;
    let bytes = at.rows as f64 * at.cols as f64 * (2.0 + job.types.factors.size() as f64);
    seconds * percent * 1e-2 > predict::PASS + rates.copy(bytes)
}

/// The thread tile for a tile that was given alone, with sums in registers.
pub(super) fn register_thread(tile: ProductTile) -> [u32; 2] {
    match tile {
        _ if tile.m >= 128 && tile.n >= 256 => [8, 16],
        _ if tile.m >= 128 && tile.n >= 64 => [8, 8],
        _ if tile.m >= 64 && tile.n >= 64 => [8, 4],
        _ => [4, 4],
    }
}

/// Chooses a variant among `variants` and says why.
pub(super) fn variant(job: &ProductJob<'_>, variants: &'static [Variant]) -> (&'static str, String) {
    let Product { m, n, precision, batched, .. } = *job.product;
    if matches!(precision, Precision::Split | Precision::Tensor) && !(batched && job.types.factors == DType::F16) {
        return ("coop", format!("{} runs on cooperative matrices", precision.name()));
    }
    if !batched && job.product.thread.is_some() {
        return ("double", "a thread tile was requested".into());
    }
    if job.product.tile.is_some() {
        return ("tiled", "a tile was requested".into());
    }
    let simple = if batched { simple_of_batch(job) } else { simple_of_one(job) };
    if let Some(simple) = simple {
        return simple;
    }
    let takes = |v: &&Variant| match v.name {
        "naive" | "double" | "split-k" => precision != Precision::Tensor,
        "register" => batched && precision != Precision::Tensor,
        "small" => m.max(n) <= SMALL_SIDE,
        "coop" => job.types.factors == DType::F16 && precision != Precision::Exact,
        _ => false,
    };
    let denied = |v: &&Variant| job.profile.choices.denies(job.product.op(), v.name).is_some();
    let runs = variants.iter().filter(|v| takes(v) && v.requires.missing(job.profile).is_none() && !denied(v));
    let mut times: Vec<_> = runs.map(|v| (v.name, predicted(v.name, job))).collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let us = |seconds: f64| format!("{:.1} us", seconds * 1e6);
    match times[..] {
        [(name, first), (next, second), ..] => (name, format!("predicted {}, `{next}` {}", us(first), us(second))),
        [(name, first)] => (name, format!("predicted {}", us(first))),
        [] => ("naive", "no variant with tiles runs here".into()),
    }
}

fn predicted(variant: &str, job: &ProductJob<'_>) -> f64 {
    if variant == "naive" {
        return predict::element_seconds(&Rates::of(job.profile), &work(variant, job), job.product.batched);
    }
    if variant != "small" {
        return fastest(variant, job).seconds * if variant == "register" { BATCHED_REGISTER } else { 1.0 };
    }
    let Product { m, n, .. } = *job.product;
    let whole = |extent: usize| (extent as u32).next_multiple_of(4);
    let fits = |(elements, _): &&(usize, u32)| m * n <= *elements;
    let percent = SMALL_PACES.iter().find(fits).map_or(0, |(_, percent)| *percent);
    // The last of its subgroups, taken to be of 32, may not be full.
    let lanes = (whole(m) * whole(n) / 16).max(1);
    let threads = lanes * (SMALL_WORKGROUP / lanes).max(1);
    let percent = percent * threads / threads.next_multiple_of(32);
    let division = Division::new([whole(m), whole(n), 16], [4, 4]).pace(percent, [800, 250]);
    predict::seconds(&Rates::of(job.profile), &work(variant, job), &division, 1)
}

const UNSTAGED_WHY: &str = "sums in registers; a processor's caches replace workgroup memory";

/// Variants that need no prediction.
fn simple_of_one(job: &ProductJob<'_>) -> Option<(&'static str, String)> {
    let Product { m, n, k, .. } = *job.product;
    job.profile.quirks.serial_workgroups.then(|| match m.saturating_mul(n).saturating_mul(k) > 1 << 13 {
        true => ("unstaged", UNSTAGED_WHY.into()),
        false => ("naive", "short kernels compile sooner".into()),
    })
}

fn simple_of_batch(job: &ProductJob<'_>) -> Option<(&'static str, String)> {
    let Product { m, n, k, .. } = *job.product;
    if m.saturating_mul(n).saturating_mul(k) <= 64 {
        // 2^20 of 4^3 on an H100 (Vulkan, driver 580.159.04): 102 us against 132.
        return Some(("naive", "one thread tile is the whole product: no element is used twice".into()));
    }
    // Mesa 22.3's software driver, us of `unstaged`, `small`, `register`: 200 of 8^3 157, 166, 429; 32 of 64^3 1812,
    // 3830, 5947.
    job.profile.quirks.serial_workgroups.then(|| ("unstaged", UNSTAGED_WHY.into()))
}

#[cfg(test)]
mod tests;
