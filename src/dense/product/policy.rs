//! Chooses the variant and the tile from the device and the shape alone.

use super::coop::{CoopEnd, CoopForm};
use super::division::{Division, ProductTile};
use super::register::RegisterForm;
use super::small::SMALL_SIDE;
use super::{Precision, Product, ProductTypes};
use crate::program::{DeviceClass, DeviceProfile};

const fn row(tile: [u32; 3], thread: [u32; 2], measured: &'static str) -> Division {
    Division::new(tile, thread).measured(measured)
}

/// For cards, largest first. On an H100 (Vulkan, driver 580.159.04), TFLOP/s at 512, 1024, 2048 and 4096 cubed: the
/// first 4.4, 19.1, 46.3, 48.0; 128 x 256 x 8 by 8 x 16 2.5, 10.8, 41.8, 44.5; 64 x 128 x 8 by 8 x 8 6.7, 31.0, 36.4,
/// 45.9; the second 10.0, 34.4, 37.6, 38.1; 64 x 64 x 8 by 8 x 8 6.9, 31.2, 38.3, 43.2; the third 14.7, 24.7, 26.8,
/// 27.9. A step of k of 16 with the larger tiles takes so much workgroup memory that fewer workgroups share a
/// multiprocessor: 42.4. Compiled in 0.1 to 0.4 s.
const CARD: &[Division] = &[
    row([128, 128, 8], [8, 8], "48.0 TFLOP/s at 4096 cubed on an H100"),
    row([64, 64, 16], [8, 4], "34.4 TFLOP/s at 1024 cubed on an H100"),
    row([64, 64, 8], [8, 4], "39.1 TFLOP/s at 2048 cubed on an H100; for least limits"),
    row([32, 32, 16], [4, 4], "18 us at 512 cubed, 12 us at 256 on an H100"),
];

/// For GPUs that were not measured: fewer registers.
const GPU: &[Division] =
    &[row([64, 64, 8], [8, 4], "not measured"), row([32, 32, 8], [4, 4], "not measured")];

/// For processors, which compile slowly and gain nothing from larger tiles.
const CPU: &[Division] = &[row([16, 16, 4], [4, 4], "small, to compile quickly")];

/// For cooperative matrices: the tile and the part of a subgroup, largest first. On an H100 (Vulkan, driver
/// 580.159.04), f16 to f32, TFLOP/s at 1024, 2048, 4096 and 8192 cubed and 4095 x 4097 x 4093: the first 55, 238,
/// 307, 320, 206; 128 x 256 x 32 57, 225, 272, 296, 185; 256 x 128 x 48 52, 220, 277, 288; the second 89, 233, 267,
/// 294, 215; 128 x 128 x 64 by 64 x 32 91, 224, 264, 287, 213; the third 115, 170, 171, 180, 147; 64 x 128 x 32 by
/// 32 x 64 105, 161, 211, 219, 152.
const COOP: &[Division] = &[
    row([128, 256, 48], [64, 64], "307 TFLOP/s from f16 to f32 at 4096 cubed on an H100"),
    row([128, 128, 32], [64, 64], "233 TFLOP/s from f16 to f32 at 2048 cubed on an H100"),
    row([64, 64, 64], [32, 32], "115 TFLOP/s from f16 to f32 at 1024 cubed on an H100"),
    row([64, 64, 32], [32, 32], "103 TFLOP/s from f16 to f32 at 1024 cubed on an H100; for least limits"),
    row([32, 32, 32], [16, 32], "not measured"),
];

/// The same for factors in two halves, which take twice the registers and workgroup memory, at 1024, 2048 and 4096
/// cubed: the first 30, 71, 98; with a part of 64 x 64 21, 45, 56; the second 37, 53, 64; the third 36, 57, 69.
const COOP_SPLIT: &[Division] = &[
    row([128, 128, 32], [64, 32], "98 TFLOP/s at 4096 cubed on an H100"),
    row([128, 64, 32], [32, 32], "37 TFLOP/s at 1024 cubed on an H100"),
    row([64, 64, 32], [32, 32], "36 TFLOP/s at 1024 cubed on an H100"),
    row([32, 32, 32], [16, 32], "not measured"),
];

/// Workgroups on cooperative matrices that fill a device: about one for each processor of a large card.
const COOP_FILL: u64 = 120;

/// Products m n k up to which a GPU is not filled.
const TINY: usize = 1 << 15;

/// The inner extent from which splitting pays.
const LONG_K: usize = 2048;

/// The shortest slice of k.
const MIN_SLICE: usize = 256;

/// Steps of k of the tile that every WebGPU device runs.
const TILE_OF_K: usize = 16;

/// Threads that fill the device, roughly: a workgroup of 256 for most processors of a large card.
fn fill(profile: &DeviceProfile) -> u64 {
    if profile.class == DeviceClass::Discrete { 120 * 256 } else { 32 * 256 }
}

