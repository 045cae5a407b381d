//! Which variant and which tile, from the device and the shape alone.

use super::register::{Form, Steps};
use super::{Gemm, Precision, Tile, Types};
use crate::program::{DeviceClass, DeviceProfile, row_name};

/// How C is divided: the tile of a workgroup, and what one invocation computes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) tile: Tile,
    pub(super) thread: [u32; 2],
}

/// A division for register-tiled kernels.
struct Row {
    division: Division,
    /// Where it was measured.
    measured: &'static str,
}

const fn row(tile: [u32; 3], thread: [u32; 2], measured: &'static str) -> Row {
    let [m, n, k] = tile;
    Row { division: Division { tile: Tile { m, n, k }, thread }, measured }
}

/// For cards, largest first. On an H100 (Vulkan, driver 580.159.04), TFLOP/s at 512, 1024, 2048 and 4096 cubed: the
/// first 4.4, 19.1, 46.3, 48.0; 128 x 256 x 8 by 8 x 16 2.5, 10.8, 41.8, 44.5; 64 x 128 x 8 by 8 x 8 6.7, 31.0, 36.4,
/// 45.9; the second 10.0, 34.4, 37.6, 38.1; 64 x 64 x 8 by 8 x 8 6.9, 31.2, 38.3, 43.2; the third 14.7, 24.7, 26.8,
/// 27.9. A step of k of 16 with the larger tiles takes so much workgroup memory that fewer workgroups share a
/// multiprocessor: 42.4. Compiled in 0.1 to 0.4 s.
const CARD: &[Row] = &[
    row([128, 128, 8], [8, 8], "48.0 TFLOP/s at 4096 cubed on an H100"),
    row([64, 64, 16], [8, 4], "34.4 TFLOP/s at 1024 cubed on an H100"),
    row([64, 64, 8], [8, 4], "39.1 TFLOP/s at 2048 cubed on an H100; for least limits"),
    row([32, 32, 16], [4, 4], "18 us at 512 cubed, 12 us at 256 on an H100"),
];

/// For GPUs of which less is known: fewer registers.
const GPU: &[Row] = &[row([64, 64, 8], [8, 4], "not measured"), row([32, 32, 8], [4, 4], "not measured")];

/// For processors, which compile slowly and gain nothing from more.
const CPU: &[Row] = &[row([16, 16, 4], [4, 4], "small, to compile quickly")];

/// For cooperative matrices: the tile, and what a subgroup computes of it. Largest first. On an H100 (Vulkan, driver
/// 580.159.04), f16 to f32, TFLOP/s at 1024, 2048, 4096 and 8192 cubed and 4095 x 4097 x 4093: the first 55, 238, 307,
/// 320, 206; 128 x 256 x 32 57, 225, 272, 296, 185; 256 x 128 x 48 52, 220, 277, 288; the second 89, 233, 267, 294, 215;
/// 128 x 128 x 64 by 64 x 32 91, 224, 264, 287, 213; the third 115, 170, 171, 180, 147; 64 x 128 x 32 by 32 x 64 105, 161,
/// 211, 219, 152.
const COOP: &[Row] = &[
    row([128, 256, 48], [64, 64], "307 TFLOP/s from f16 to f32 at 4096 cubed on an H100"),
    row([128, 128, 32], [64, 64], "233 TFLOP/s from f16 to f32 at 2048 cubed on an H100"),
    row([64, 64, 64], [32, 32], "115 TFLOP/s from f16 to f32 at 1024 cubed on an H100"),
    row([64, 64, 32], [32, 32], "103 TFLOP/s from f16 to f32 at 1024 cubed on an H100; for least limits"),
    row([32, 32, 32], [16, 32], "not measured"),
];

