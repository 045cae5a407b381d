//! Products of two matrices, single and in batches.

use crate::support::{Bench, centred, half, random};
#[cfg(feature = "cuda")]
use crate::support::{Case, random_on_cuda};
#[cfg(feature = "cuda")]
use half::bf16;
use half::f16;
#[cfg(feature = "cuda")]
use tilework::ErrorKind;
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaGpu, CudaOp};
use tilework::dense::{ProductTile, ThreadTile};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{DType, Element, Result};

/// The operands of a product.
struct Matrices<T: Element> {
    shape: [usize; 3],
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<T>,
}

impl<T: Element> Matrices<T> {
    fn new(gpu: &Gpu, [m, n, k]: [usize; 3], value: impl Fn(u32) -> T) -> Result<Self> {
        let (a, b) = (random(gpu, m * k, &value)?, random(gpu, k * n, &value)?);
        Ok(Self { shape: [m, n, k], a, b, c: gpu.alloc(m * n)? })
    }

    /// Measures the product that `form` sets up, under the name `variant`.
    fn measure(&self, bench: &mut Bench, variant: &str, form: impl FnOnce(Gemm) -> Gemm) -> Result<()>
    where
        Gemm: Op<T>,
    {
        let [m, n, k] = self.shape;
        let (mut size, mut dtype) = (format!("{m}x{n}x{k}"), T::DTYPE.to_string());
        // Keep rounded products of f32 apart from exact ones.
        if T::DTYPE == DType::F32 && variant.starts_with("coop") {
            dtype += if variant.contains("split") { " split" } else { " tensor" };
        }
        let turned = [" a'", " b'"].iter().filter_map(|name| variant.find(name)).min();
        let (variant, factors) = variant.split_at(turned.unwrap_or(variant.len()));
        size += factors;
        bench.op_as::<T>(&form(Gemm::new(m, n, k)), (variant, &dtype), size, &[&self.a, &self.b, &self.c])?;
        Ok(())
    }
}

/// Every variant on squares, and the automatic choice for other shapes.
pub(crate) fn gemm(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for side in bench.scale(vec![256, 512, 1024, 2048, 4096], vec![256]) {
        let matrices = Matrices::new(&gpu, [side; 3], centred)?;
        for v in Gemm::variants().iter().filter(|v| v.requires.missing(gpu.profile()).is_none()) {
            // At 4096 `naive` takes a second per run.
            if side < 4096 || v.name != "naive" {
                matrices.measure(bench, v.name, |gemm| gemm.variant(v.name))?;
            }
        }
    }
    let shapes = [
        [8192, 8192, 8192],
        [4095, 4097, 4093],
        [128, 8192, 8192],
        [8192, 128, 8192],
        [512, 512, 32768],
        [1, 4096, 4096],
    ];
    for shape in bench.scale(shapes.to_vec(), vec![[65, 67, 2049]]) {
        Matrices::new(&gpu, shape, centred)?.measure(bench, "auto", |gemm| gemm)?;
    }
    let side = bench.scale(4096, 256);
    let matrices = Matrices::new(&gpu, [side; 3], centred)?;
    for (a, b) in [(false, true), (true, false), (true, true)] {
        let name = ["auto", "auto b'", "auto a'", "auto a' b'"][2 * usize::from(a) + usize::from(b)];
        matrices.measure(bench, name, |gemm| gemm.when(a, |op| op.trans_a()).when(b, |op| op.trans_b()))?;
    }
    let tensors = gpu.profile().cooperative_side().is_some();
    if tensors {
        matrices.measure(bench, "coop split", |gemm| gemm.precision(Precision::Split))?;
        matrices.measure(bench, "coop tensor", |gemm| gemm.precision(Precision::Tensor))?;
    }
    drop(matrices);
    if gpu.profile().features.f16 {
        for shape in bench.scale(vec![[4096; 3], [4095, 4097, 4093]], vec![[256; 3]]) {
            let halves = Matrices::new(&gpu, shape, half)?;
            halves.measure(bench, "auto", |gemm| gemm)?;
            mixed(bench, &halves, "auto", |gemm| gemm)?;
            if tensors {
                halves.measure(bench, "coop tensor", |gemm| gemm.precision(Precision::Tensor))?;
                mixed(bench, &halves, "coop tensor", |gemm| gemm.precision(Precision::Tensor))?;
            }
        }
    }
    #[cfg(feature = "cuda")]
    gemm_on_cuda(bench)?;
    Ok(())
}

