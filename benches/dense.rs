//! Dense linear algebra.

mod support;

#[cfg(feature = "cuda")]
use half::bf16;
use half::f16;
#[cfg(feature = "cuda")]
use support::Case;
#[cfg(feature = "cuda")]
use support::random_on_cuda;
use support::{Bench, centred, half, random};
#[cfg(feature = "cuda")]
use tilework::ErrorKind;
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaGpu, CudaOp};
use tilework::dense::{PadAxes, PadMode, ProductTile, ThreadTile};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{DType, Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("gemm", gemm),
        ("gemm-tiles", gemm_tiles),
        ("gemm-split", gemm_split),
        ("gemm-coop", gemm_coop),
        ("gemm-compile", gemm_compile),
        ("gemm-batched", gemm_batched),
        ("gemm-batched-forms", gemm_batched_forms),
        ("gemv", gemv),
        ("transpose", transpose),
        ("permute-axes", permute_axes),
        ("ger", ger),
        ("trsm", trsm),
        ("trmm", trmm),
        ("syrk", syrk),
        ("syr2k", syr2k),
        ("gemm-grouped", gemm_grouped),
        ("symm", symm),
        ("moves", moves),
        ("complex", complex),
        ("vectors", vectors),
        ("level-2", level_2),
    ])
}

/// Rows that stay, batches of matrices, and axes in reverse.
fn permute_axes(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(512, 64);
    let n = side * side * side;
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    for axes in [[1, 0, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0]] {
        for variant in PermuteAxes::variants() {
            let op = PermuteAxes::new(&[side; 3], &axes).variant(variant.name);
            bench.op::<f32>(&op, format!("{axes:?} of {side}x{side}x{side}"), &[&x, &y])?;
        }
    }
    Ok(())
}

/// Every other element, columns of a row-major matrix as BLAS's increments read them, a border, and two halves of rows.
fn moves(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(8192, 512);
    let n = side * side;
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    for (name, shape, strides) in [
        ("every other", [side, side / 2], [side as isize, 2]),
        ("columns", [side, side], [1, side as isize]),
        ("back", [side, side], [-(side as isize), -1]),
    ] {
        let op = StridedCopy::new(n, &shape, &strides).origin(if name == "back" { n - 1 } else { 0 });
        bench.op::<f32>(&op, format!("{name} of {side}x{side}"), &[&x, &y])?;
    }
    let inner = side - 64;
    for mode in [PadMode::Constant(0.0), PadMode::Reflect] {
        let op = PadAxes::new(&[inner; 2], &[[32, 32]; 2], mode);
        bench.op::<f32>(&op, format!("{} {inner}x{inner}", mode.name()), &[&x, &y])?;
    }
    let half = [side, side / 2];
    let op = Concatenate::new(&[&half, &half], 1);
    bench.op::<f32>(&op, format!("rows of {side}x{side}"), &[&x, &x, &y])
}

fn ger(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(16384, 1024);
    let [x, y] = [(); 2].map(|()| random(&bench.gpu, side, centred));
    let a = random(&bench.gpu, side * side, centred)?;
    bench.op::<f32>(&Ger::new(side, side), format!("{side}x{side}"), &[&x?, &y?, &a])
}

/// A triangle whose inverse is of moderate size.
fn triangle(gpu: &Gpu, side: usize) -> Result<Buffer<f32>> {
    let value = |i: usize| {
        let (row, column) = (i / side, i % side);
        if row == column { 2.0 } else { centred((i as u32).wrapping_mul(0x9e37_79b9)) / side as f32 }
    };
    gpu.upload(&(0..side * side).map(value).collect::<Vec<f32>>())
}

/// A square, few right sides, and A on the right.
fn trsm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    for (op, what) in [(Trsm::new(side, side), ""), (Trsm::new(side, side).right().trans(), " right trans")] {
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &b])?;
    }
    let few = random(&bench.gpu, side, centred)?;
    bench.op::<f32>(&Trsm::new(side, 1), format!("{side}x1"), &[&a, &few])
}

fn trmm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    let c = bench.gpu.alloc::<f32>(side * side)?;
    bench.op::<f32>(&Trmm::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

fn syrk(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, c) = (random(&bench.gpu, side * side, centred)?, bench.gpu.alloc::<f32>(side * side)?);
    for (op, what) in [(Syrk::new(side, side), ""), (Syrk::new(side, side).trans(), " trans")] {
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &c])?;
    }
    Ok(())
}