fn rows(profile: &DeviceProfile) -> &'static [Division] {
    match profile.class {
        DeviceClass::Cpu => CPU,
        DeviceClass::Discrete => CARD,
        _ => GPU,
    }
}

/// Says if the device holds the tile in both buffers, with both factors transposed.
fn fits(division: &Division, profile: &DeviceProfile) -> bool {
    RegisterForm { trans_b: true, ..RegisterForm::of(*division) }.fits(profile)
}

/// The rows of a variant that a device accepts by name.
pub(crate) fn rows_of(variant: &str, profile: &DeviceProfile) -> Vec<String> {
    match variant {
        "register" | "double" | "split-k" | "split-k-atomic" => {
            rows(profile).iter().map(Division::name).collect()
        }
        "coop" => COOP.iter().chain(COOP_SPLIT).map(Division::name).collect(),
        _ => Vec::new(),
    }
}

/// The first row of a variant that suits, or the last, among those that the device holds and that gave no wrong
/// results there. A forced row comes first.
fn row_for(
    variant: &str,
    rows: &[Division],
    profile: &DeviceProfile,
    fits: impl Fn(&Division) -> bool,
    suits: impl Fn(&Division) -> bool,
) -> Division {
    let choices = &profile.choices;
    let usable = |row: &&Division| fits(row) && !choices.denies_row("gemm", variant, || row.name());
    let fitting = || rows.iter().filter(usable);
    let forced = choices.row("gemm", variant);
    *forced
        .and_then(|name| fitting().find(|row| row.name() == name))
        .or_else(|| fitting().find(|row| suits(row)))
        .or_else(|| fitting().next_back())
        .unwrap_or(&rows[rows.len() - 1])
}

/// The largest register tile that still fills the device.
pub(super) fn register_division(variant: &str, product: &Product, profile: &DeviceProfile) -> Division {
    let fills = |row: &Division| row.total(product.m, product.n) >= fill(profile);
    row_for(variant, rows(profile), profile, |row| fits(row, profile), fills)
}

/// The largest tile that does not lie mostly outside C: slices of k fill the device.
pub(super) fn split_division(variant: &str, product: &Product, profile: &DeviceProfile) -> Division {
    let inside = |side: u32, extent: usize| (side / 4 * 3) as usize <= extent;
    let small = |row: &Division| inside(row.tile.m, product.m) && inside(row.tile.n, product.n);
    row_for(variant, rows(profile), profile, |row| fits(row, profile), small)
}

/// The largest tile for cooperative matrices that still fills the device.
pub(super) fn coop_division(product: &Product, profile: &DeviceProfile) -> Division {
    let rows = if product.precision == Precision::Split { COOP_SPLIT } else { COOP };
    let fits = |row: &Division| {
        // With the epilogue that takes the most memory.
        let form = CoopForm::new(product, *row, ProductTypes::MIXED, profile);
        CoopForm { end: CoopEnd::Staged, ..form }.fits(profile)
    };
    row_for("coop", rows, profile, fits, |row| row.tiles(product.m, product.n) >= COOP_FILL)
}