/// Shapes with remainders, rows that copy engines read slowly, and few waves.
#[cfg(feature = "cuda")]
const UNEVEN: [[usize; 3]; 10] = [
    [3000, 3000, 3000],
    [777, 1999, 333],
    [1500, 1500, 1500],
    [4095, 4097, 4093],
    [100, 11008, 4096],
    [4104, 4104, 4104],
    [2560, 10240, 1280],
    [8192, 4096, 768],
    [5120, 5120, 5120],
    [4096, 11008, 4096],
];

/// Tensor cores on CUDA: every variant on squares of every type, and the variant of `auto` on other shapes.
#[cfg(feature = "cuda")]
fn gemm_on_cuda(bench: &mut Bench) -> Result<()> {
    let Some(cuda) = bench.cuda.clone() else { return Ok(()) };
    let all: Vec<_> = Gemm::cuda_variants().iter().filter(|v| cuda.profile().runs(v.arch)).map(|v| v.name).collect();
    for side in [1024, 2048, 4096, 8192] {
        let square = [side; 3];
        product_on_cuda(bench, &cuda, square, &all, ("f16", Precision::Strict), half)?;
        product_on_cuda(bench, &cuda, square, &all, ("bf16", Precision::Strict), |b| bf16::from_f32(centred(b)))?;
        product_on_cuda(bench, &cuda, square, &all, ("f32 tensor", Precision::Tensor), centred)?;
        product_on_cuda(bench, &cuda, square, &all, ("f32 split", Precision::Split), centred)?;
    }
    for shape in UNEVEN {
        product_on_cuda(bench, &cuda, shape, &["auto"], ("f16", Precision::Strict), half)?;
    }
    Ok(())
}

#[cfg(feature = "cuda")]
fn product_on_cuda<T: Element>(
    bench: &mut Bench, cuda: &CudaGpu, [m, n, k]: [usize; 3], variants: &[&'static str],
    (dtype, precision): (&str, Precision), value: impl Fn(u32) -> T,
) -> Result<()>
where
    Gemm: CudaOp<T>,
{
    let (a, b) = (random_on_cuda(cuda, m * k, &value)?, random_on_cuda(cuda, k * n, &value)?);
    let (c, stream) = (cuda.alloc::<T>(m * n)?, cuda.stream()?);
    for variant in variants {
        let op = Gemm::new(m, n, k).precision(precision).variant(variant);
        // Not every variant takes every type.
        let plan = match op.plan::<T>(cuda) {
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument) => continue,
            plan => plan?,
        };
        let (size, cost) = (format!("{m}x{n}x{k}"), plan.program().cost);
        let case = Case { op: "gemm", variant: plan.program().variant(), dtype, size, cost };
        bench.stream(&case, &stream, |stream| plan.run(stream, &a, &b, &c));
    }
    Ok(())
}

/// Measures a product of f16 matrices into f32.
fn mixed(bench: &mut Bench, halves: &Matrices<f16>, variant: &str, form: impl FnOnce(Gemm) -> Gemm) -> Result<()> {
    let [m, n, k] = halves.shape;
    let c = bench.gpu.alloc::<f32>(m * n)?;
    let op = form(Gemm::new(m, n, k)).mixed_precision();
    bench.op_as::<f16>(&op, (variant, "f16-f32"), format!("{m}x{n}x{k}"), &[&halves.a, &halves.b, &c])
}