/// The same for factors in two halves, which take twice the registers and workgroup memory, at 1024, 2048 and 4096
/// cubed: the first 30, 71, 98; with a part of 64 x 64 21, 45, 56; the second 37, 53, 64; the third 36, 57, 69.
const COOP_SPLIT: &[Row] = &[
    row([128, 128, 32], [64, 32], "98 TFLOP/s at 4096 cubed on an H100"),
    row([128, 64, 32], [32, 32], "37 TFLOP/s at 1024 cubed on an H100"),
    row([64, 64, 32], [32, 32], "36 TFLOP/s at 1024 cubed on an H100"),
    row([32, 32, 32], [16, 32], "not measured"),
];

/// Workgroups on cooperative matrices that fill a device: about one for each processor of a large card.
const COOP_FILL: u64 = 120;

/// Products m n k up to which a GPU is not even filled.
const TINY: usize = 1 << 15;

/// The inner extent from which it is worth splitting.
const LONG_K: usize = 2048;

/// The least of a slice of k.
const LEAST_SLICE: usize = 256;

/// What every WebGPU device runs.
pub(super) const DEFAULT_TILE: Tile = Tile { m: 16, n: 16, k: 16 };
const COARSENED: Division = Division { tile: Tile { m: 16, n: 64, k: 16 }, thread: [1, 4] };
const REGISTER_DIRECT: Division = Division { tile: Tile { m: 64, n: 16, k: 4 }, thread: [1, 16] };

/// Invocations that fill the device, roughly: a workgroup of 256 for most processors of a large card.
fn fill(profile: &DeviceProfile) -> u64 {
    if profile.class == DeviceClass::Discrete { 120 * 256 } else { 32 * 256 }
}

fn rows(profile: &DeviceProfile) -> &'static [Row] {
    match profile.class {
        DeviceClass::Cpu => CPU,
        DeviceClass::Discrete => CARD,
        _ => GPU,
    }
}

/// Whether the device holds the tile, in both buffers and turned on the way: whatever the operands are like.
fn fits(division: Division, profile: &DeviceProfile) -> bool {
    let Division { tile, thread } = division;
    let form = Form {
        tile,
        thread,
        double: true,
        unrolled: true,
        vectors: true,
        trans_a: false,
        trans_b: true,
        vec_a: false,
        vec_b: false,
        steps: Steps::Any,
        products: None,
        bytes: false,
        walked: None,
    };
    form.invocations() <= profile.limits.max_invocations
        && form.workgroup_bytes() <= u64::from(profile.limits.max_workgroup_bytes)
}

impl Division {
    pub(super) fn invocations(&self) -> u64 {
        u64::from(self.tile.m / self.thread[0].max(1)) * u64::from(self.tile.n / self.thread[1].max(1))
    }

    /// Tiles of C.
    pub(super) fn tiles(&self, gemm: &Gemm) -> u64 {
        let [m, n] = [gemm.m, gemm.n].map(|x| x as u64);
        m.div_ceil(self.tile.m.into()).saturating_mul(n.div_ceil(self.tile.n.into()))
    }

    /// Invocations in all.
    fn total(&self, gemm: &Gemm) -> u64 {
        self.tiles(gemm).saturating_mul(self.invocations())
    }
}

impl Row {
    /// As tuning knows it.
    fn name(&self) -> String {
        let Division { tile: Tile { m, n, k }, thread } = self.division;
        row_name([m, n, k], thread)
    }
}

/// Rows of a variant that can be chosen on a device by name.
pub(crate) fn rows_of(variant: &str, profile: &DeviceProfile) -> Vec<String> {
    match variant {
        "register" | "double" | "split-k" | "split-k-atomic" => rows(profile).iter().map(Row::name).collect(),
        "coop" => COOP.iter().chain(COOP_SPLIT).map(Row::name).collect(),
        _ => Vec::new(),
    }
}

