//! Dense linear algebra.

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::prelude::*;
use tilework::program::{In, InOut, Op};
use tilework::{Element, Result};

/// The cases of some ops.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    let groups: [(&str, Group); 4] = [
        ("gemm", gemm),
        ("gemm-tiles", gemm_tiles),
        ("gemm-split", gemm_split),
        ("gemm-compile", gemm_compile),
    ];
    for (name, group) in groups {
        if bench.wants(name) {
            group(&mut bench)?;
        }
    }
    bench.finish();
    Ok(())
}

/// Factors and result of a shape.
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

    /// Measures the product as `form` sets it up, under the name `variant`.
    fn measure(&self, bench: &mut Bench, variant: &str, form: impl FnOnce(Gemm) -> Gemm) -> Result<()>
    where
        Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    {
        let [m, n, k] = self.shape;
        let plan = form(Gemm::new(m, n, k)).plan::<T>(&bench.gpu)?;
        let (size, dtype) = (format!("{m}x{n}x{k}"), T::DTYPE.to_string());
        let case = Case { op: "gemm", variant, dtype: &dtype, size, cost: plan.program().cost };
        bench.device(&case, |rec| plan.record(rec, &self.a, &self.b, &self.c));
        Ok(())
    }
}

/// Every variant on squares, and what is chosen for other shapes.
fn gemm(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for side in bench.scale(vec![256, 512, 1024, 2048, 4096], vec![256]) {
        let matrices = Matrices::new(&gpu, [side; 3], centred)?;
        for v in Gemm::variants() {
            // At 4096 the first takes a second a run.
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
        matrices.measure(bench, name, |gemm| gemm.trans_a(a).trans_b(b))?;
    }
    drop(matrices);
    if gpu.profile().features.f16 {
        let halves = Matrices::new(&gpu, [side; 3], |bits| f16::from_f32(centred(bits)))?;
        halves.measure(bench, "auto", |gemm| gemm)?;
    }
    Ok(())
}

/// Tile and thread tile.
type Tile = ([u32; 3], [u32; 2]);

/// Candidates for the policy of a card.
const TILES: [Tile; 16] = [
    ([128, 256, 8], [8, 16]),
    ([128, 256, 4], [8, 16]),
    ([256, 128, 8], [8, 16]),
    ([256, 128, 8], [16, 8]),
    ([128, 128, 8], [8, 8]),
    ([128, 128, 16], [8, 8]),
    ([128, 128, 8], [8, 16]),
    ([128, 128, 8], [16, 8]),
    ([128, 64, 8], [8, 8]),
    ([64, 128, 8], [8, 8]),
    ([128, 64, 16], [8, 8]),
    ([64, 64, 16], [8, 4]),
    ([64, 64, 16], [4, 8]),
    ([64, 64, 8], [8, 8]),
    ([64, 64, 16], [4, 4]),
    ([32, 32, 16], [4, 4]),
];

fn tiled(gemm: Gemm, ([m, n, k], [rows, columns]): Tile) -> Gemm {
    gemm.tile(m, n, k).thread_tile(rows, columns)
}

fn name(what: &str, ([m, n, k], [rows, columns]): Tile) -> String {
    format!("{what} {m}x{n}x{k}/{rows}x{columns}")
}

/// Tiles for `double` on squares, and what else a kernel with sums in registers leaves open.
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
        for tile in [TILES[0], TILES[4]] {
            let single = |g: Gemm| tiled(g.variant("register"), tile);
            matrices.measure(bench, &name("register", tile), single)?;
            matrices.measure(bench, &name("register rolled", tile), |g| single(g).unrolled(false))?;
            let double = |g: Gemm| tiled(g.variant("double"), tile);
            matrices.measure(bench, &name("double rolled", tile), |g| double(g).unrolled(false))?;
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
    let tiles = [TILES[0], TILES[4], TILES[8], TILES[11], TILES[15]];
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

/// How long the driver compiles a kernel with sums in registers that it has not seen: its activation is new.
fn gemm_compile(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for tile in bench.scale(TILES.to_vec(), vec![([16, 16, 4], [4, 4])]) {
        for activation in [Activation::None, Activation::Gelu] {
            let start = std::time::Instant::now();
            let op = tiled(Gemm::new(64, 64, 64).variant("double"), tile).activation(activation).beta(1.0);
            let plan = op.plan::<f32>(&gpu)?;
            let seconds = start.elapsed().as_secs_f64();
            println!("{} {}: planned in {:.0} ms", name("double", tile), activation.name(), 1e3 * seconds);
            drop(plan);
        }
    }
    Ok(())
}