/// Tile and thread tile.
type Tile = ([u32; 3], [u32; 2]);

/// Candidates for the policy of a card.
const TILES: [Tile; 14] = [
    ([128, 128, 8], [8, 8]),
    ([128, 256, 8], [8, 16]),
    ([128, 128, 8], [8, 16]),
    ([128, 128, 8], [16, 8]),
    ([64, 128, 8], [8, 8]),
    ([128, 64, 8], [8, 8]),
    ([64, 64, 8], [8, 8]),
    ([64, 64, 8], [8, 4]),
    ([64, 64, 16], [8, 4]),
    ([64, 64, 16], [4, 4]),
    ([32, 64, 8], [4, 8]),
    ([64, 32, 16], [8, 4]),
    ([32, 32, 16], [4, 4]),
    ([32, 32, 32], [4, 4]),
];

fn tiled(gemm: Gemm, ([m, n, k], [rows, columns]): Tile) -> Gemm {
    gemm.tile(ProductTile { m, n, k }).thread_tile(ThreadTile { rows, columns })
}

fn name(what: &str, ([m, n, k], [rows, columns]): Tile) -> String {
    format!("{what} {m}x{n}x{k}/{rows}x{columns}")
}

/// Tiles of `double` on squares, and other options of kernels with sums in registers.
pub(crate) fn gemm_tiles(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let small: Tile = ([32, 32, 4], [4, 4]);
    for side in bench.scale(vec![256, 512, 1024, 2048, 4096], vec![256]) {
        let matrices = Matrices::new(&gpu, [side; 3], centred)?;
        for tile in bench.scale(TILES.to_vec(), vec![small]) {
            matrices.measure(bench, &name("double", tile), |g| tiled(g.variant("double"), tile))?;
        }
        if side < 4096 {
            continue;
        }
        for tile in [TILES[0], TILES[1]] {
            let single = |g: Gemm| tiled(g.variant("register"), tile);
            matrices.measure(bench, &name("register", tile), single)?;
            matrices.measure(bench, &name("register rolled", tile), |g| single(g).rolled())?;
            let double = |g: Gemm| tiled(g.variant("double"), tile);
            matrices.measure(bench, &name("double rolled", tile), |g| double(g).rolled())?;
            matrices.measure(bench, &name("double by element", tile), |g| double(g).workgroup_vectors(false))?;
        }
    }
    let odd = Matrices::new(&gpu, bench.scale([4095, 4097, 4093], [65, 67, 69]), centred)?;
    for tile in bench.scale(TILES[..6].to_vec(), vec![small]) {
        odd.measure(bench, &name("double", tile), |g| tiled(g.variant("double"), tile))?;
    }
    Ok(())
}

/// Tiles and slices for `split-k`.
pub(crate) fn gemm_split(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes =
        [[512, 512, 32768], [128, 8192, 8192], [8192, 128, 8192], [1024, 1024, 1024], [512, 512, 512], [256, 256, 256]];
    let tiles = [TILES[0], TILES[4], TILES[8], TILES[12]];
    for shape in bench.scale(shapes.to_vec(), vec![[64, 64, 2048]]) {
        let matrices = Matrices::new(&gpu, shape, centred)?;
        for tile in bench.scale(tiles.to_vec(), vec![([32, 32, 4], [4, 4])]) {
            for slices in [2, 4, 8, 16, 32] {
                if shape[2] / slices < 64 {
                    continue;
                }
                let name = name(&format!("split-k {slices}"), tile);
                matrices.measure(bench, &name, |g| tiled(g.variant("split-k"), tile).slices(slices as u32))?;
            }
        }
    }
    Ok(())
}