/// The tile of `register` for a batch, as wide as its products allow.
pub(super) fn batched_division(product: &Product, profile: &DeviceProfile) -> Division {
    match profile.class {
        DeviceClass::Cpu => Division::new([32, 32, 8], [4, 4]),
        DeviceClass::Discrete if product.m.min(product.n) >= 256 => Division::new([128, 128, 8], [8, 8]),
        _ => Division::new([64, 64, 16], [8, 4]),
    }
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

/// Slices of k that fill the device twice over: on an H100 16 of 512 x 512 x 32768 take 412 us, 32 431, 8 500; 4 of
/// 128 x 8192 x 8192 416, 8 434, 2 483. Each is long enough to pay for its slab.
pub(super) fn slices(division: Division, product: &Product, profile: &DeviceProfile) -> usize {
    let wanted = (fill(profile) * 11 / 5 / division.total(product.m, product.n).max(1)) as usize;
    wanted.clamp(2, (product.k / MIN_SLICE).max(2))
}

/// Chooses a variant and says why.
pub(super) fn variant(product: &Product, profile: &DeviceProfile) -> (&'static str, String) {
    if product.batched { of_batch(product, profile) } else { of_one(product, profile) }
}

fn of_one(product: &Product, profile: &DeviceProfile) -> (&'static str, String) {
    let Product { m, n, k, precision, .. } = *product;
    let products = m.saturating_mul(n).saturating_mul(k);
    if precision != Precision::Strict {
        ("coop", format!("{} runs on cooperative matrices", precision.name()))
    } else if product.thread.is_some() {
        ("double", "a thread tile was requested".into())
    } else if product.tile.is_some() {
        ("tiled", "a tile was requested".into())
    } else if profile.quirks.serial_workgroups {
        // Mesa 22.3 and SwiftShader, naive against double: 16 cubed 55 and 61 us, -; 32 cubed 123 and 101 us, 292
        // and 62; 128 cubed 4.2 and 1.0 ms, 8.1 and 2.7. Tiled takes 1.5 to 4 times as long as naive.
        if m.min(n) >= 32 && k >= 16 {
            ("double", "sums in registers; a processor's caches replace larger tiles".into())
        } else {
            ("naive", "too small for tiles: barriers are slow on a processor".into())
        }
    } else if k < TILE_OF_K {
        // The one tile of k would be partly zeros, and nothing hides its two barriers.
        ("naive", format!("k = {k} does not fill a tile"))
    } else if products <= TINY {
        // The launch takes all of the time; this is the smallest kernel.
        ("naive", format!("{products} products are too few for tiles to pay"))
    } else {
        let threads = split_division("split-k", product, profile).total(m, n);
        if k >= LONG_K && threads < fill(profile) {
            let why = format!("tiles of C give {threads} threads, too few for the device; k = {k} is long");
            return ("split-k", why);
        }
        ("double", "sums in registers use each element in workgroup memory several times".into())
    }
}

fn of_batch(product: &Product, profile: &DeviceProfile) -> (&'static str, String) {
    let Product { m, n, k, .. } = *product;
    if m.min(n) < 4 || k < 4 {
        ("naive", format!("{m} x {n} x {k} does not fill a thread tile of 4 x 4"))
    } else if m.saturating_mul(n).saturating_mul(k) <= 64 {
        // 2^20 of 4^3 on an H100 (Vulkan, driver 580.159.04): 102 us against 132.
        ("naive", "one thread tile is the whole product: no element is used twice".into())
    } else if profile.quirks.serial_workgroups && m.min(n) < 16 && k < 1 << 12 {
        ("naive", "too small for tiles: barriers are slow on a processor".into())
    } else if m.max(n) <= SMALL_SIDE {
        ("small", format!("whole matrices of {m} x {n} fit a workgroup"))
    } else {
        (
            "register",
            format!("a workgroup computes a part of {m} x {n}; tiles use each element several times"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::way::VARIANTS;
    use super::*;
    use crate::dense::Gemm;
    use crate::program::Op;
    use crate::program::When;

    fn tile(side: usize, profile: &DeviceProfile) -> [u32; 3] {
        let product = Product::new(side, side, side);
        let ProductTile { m, n, k } = register_division("double", &product, profile).tile;
        [m, n, k]
    }

    #[test]
    fn tiles_shrink_until_they_fill_the_device() {
        let h100 = DeviceProfile::h100();
        assert_eq!(tile(8192, &h100), [128, 128, 8]);
        assert_eq!(tile(2048, &h100), [128, 128, 8]);
        assert_eq!(tile(1024, &h100), [64, 64, 16]);
        assert_eq!(tile(256, &h100), [32, 32, 16]);
        assert_eq!(tile(4096, &DeviceProfile::mesa()), [16, 16, 4]);
    }

    #[test]
    fn a_card_with_default_limits_has_a_tile_for_every_variant() {
        let class = DeviceClass::Discrete;
        let card = DeviceProfile { class, ..DeviceProfile::webgpu_defaults() };
        assert_eq!(tile(4096, &card), [64, 64, 8]);
        for profile in [card, DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader()] {
            for variant in VARIANTS.iter().filter(|v| v.requires.missing(&profile).is_none()) {
                for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                    let gemm = Gemm::new(1021, 1023, 1025)
                        .when(a, |op| op.trans_a())
                        .when(b, |op| op.trans_b())
                        .variant(variant.name);
                    Op::<f32>::lower(&gemm, &profile).unwrap();
                }
            }
        }
    }

    #[test]
    fn processors_get_short_kernels() {
        for profile in [DeviceProfile::mesa(), DeviceProfile::swiftshader()] {
            for variant in VARIANTS.iter().filter(|v| v.requires.missing(&profile).is_none()) {
                let gemm = Gemm::new(4000, 4000, 4000).variant(variant.name);
                for kernel in Op::<f32>::lower(&gemm, &profile).unwrap().kernels {
                    let text = kernel.expand(crate::shader::Target::Naga).unwrap();
                    assert!(text.text().lines().count() < 600, "{}", kernel.label());
                }
            }
        }
    }

    #[test]
    fn slices_fill_the_device_and_are_long_enough() {
        let h100 = DeviceProfile::h100();
        for (shape, slices_of) in [([512, 512, 32768], 16), ([128, 8192, 8192], 4), ([64, 64, 2048], 8)] {
            let [m, n, k] = shape;
            let product = Product::new(m, n, k);
            assert_eq!(variant(&product, &h100).0, "split-k");
            let division = split_division("split-k", &product, &h100);
            assert_eq!(slices(division, &product, &h100), slices_of, "{shape:?}");
        }
        assert_eq!(variant(&Product::new(512, 512, 1024), &h100).0, "double");
    }
}