fn syr2k(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let [a, b] = [0, 1].map(|_| random(&bench.gpu, side * side, centred));
    let (a, b, c) = (a?, b?, bench.gpu.alloc::<f32>(side * side)?);
    bench.op::<f32>(&Syr2k::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

/// Products of 64 shapes between 16 and 528 a side.
fn gemm_grouped(bench: &mut Bench) -> Result<()> {
    let products = bench.scale(64, 4);
    let shapes: Vec<[usize; 3]> =
        (0..products).map(|i| [1, 5, 11].map(|by| 16 + (i * by * 8) % 513)).collect();
    let len = |of: fn(&[usize; 3]) -> usize| shapes.iter().map(of).sum::<usize>();
    let a = random(&bench.gpu, len(|[m, _, k]| m * k), centred)?;
    let b = random(&bench.gpu, len(|[_, n, k]| k * n), centred)?;
    let c = bench.gpu.alloc::<f32>(len(|[m, n, _]| m * n))?;
    bench.op::<f32>(&GemmGrouped::new(shapes), format!("{products} shapes up to 528"), &[&a, &b, &c])
}

/// Products and sums of complex numbers.
fn complex(bench: &mut Bench) -> Result<()> {
    let (side, n) = (bench.scale(4096, 128), bench.scale(1 << 26, 1 << 16));
    let [a, b] = [0, 1].map(|_| random(&bench.gpu, 2 * side * side, centred));
    let (a, b, c) = (a?, b?, bench.gpu.alloc::<f32>(2 * side * side)?);
    bench.op::<f32>(&Cgemm::new(side, side, side), format!("{side}x{side}x{side}"), &[&a, &b, &c])?;
    let (x, y) = (random(&bench.gpu, 2 * side, centred)?, bench.gpu.alloc::<f32>(2 * side)?);
    for op in [Cgemv::new(side, side), Cgemv::new(side, side).trans()] {
        let what = if op == Cgemv::new(side, side) { "" } else { " trans" };
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &x, &y])?;
    }
    drop((a, b, c));
    let [x, y] = [0, 1].map(|_| random(&bench.gpu, 2 * n, centred));
    let (x, y, result) = (x?, y?, bench.gpu.alloc::<f32>(2)?);
    bench.op::<f32>(&Caxpy::new(n, [0.5, -0.25]), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Cdot::new(n), n.to_string(), &[&x, &y, &result])
}

/// Vectors of BLAS's level 1 that two ops share, side by side and apart.
fn vectors(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 16);
    let (x, y) = (random(&bench.gpu, 4 * n, centred)?, random(&bench.gpu, 4 * n, centred)?);
    let result = bench.gpu.alloc::<f32>(1)?;
    bench.op::<f32>(&Rot::new(n, 0.6, 0.8), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Swap::new(n), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Dot::new(n).incx(4), format!("{n} every 4th"), &[&x, &y, &result])?;
    bench.op::<f32>(&Axpy::new(n, 1e-3).incx(4).incy(-4), format!("{n} every 4th"), &[&x, &y])
}