/// Candidates for `coop`: the tile, and the part of a subgroup.
const COOP_TILES: [Tile; 10] = [
    ([128, 256, 48], [64, 64]),
    ([128, 256, 32], [64, 64]),
    ([256, 128, 48], [64, 64]),
    ([128, 128, 32], [64, 64]),
    ([128, 128, 32], [64, 32]),
    ([128, 128, 64], [64, 32]),
    ([128, 64, 32], [32, 32]),
    ([64, 128, 32], [32, 64]),
    ([64, 64, 32], [32, 32]),
    ([64, 64, 64], [32, 32]),
];

/// The same for split factors.
const COOP_SPLIT_TILES: [Tile; 9] = [
    ([128, 128, 32], [64, 32]),
    ([128, 128, 32], [32, 64]),
    ([128, 128, 16], [64, 32]),
    ([128, 128, 16], [64, 64]),
    ([128, 128, 32], [64, 64]),
    ([128, 64, 32], [32, 32]),
    ([128, 64, 32], [64, 32]),
    ([64, 128, 32], [32, 64]),
    ([64, 64, 32], [32, 32]),
];

/// Cooperative matrices in every precision, with all candidates.
pub(crate) fn gemm_coop(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    if gpu.profile().cooperative_side().is_none() {
        println!("skipped: no cooperative matrices");
        return Ok(());
    }
    let odd = [4095, 4097, 4093];
    let squares = vec![[1024; 3], [2048; 3], [4096; 3], [8192; 3], odd];
    for shape in bench.scale(squares, vec![[256; 3]]) {
        let halves = Matrices::new(&gpu, shape, half)?;
        let [m, n, k] = shape;
        let tensor = Gemm::new(m, n, k).precision(Precision::Tensor);
        let fresh = |tile| (format!("{} fresh", name("coop", tile)), tiled(tensor.clone(), tile).fresh_sums(true));
        let forms = COOP_TILES.map(|tile| (name("coop", tile), tiled(tensor.clone(), tile)));
        let forms = forms.into_iter().chain(COOP_TILES[..5].iter().map(|tile| fresh(*tile)));
        for (variant, op) in forms.chain([("coop".to_owned(), tensor.clone())]) {
            // Some exceed workgroup memory if they must also hold the edges of C.
            if op.clone().mixed_precision().plan::<f16>(&gpu).is_ok() {
                mixed(bench, &halves, &variant, |_| op)?;
            }
        }
        if shape != [4096; 3] && shape != odd {
            continue;
        }
        halves.measure(bench, "coop", |g| g.precision(Precision::Tensor))?;
        for (a, b) in [(false, true), (true, false), (true, true)] {
            let name = ["", "coop b'", "coop a'", "coop a' b'"][2 * usize::from(a) + usize::from(b)];
            halves.measure(bench, name, |g| {
                g.precision(Precision::Tensor).when(a, |op| op.trans_a()).when(b, |op| op.trans_b())
            })?;
        }
    }
    let squares = vec![[1024; 3], [2048; 3], [4096; 3], odd];
    for shape in bench.scale(squares, vec![[256; 3]]) {
        let singles = Matrices::new(&gpu, shape, centred)?;
        singles.measure(bench, "coop tensor", |g| g.precision(Precision::Tensor))?;
        for tile in COOP_SPLIT_TILES {
            let split = |g: Gemm| tiled(g.precision(Precision::Split), tile);
            let [m, n, k] = shape;
            if split(Gemm::new(m, n, k)).plan::<f32>(&gpu).is_ok() {
                singles.measure(bench, &name("coop split", tile), split)?;
            }
        }
        singles.measure(bench, "coop split", |g| g.precision(Precision::Split))?;
    }
    Ok(())
}