/// The first row of a variant that suits, or the last, of those that the device holds and that gave no wrong results
/// there; before all, the one that is forced.
fn row_for(
    variant: &str,
    gemm: &Gemm,
    profile: &DeviceProfile,
    suits: impl Fn(&Row) -> bool,
) -> &'static Row {
    let (rows, coop) = match variant {
        "coop" if gemm.precision == Precision::Split => (COOP_SPLIT, true),
        "coop" => (COOP, true),
        _ => (rows(profile), false),
    };
    let coop_fits = |row: &Row| {
        // With the longest end.
        let form = gemm.coop_form(row.division, Types::MIXED, true, profile);
        form.wrong().is_none()
            && form.invocations() <= profile.limits.max_invocations.into()
            && form.workgroup_bytes() <= profile.limits.max_workgroup_bytes.into()
    };
    let choices = &profile.choices;
    let usable = |row: &&Row| {
        (if coop { coop_fits(row) } else { fits(row.division, profile) })
            && !choices.denies_row("gemm", variant, || row.name())
    };
    let fitting = || rows.iter().filter(usable);
    let forced = choices.row("gemm", variant);
    forced
        .and_then(|name| fitting().find(|row| row.name() == name))
        .or_else(|| fitting().find(|row| suits(row)))
        .or_else(|| fitting().next_back())
        .unwrap_or(&rows[rows.len() - 1])
}

/// The largest register tile of which there are enough to fill the device.
fn register_row(variant: &str, gemm: &Gemm, profile: &DeviceProfile) -> &'static Row {
    row_for(variant, gemm, profile, |row| row.division.total(gemm) >= fill(profile))
}

/// The largest tile that is not mostly beyond C: slices of k fill the device.
fn split_row(variant: &str, gemm: &Gemm, profile: &DeviceProfile) -> &'static Row {
    let inside = |side: u32, extent: usize| (side / 4 * 3) as usize <= extent;
    let small = |tile: Tile| inside(tile.m, gemm.m) && inside(tile.n, gemm.n);
    row_for(variant, gemm, profile, |row| small(row.division.tile))
}

/// The largest tile for cooperative matrices of which there are enough to fill the device.
fn coop_row(gemm: &Gemm, profile: &DeviceProfile) -> &'static Row {
    row_for("coop", gemm, profile, |row| row.division.tiles(gemm) >= COOP_FILL)
}

/// The division of a variant for a shape, with where it was measured.
pub(super) fn division(
    variant: &str,
    gemm: &Gemm,
    profile: &DeviceProfile,
) -> (Division, Option<&'static str>) {
    match variant {
        "naive" | "tiled" => (Division { tile: DEFAULT_TILE, thread: [1, 1] }, None),
        "coarsened" => (COARSENED, None),
        "register-direct" => (REGISTER_DIRECT, None),
        "coop" => {
            let row = coop_row(gemm, profile);
            (row.division, Some(row.measured))
        }
        "split-k" | "split-k-atomic" => {
            let row = split_row(variant, gemm, profile);
            (row.division, Some(row.measured))
        }
        _ => {
            let row = register_row(variant, gemm, profile);
            (row.division, Some(row.measured))
        }
    }
}

/// What an invocation computes of a tile that was asked for alone.
pub(super) fn thread_of(variant: &str, tile: Tile) -> [u32; 2] {
    match variant {
        "naive" | "tiled" => [1, 1],
        "coarsened" => [1, if tile.n.is_multiple_of(4) { 4 } else { 2 }],
        "register-direct" => [1, 16],
        "coop" => [tile.m.min(64), tile.n.min(64)],
        _ if tile.m >= 128 && tile.n >= 256 => [8, 16],
        _ if tile.m >= 128 && tile.n >= 64 => [8, 8],
        _ if tile.m >= 64 && tile.n >= 64 => [8, 4],
        _ => [4, 4],
    }
}

/// Slices of k that fill the device twice over, and no more: on an H100 16 of 512 x 512 x 32768 take 412 us, 32
/// 431, 8 500; 4 of 128 x 8192 x 8192 416, 8 434, 2 483. Each is long enough to be worth its slab.
pub(super) fn slices(division: Division, gemm: &Gemm, profile: &DeviceProfile) -> usize {
    let wanted = (fill(profile) * 11 / 5 / division.total(gemm).max(1)) as usize;
    wanted.clamp(2, (gemm.k / LEAST_SLICE).max(2))
}