/// Matrices of BLAS's level 2 of which a part is stored.
fn level_2(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(8192, 512);
    let a = triangle(&bench.gpu, n)?;
    let (x, y) = (random(&bench.gpu, n, centred)?, random(&bench.gpu, n, centred)?);
    bench.op::<f32>(&Symv::new(n), format!("{n}"), &[&a, &x, &y])?;
    bench.op::<f32>(&Symv::new(n).packed(), format!("{n} packed"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trmv::new(n), format!("{n}"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trmv::new(n).trans(), format!("{n} trans"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trsv::new(n).unit(), format!("{n}"), &[&a, &x])?;
    bench.op::<f32>(&Syr::new(n).alpha(1e-6), format!("{n}"), &[&x, &a])?;
    bench.op::<f32>(&Syr2::new(n).alpha(1e-6), format!("{n}"), &[&x, &y, &a])?;
    let rows = bench.scale(1 << 22, 1 << 14);
    let band = random(&bench.gpu, 11 * rows, centred)?;
    let (x, y) = (random(&bench.gpu, rows, centred)?, bench.gpu.alloc::<f32>(rows)?);
    bench.op::<f32>(&Gbmv::new(rows, rows, 5, 5), format!("{rows}, 11 diagonals"), &[&band, &x, &y])
}

fn symm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    let c = bench.gpu.alloc::<f32>(side * side)?;
    bench.op::<f32>(&Symm::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

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
fn gemm(bench: &mut Bench) -> Result<()> {
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

/// Tensor cores on CUDA: every variant on squares of every type.
#[cfg(feature = "cuda")]
fn gemm_on_cuda(bench: &mut Bench) -> Result<()> {
    let Some(cuda) = bench.cuda.clone() else { return Ok(()) };
    for side in [1024, 2048, 4096, 8192] {
        square_on_cuda(bench, &cuda, side, ("f16", Precision::Strict), half)?;
        square_on_cuda(bench, &cuda, side, ("bf16", Precision::Strict), |b| bf16::from_f32(centred(b)))?;
        square_on_cuda(bench, &cuda, side, ("f32 tensor", Precision::Tensor), centred)?;
        square_on_cuda(bench, &cuda, side, ("f32 split", Precision::Split), centred)?;
    }
    Ok(())
}

#[cfg(feature = "cuda")]
fn square_on_cuda<T: Element>(
    bench: &mut Bench,
    cuda: &CudaGpu,
    side: usize,
    (dtype, precision): (&str, Precision),
    value: impl Fn(u32) -> T,
) -> Result<()>
where
    Gemm: CudaOp<T>,
{
    let (a, b) = (random_on_cuda(cuda, side * side, &value)?, random_on_cuda(cuda, side * side, &value)?);
    let (c, stream) = (cuda.alloc::<T>(side * side)?, cuda.stream()?);
    for variant in Gemm::cuda_variants().iter().filter(|v| cuda.profile().runs(v.arch)) {
        let op = Gemm::new(side, side, side).precision(precision).variant(variant.name);
        // Not every variant takes every type.
        let plan = match op.plan::<T>(cuda) {
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument) => continue,
            plan => plan?,
        };
        let (size, cost) = (format!("{side}x{side}x{side}"), plan.program().cost);
        let case = Case { op: "gemm", variant: variant.name, dtype, size, cost };
        bench.stream(&case, &stream, |stream| plan.run(stream, &a, &b, &c));
    }
    Ok(())
}

/// Measures a product of f16 matrices into f32.
fn mixed(
    bench: &mut Bench,
    halves: &Matrices<f16>,
    variant: &str,
    form: impl FnOnce(Gemm) -> Gemm,
) -> Result<()> {
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
fn gemm_tiles(bench: &mut Bench) -> Result<()> {
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
            matrices
                .measure(bench, &name("double by element", tile), |g| double(g).workgroup_vectors(false))?;
        }
    }
    let odd = Matrices::new(&gpu, bench.scale([4095, 4097, 4093], [65, 67, 69]), centred)?;
    for tile in bench.scale(TILES[..6].to_vec(), vec![small]) {
        odd.measure(bench, &name("double", tile), |g| tiled(g.variant("double"), tile))?;
    }
    Ok(())
}

/// Tiles and slices for `split-k`.
fn gemm_split(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes = [
        [512, 512, 32768],
        [128, 8192, 8192],
        [8192, 128, 8192],
        [1024, 1024, 1024],
        [512, 512, 512],
        [256, 256, 256],
    ];
    let tiles = [TILES[0], TILES[4], TILES[8], TILES[12]];
    for shape in bench.scale(shapes.to_vec(), vec![[64, 64, 2048]]) {
        let matrices = Matrices::new(&gpu, shape, centred)?;
        for tile in bench.scale(tiles.to_vec(), vec![([32, 32, 4], [4, 4])]) {
            for slices in [2, 4, 8, 16, 32] {
                if shape[2] / slices < 64 {
                    continue;
                }
                let name = name(&format!("split-k {slices}"), tile);
                matrices
                    .measure(bench, &name, |g| tiled(g.variant("split-k"), tile).slices(slices as u32))?;
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
fn gemm_coop(bench: &mut Bench) -> Result<()> {
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
        let fresh =
            |tile| (format!("{} fresh", name("coop", tile)), tiled(tensor.clone(), tile).fresh_sums(true));
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
fn gemm_compile(bench: &mut Bench) -> Result<()> {
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
fn gemm_batched(bench: &mut Bench) -> Result<()> {
    batches(bench, false)
}

/// The same with `small`, for several numbers of products per workgroup and thread tiles.
fn gemm_batched_forms(bench: &mut Bench) -> Result<()> {
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
    bench: &mut Bench,
    [batch, m, n, k]: [usize; 4],
    forms: bool,
    value: impl Fn(u32) -> T,
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
            cases.push((
                name,
                op.clone().variant("small").products(p).thread_tile(ThreadTile { rows, columns }),
            ));
        }
    }
    for (variant, op) in cases {
        bench.op_as::<T>(&op, (&variant, ""), format!("{batch}x{m}x{n}x{k}"), &[&a, &b, &c])?;
    }
    Ok(())
}

/// Square, odd, wide and tall matrices; one long sum, and many short ones.
fn gemv(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes = bench.scale(
        vec![
            (256, 256),
            (1024, 1024),
            (4096, 4096),
            (16384, 16384),
            (16383, 16381),
            (64, 1 << 22),
            (1 << 22, 64),
            (1024, 1 << 18),
            (1 << 18, 1024),
            (1, 1 << 27),
            (1 << 25, 4),
        ],
        vec![(256, 256), (2048, 2048), (16, 1 << 18), (1 << 18, 16)],
    );
    let largest = shapes.iter().map(|&(m, k)| m * k).max().unwrap_or(0);
    let longest = shapes.iter().map(|&(m, k)| m.max(k)).max().unwrap_or(0);
    let a = random(&gpu, largest, centred)?;
    let (x, y) = (random(&gpu, longest, centred)?, gpu.alloc::<f32>(longest)?);
    for &(m, k) in &shapes {
        for v in Gemv::variants() {
            // The baseline is slow if a thread computes a long sum.
            if v.name != "naive" || m.max(k) <= 1 << 18 {
                one_gemv(bench, v.name, (m, k), &a, &x, &y)?;
            }
        }
    }
    drop((a, x, y));
    if !gpu.profile().features.f16 {
        return Ok(());
    }
    let (m, k) = bench.scale((16384, 16384), (2048, 2048));
    let halves = |n| random(&gpu, n, half);
    one_gemv(bench, "tiled", (m, k), &halves(m * k)?, &halves(m.max(k))?, &halves(m.max(k))?)
}

/// Measures a product both ways.
fn one_gemv<T: Element>(
    bench: &mut Bench,
    variant: &str,
    (m, k): (usize, usize),
    a: &Buffer<T>,
    x: &Buffer<T>,
    y: &Buffer<T>,
) -> Result<()>
where
    Gemv: Op<T>,
{
    for trans in [false, true] {
        let op = Gemv::new(m, k).when(trans, |op| op.trans()).variant(variant);
        bench.op::<T>(&op, format!("{m}x{k}{}", if trans { " transposed" } else { "" }), &[a, x, y])?;
    }
    Ok(())
}

fn transpose(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes = bench.scale(
        vec![
            (1, 256, 256),
            (1, 1024, 1024),
            (1, 4096, 4096),
            (1, 16384, 16384),
            (1, 16383, 16381),
            (1, 64, 1 << 22),
            (1, 1 << 22, 64),
            (1, 3, 1 << 26),
            (1, 1 << 26, 3),
            (1 << 18, 32, 32),
            (1 << 22, 8, 8),
        ],
        vec![(1, 256, 256), (1, 2048, 2048), (1, 2047, 2045), (4096, 32, 32)],
    );
    transposes(bench, &shapes, |b| b)?;
    let square = bench.scale(vec![(1, 16384, 16384), (1, 16383, 16381)], vec![(1, 2048, 2048)]);
    transposes(bench, &square, |b| b as u8)?;
    transposes(bench, &square, half)?;
    if gpu.profile().features.int64 {
        let square = bench.scale(vec![(1, 8192, 16384)], vec![(1, 1024, 2048)]);
        transposes(bench, &square, u64::from)?;
    }
    Ok(())
}

/// Measures transpositions of one type with all variants. They move bits, so u32 stands for f32.
fn transposes<T: Element>(
    bench: &mut Bench,
    shapes: &[(usize, usize, usize)],
    value: impl Fn(u32) -> T,
) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = shapes.iter().map(|&(batch, m, n)| batch * m * n).max().unwrap_or(0);
    let (x, y) = (random(&gpu, largest, value)?, gpu.alloc::<T>(largest)?);
    for &(batch, m, n) in shapes {
        for v in Transpose::variants() {
            let op = Transpose::batched(batch, m, n).variant(v.name);
            let size = if batch == 1 { format!("{m}x{n}") } else { format!("{batch}x{m}x{n}") };
            let dtype = if T::DTYPE.size() == 4 { "f32" } else { "" };
            bench.op_as::<T>(&op, ("", dtype), size, &[&x, &y])?;
        }
    }
    Ok(())
}