/// Compile times of unrolled kernels that the driver has not seen: their activation is new.
pub(crate) fn gemm_compile(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for tile in bench.scale(TILES.to_vec(), vec![([16, 16, 4], [4, 4])]) {
        planned::<f32>(&gpu, &name("double", tile), &tiled(Gemm::new(64, 64, 64).variant("double"), tile));
    }
    for (precision, tiles) in [(Precision::Tensor, &COOP_TILES[..]), (Precision::Split, &COOP_SPLIT_TILES)] {
        for tile in bench.scale(tiles, &[]) {
            // With edges, and therefore both epilogues.
            let op = tiled(Gemm::new(1000, 1000, 1000).precision(precision), *tile);
            planned::<f32>(&gpu, &name(&format!("coop {precision:?}"), *tile), &op);
            if precision == Precision::Tensor {
                // Without packing passes.
                planned::<f16>(&gpu, &name("coop of f16", *tile), &op);
            }
        }
    }
    Ok(())
}

fn planned<T: Element>(gpu: &Gpu, what: &str, op: &Gemm)
where
    Gemm: Op<T>,
{
    for activation in [Activation::None, Activation::Gelu] {
        let start = std::time::Instant::now();
        let Ok(plan) = op.clone().activation(activation).beta(1.0).plan::<T>(gpu) else { return };
        let (seconds, kernels) = (start.elapsed().as_secs_f64(), plan.program().kernels.len());
        let form = activation.name();
        println!("{what} {form}: planned in {:.0} ms, {kernels} kernels", 1e3 * seconds);
    }
}

/// Products of small matrices, and of some that exceed a workgroup; the last shape has odd sides.
pub(crate) fn gemm_batched(bench: &mut Bench) -> Result<()> {
    batches(bench, false)
}

/// The same with `small`, for several numbers of products per workgroup and thread tiles.
pub(crate) fn gemm_batched_forms(bench: &mut Bench) -> Result<()> {
    batches(bench, true)
}

fn batches(bench: &mut Bench, forms: bool) -> Result<()> {
    let shapes = bench.scale(
        vec![
            [10_000, 32, 32, 32],
            [1 << 20, 4, 4, 4],
            [1 << 18, 8, 8, 8],
            [1 << 16, 16, 16, 16],
            [4096, 48, 48, 48],
            [4096, 64, 64, 64],
            [1024, 128, 128, 128],
            [64, 512, 512, 512],
            [10_000, 31, 33, 29],
        ],
        vec![[1000, 4, 4, 4], [100, 32, 32, 32], [4, 128, 128, 128]],
    );
    for &shape in &shapes {
        batched(bench, shape, forms, centred)?;
    }
    if bench.gpu.profile().features.f16 {
        batched(bench, shapes[0], forms, half)?;
    }
    Ok(())
}

/// Measures the products of a batch.
fn batched<T: Element>(
    bench: &mut Bench, [batch, m, n, k]: [usize; 4], forms: bool, value: impl Fn(u32) -> T,
) -> Result<()>
where
    GemmBatched: Op<T>,
{
    let gpu = bench.gpu.clone();
    let (a, b) = (random(&gpu, batch * m * k, &value)?, random(&gpu, batch * k * n, &value)?);
    let c = gpu.alloc::<T>(batch * m * n)?;
    let op = GemmBatched::new(batch, m, n, k);
    let mut cases = Vec::new();
    if !forms {
        let variants = GemmBatched::variants().iter().filter(|v| v.name != "small" || m.max(n) <= 64);
        cases.extend(variants.map(|v| (v.name.to_owned(), op.clone().variant(v.name))));
    } else if m.max(n) <= 64 {
        let products = [1, 2, 4, 8, 16, 32];
        let threads = [[4, 4], [8, 4], [4, 8], [8, 8]];
        for (p, [rows, columns]) in products.into_iter().flat_map(|p| threads.map(|t| (p, t))) {
            let name = format!("small {p} of {rows}x{columns}");
            cases.push((name, op.clone().variant("small").products(p).thread_tile(ThreadTile { rows, columns })));
        }
    }
    for (variant, op) in cases {
        bench.op_as::<T>(&op, (&variant, ""), format!("{batch}x{m}x{n}x{k}"), &[&a, &b, &c])?;
    }
    Ok(())
}