/// Which variant, and why.
pub(super) fn variant(gemm: &Gemm, profile: &DeviceProfile) -> (&'static str, String) {
    let products = gemm.m.saturating_mul(gemm.n).saturating_mul(gemm.k);
    if gemm.precision != Precision::Strict {
        ("coop", format!("{} is what cooperative matrices are for", gemm.precision.name()))
    } else if gemm.thread.is_some() {
        ("double", "what an invocation computes was asked for".into())
    } else if gemm.tile.is_some() {
        ("tiled", "a tile was asked for".into())
    } else if profile.quirks.serial_workgroups {
        // Mesa 22.3 and SwiftShader, naive against double: 16 cubed 55 and 61 us, -; 32 cubed 123 and 101 us, 292
        // and 62; 128 cubed 4.2 and 1.0 ms, 8.1 and 2.7. Tiled takes 1.5 to 4 times as long as naive.
        if gemm.m.min(gemm.n) >= 32 && gemm.k >= 16 {
            ("double", "sums in registers; on a processor the caches hold what larger tiles would".into())
        } else {
            ("naive", "too small for tiles to pay their barriers, which are dear on a processor".into())
        }
    } else if gemm.k < DEFAULT_TILE.k as usize {
        // The one tile of k would be part zeros, and nothing hides its two barriers.
        ("naive", format!("k = {} does not fill a tile", gemm.k))
    } else if products <= TINY {
        // The launch is all the time there is; this is the smallest kernel.
        ("naive", format!("{products} products are too few for tiles to pay"))
    } else {
        let tiles = split_row("split-k", gemm, profile).division.total(gemm);
        if gemm.k >= LONG_K && tiles < fill(profile) {
            let why = format!(
                "tiles of C give {tiles} invocations, too few for the device; k = {} is long",
                gemm.k
            );
            return ("split-k", why);
        }
        ("double", "sums in registers use each element in workgroup memory several times".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::gemm::VARIANTS;
    use crate::program::Op;

    fn tile(side: usize, profile: &DeviceProfile) -> [u32; 3] {
        let Tile { m, n, k } = register_row("double", &Gemm::new(side, side, side), profile).division.tile;
        [m, n, k]
    }

    #[test]
    fn tiles_shrink_until_the_device_is_full() {
        let h100 = DeviceProfile::h100();
        assert_eq!(tile(8192, &h100), [128, 128, 8]);
        assert_eq!(tile(2048, &h100), [128, 128, 8]);
        assert_eq!(tile(1024, &h100), [64, 64, 16]);
        assert_eq!(tile(256, &h100), [32, 32, 16]);
        assert_eq!(tile(4096, &DeviceProfile::mesa()), [16, 16, 4]);
    }

    #[test]
    fn a_card_with_the_least_limits_has_a_tile_for_every_variant() {
        let class = DeviceClass::Discrete;
        let card = DeviceProfile { class, ..DeviceProfile::webgpu_defaults() };
        assert_eq!(tile(4096, &card), [64, 64, 8]);
        for profile in [card, DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader()] {
            for variant in VARIANTS.iter().filter(|v| v.requires.missing(&profile).is_none()) {
                for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                    let gemm = Gemm::new(1021, 1023, 1025).trans_a(a).trans_b(b).variant(variant.name);
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
            let gemm = Gemm::new(m, n, k);
            assert_eq!(variant(&gemm, &h100).0, "split-k");
            let (division, _) = division("split-k", &gemm, &h100);
            assert_eq!(slices(division, &gemm, &h100), slices_of, "{shape:?}");
        }
        assert_eq!(variant(&Gemm::new(512, 512, 1024), &h100).0, "double");
    }
}
