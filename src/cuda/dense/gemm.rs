//! The matrix product on CUDA: [`Gemm`] and [`GemmBatched`], with or without a bias, in one or mixed precision.
//!
//! Factors are f16, bf16 or f32. Tensor cores round f32 to tf32 ([`Precision::Tensor`]) or split it into two tf32
//! ([`Precision::Split`]). Sums are f32. If a leading dimension or stride is not a multiple of 16 bytes, copies use
//! chunks of 8 or 4 bytes or single elements, which is slower; `wgmma` first copies the whole factor.

use super::wgmma;
use crate::cuda::tile::{self, TileEnd, TileFactor, TileLines, Tiling, suits};
use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, ArgMemory, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::dense::{Activation, BatchLayout, Gemm, GemmBatched, Precision, Product, ProductTypes};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::When;
use half::{bf16, f16};

const VARIANTS: &[CudaVariant] = &[tile::FMA, tile::WMMA, tile::MMA, wgmma::VARIANT];

impl Gemm {
    /// Lists the CUDA variants, the same for a batch.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

/// A product being lowered.
pub(super) struct CudaProduct<'a> {
    pub(super) name: String,
    pub(super) product: &'a Product,
    /// The layouts of a, b and c.
    pub(super) layouts: [BatchLayout; 3],
    pub(super) types: ProductTypes,
    /// Where a and b are.
    pub(super) memory: [ArgMemory; 2],
}

/// What follows the sums of a product.
pub(super) struct ProductEnd {
    /// The kernel: file and entry point.
    pub(super) kernel: [&'static str; 2],
    pub(super) end: TileEnd,
    pub(super) bias: Arg,
    pub(super) c: Arg,
    /// The last arguments.
    pub(super) last: [Arg; 2],
}

impl CudaProduct<'_> {
    /// Returns the epilogue of a product of numbers.
    fn end(&self, kernel: [&'static str; 2]) -> ProductEnd {
        let product = self.product;
        let bias = usize::from(product.bias);
        let alpha = if product.has_product() { product.alpha } else { 0.0 };
        ProductEnd {
            kernel,
            end: TileEnd {
                result: self.types.result,
                bias: self.bias_kind(),
                read_c: product.beta != 0.0,
                activation: product.activation,
            },
            bias: if product.bias { Arg::Operand(2) } else { Arg::Null },
            c: Arg::Operand(2 + bias),
            last: [Arg::F32(alpha), Arg::F32(product.beta)],
        }
    }

    /// Returns 0 for no bias, 1 for one per column, 2 for one per row.
    fn bias_kind(&self) -> u32 {
        match (self.product.bias, self.product.row_bias) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        }
    }

    /// Returns the memory layout of `a` (0) or `b` (1).
    pub(super) fn lines(&self, of: usize, factor: TileFactor) -> TileLines {
        let BatchLayout { at, stride, .. } = self.layouts[of];
        let along_k = if of == 0 { !self.product.trans_a } else { self.product.trans_b };
        let size = factor.size();
        let aligned = |unit: &usize| {
            (at.ld * size).is_multiple_of(*unit)
                && (self.product.batch < 2 || (stride * size).is_multiple_of(*unit))
        };
        let unit = [16, 8, 4].into_iter().find(aligned).unwrap_or(size);
        let partial = !(at.cols * size).is_multiple_of(unit);
        TileLines { along_k, unit: unit as u32, partial }
    }

    /// Checks that kernels can count the extents.
    pub(super) fn check_extents(&self) -> Result<()> {
        let (name, &Product { m, n, k, .. }) = (&self.name, self.product);
        for (extent, value) in [("m", m), ("n", n), ("k", k)] {
            if value > i32::MAX as usize - 1024 {
                return Err(err!(
                    TooLarge,
                    "{name}: {extent} = {value} exceeds {}, the maximum extent of a kernel; split the work into smaller calls",
                    i32::MAX - 1024
                ));
            }
        }
        Ok(())
    }

    fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
        let (name, product) = (&self.name, self.product);
        if product.scalars {
            return Err(err!(
                Unsupported,
                "{name}: CUDA's kernels take alpha and beta from the plan; leave out `with_scalars`"
            ));
        }
        self.check_extents()?;
        let operands = product.operands(name, self.layouts, self.types)?;
        let factor = TileFactor::of(name, self.types.factors, product.precision)?;
        factor.check(name, profile)?;
        let policy = || match wgmma::suits(self, factor, profile) {
            Some(why) => ("wgmma", why),
            None => tile::policy(factor, profile),
        };
        let (variant, mut decision) = choose(product.op(), &product.variant, VARIANTS, profile, policy)?;
        match factor {
            TileFactor::Tf32 => decision.because("A and B are rounded to tf32"),
            TileFactor::Split => decision.because("each element of A and B is split into two tf32"),
            TileFactor::F16 | TileFactor::Bf16 | TileFactor::Single | TileFactor::Bytes => {}
        }
        if !product.has_product() {
            let zero = if product.k == 0 { "k" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and B are not read"));
        }
        let mut program = CudaProgram::new(product.op(), decision);
        program.cost = product.cost(self.layouts, self.types);
        program.operands = operands;
        if product.batch > 0 && self.layouts[2].span > 0 {
            match variant.name {
                "wgmma" => {
                    let end = self.end(["dense/gemm_wgmma", "gemm_wgmma"]);
                    wgmma::lower(self, &mut program, factor, &end, profile)?;
                }
                _ => {
                    let end = self.end(["dense/gemm_wmma", "gemm_wmma"]);
                    self.tiles(&mut program, factor, &end, profile)?;
                }
            }
        }
        Ok(program)
    }

    /// Returns the requested tiling, or the one that suits.
    fn tiling(
        &self,
        factor: TileFactor,
        a: TileLines,
        b: TileLines,
        profile: &CudaProfile,
    ) -> Result<(Tiling, String)> {
        let Some(tile) = self.product.tile else {
            let row = suits(factor, a, b, [self.product.m, self.product.n, self.product.batch], profile)?;
            return Ok((row.tiling, format!("tile {}, {}", row.tiling.describe(), row.measured)));
        };
        let [rows, columns] = self.product.thread.unwrap_or([tile.m.min(64), tile.n.min(64)]);
        let name = format!("{}: the tile {} x {} x {}", self.name, tile.m, tile.n, tile.k);
        if rows == 0 || columns == 0 || tile.m % rows != 0 || tile.n % columns != 0 {
            return Err(err!(
                InvalidArgument,
                "{name} is not a multiple of the {rows} x {columns} of a warp; use multiples"
            ));
        }
        let warps = [tile.m / rows, tile.n / columns];
        let of = |stages| Tiling { tile: [tile.m, tile.n, tile.k], warps, stages, resident: 1 };
        let max = if profile.runs(Arch::Sm80) { 4 } else { 2 };
        let tiling = (2..=max).rev().map(of).find(|t| t.wrong(factor, a, b, profile).is_none());
        if let Some(tiling) = tiling {
            return Ok((tiling, format!("tile {}, asked for", tiling.describe())));
        }
        let wrong = of(2).wrong(factor, a, b, profile).unwrap_or_default();
        Err(err!(InvalidArgument, "{name}: {wrong}"))
    }

    /// Adds the launches of tiles.
    pub(super) fn tiles(
        &self,
        program: &mut CudaProgram,
        factor: TileFactor,
        end: &ProductEnd,
        profile: &CudaProfile,
    ) -> Result<()> {
        let product = self.product;
        let (a, b) = (self.lines(0, factor), self.lines(1, factor));
        let (tiling, chosen) = self.tiling(factor, a, b, profile)?;
        program.decision.because(format_args!("{chosen}"));
        for (what, TileLines { unit, .. }) in [("A", a), ("B", b)] {
            if unit < 16 && self.product.has_product() {
                program.decision.because(format_args!("{what} is copied in chunks of {unit} bytes"));
            }
        }
        let [source, entry] = end.kernel;
        let kernel = tile::kernel(&self.name, program.variant(), factor, source, entry)?;
        let kernel = program.kernel(end.end.define(tiling.define(kernel, factor, a, b)));

        let tiles = tiling.blocks(product.m, product.n);
        let blocks = tiles
            .checked_mul(product.batch as u64)
            .ok_or_else(|| err!(TooLarge, "{}: too many tiles; use fewer products in one call", self.name))?;
        let max = i32::MAX as u64;
        for first in (0..blocks).step_by(max as usize) {
            let extents = [product.m, product.n, product.inner()].map(|x| Arg::U32(x as u32));
            let lds = self.layouts.map(|layout| Arg::U64(layout.at.ld as u64));
            let strides = self.layouts.map(|layout| Arg::U64(layout.stride as u64));
            let [from_a, from_b] = self.memory.map(Arg::from);
            let mut args = vec![from_a, from_b, end.bias.clone(), end.c.clone(), Arg::U64(first)];
            args.extend(extents.into_iter().chain(lds).chain(strides).chain(end.last.clone()));
            let grid = [(blocks - first).min(max) as u32, 1, 1];
            let shared = tiling.shared(factor, a, b);
            program.launches.push(Launch { shared, ..Launch::new(kernel, grid, tiling.threads(), args) });
        }
        Ok(())
    }
}

fn lower(product: &Product, types: ProductTypes, profile: &CudaProfile) -> Result<CudaProgram> {
    let name = product.name();
    let layouts = product.layouts(&name)?;
    let memory = [0, 1].map(ArgMemory::Operand);
    CudaProduct { name, product, layouts, types, memory }.lower(profile)
}

macro_rules! op {
    ($($op:ty: $($t:ty),*;)*) => {$($(
        impl CudaOp<$t> for $op {
            fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
                lower(&self.product, self.product.types(<$t>::DTYPE)?, profile)
            }
        }
    )*)*};
}
op!(Gemm: f32, f16, bf16; GemmBatched: f32, f16, bf16;);

/// Returns programs that together use every kernel of the device. Each takes a second to compile, so layouts, epilogues
/// and chunks vary together.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let mut types =
        vec![(ProductTypes::MIXED, Precision::Strict), (ProductTypes::all(DType::F16), Precision::Strict)];
    if profile.runs(Arch::Sm80) {
        types.push((ProductTypes::all(DType::Bf16), Precision::Strict));
        types.push((ProductTypes { factors: DType::Bf16, result: DType::F32 }, Precision::Strict));
        types.push((ProductTypes::all(DType::F32), Precision::Tensor));
        types.push((ProductTypes::all(DType::F32), Precision::Split));
    }
    let mut programs = Vec::new();
    let mut add = |variant: &str, i: usize, types: ProductTypes, precision: Precision| {
        let gemm = Gemm::new(32, 32, 64 - i % 2).variant(variant).precision(precision);
        let gemm =
            gemm.when(i % 2 == 1, |op| op.trans_a()).when(i % 4 > 1, |op| op.trans_b()).beta((i % 3) as f32);
        let gemm = gemm.activation(Activation::ALL[i % 5]).lda(64 + [0, 4, 2, 1][i % 4]);
        let biased = if i.is_multiple_of(4) { gemm.with_bias() } else { gemm.with_row_bias() };
        let product = Product { bias: !i.is_multiple_of(3), ..biased.product };
        programs.push(lower(&product, types, profile)?);
        Ok::<_, crate::Error>(())
    };
    let variants = [tile::WMMA, tile::MMA, wgmma::VARIANT];
    for (v, variant) in variants.iter().enumerate().filter(|(_, v)| profile.runs(v.arch)) {
        for (i, (types, precision)) in types.iter().enumerate() {
            add(variant.name, i + 3 * v, *types, *precision)?;
        }
    }
    add("fma", 0, ProductTypes::all(DType::F32), Precision::Strict)?;
    programs.push(lower(&Product::new(4096, 4096, 4096), ProductTypes::MIXED, profile)?);
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::dense::ProductTile;
    use crate::dense::ThreadTile;

    fn args(program: &CudaProgram) -> &[Arg] {
        &program.launches[0].args
    }

    fn defined(program: &CudaProgram, name: &str) -> Option<String> {
        let kernel = &program.kernels[0];
        kernel.defines.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    fn refusal<T: Element>(op: &impl CudaOp<T>, profile: &CudaProfile) -> (ErrorKind, String) {
        let e = op.lower(profile).unwrap_err();
        (e.kind(), e.to_string())
    }

    #[test]
    fn a_grid_covers_all_tiles_once() {
        for profile in [CudaProfile::sm(75), CudaProfile::sm(80), CudaProfile::h100()] {
            for program in samples(&profile).unwrap() {
                program.check(&profile).unwrap();
            }
            let batch = GemmBatched::new(5, 1000, 300, 77).with_row_bias();
            let program = CudaOp::<f16>::lower(&batch, &profile).unwrap();
            program.check(&profile).unwrap();
            let side = |name| defined(&program, name).unwrap().parse::<usize>().unwrap();
            let blocks = 5 * 1000usize.div_ceil(side("TILE_M")) * 300usize.div_ceil(side("TILE_N"));
            assert_eq!(program.launches[0].grid, [blocks as u32, 1, 1]);
            assert_eq!(args(&program)[2], Arg::Operand(2));
            assert_eq!(args(&program)[3], Arg::Operand(3));
        }
    }

    #[test]
    fn strides_determine_the_chunk_size() {
        let h100 = CudaProfile::h100();
        for (ld, unit) in [(64, "16"), (68, "8"), (66, "4"), (65, "2")] {
            let program = CudaOp::<f16>::lower(&Gemm::new(50, 50, 60).lda(ld), &h100).unwrap();
            assert_eq!(defined(&program, "UNIT_A").unwrap(), unit);
            assert_eq!(
                program.decision.why.contains("in chunks of"),
                unit != "16" || program.decision.why.contains("B is copied")
            );
        }
        let batch = GemmBatched::new(3, 8, 8, 64).strides(512 + 4, 512, 64);
        let program = CudaOp::<bf16>::lower(&batch, &h100).unwrap();
        assert_eq!(defined(&program, "UNIT_A").unwrap(), "8");
        for (k, partial) in [(61, "1"), (56, "0")] {
            let program = CudaOp::<f16>::lower(&Gemm::new(50, 50, k).lda(64), &h100).unwrap();
            assert_eq!(defined(&program, "PARTIAL_A").unwrap(), partial);
        }
        let single = Gemm::new(50, 50, 61).precision(Precision::Tensor);
        let program = CudaOp::<f32>::lower(&single, &h100).unwrap();
        assert_eq!(defined(&program, "UNIT_A").unwrap(), "4");
    }

    #[test]
    fn zero_factors_skip_reads_and_empty_results_skip_launches() {
        let h100 = CudaProfile::h100();
        for gemm in [Gemm::new(40, 50, 0), Gemm::new(40, 50, 60).alpha(0.0)] {
            let program = CudaOp::<f16>::lower(&gemm.beta(2.0), &h100).unwrap();
            assert!(program.decision.why.contains("A and B are not read"), "{}", program.decision.why);
            assert_eq!(args(&program)[7], Arg::U32(0));
            assert_eq!(defined(&program, "READ_C").unwrap(), "1");
        }
        for gemm in [Gemm::new(0, 50, 60), Gemm::new(50, 0, 60)] {
            assert!(CudaOp::<f16>::lower(&gemm, &h100).unwrap().launches.is_empty());
        }
        assert!(CudaOp::<f16>::lower(&GemmBatched::new(0, 5, 5, 5), &h100).unwrap().launches.is_empty());
    }

    #[test]
    fn unsupported_products_name_the_remedy() {
        let (t4, h100) = (CudaProfile::sm(75), CudaProfile::h100());
        let gemm = Gemm::new(64, 64, 64);
        for (variant, precision) in [("mma", Precision::Strict), ("fma", Precision::Tensor)] {
            let (kind, text) = refusal::<f32>(&gemm.clone().variant(variant).precision(precision), &h100);
            assert!(kind == ErrorKind::InvalidArgument && text.contains("use `auto`"), "{text}");
        }
        let (kind, text) = refusal::<f32>(&gemm.clone().precision(Precision::Tensor), &t4);
        assert!(kind == ErrorKind::Unsupported && text.contains("Precision::Strict"), "{text}");
        assert!(CudaOp::<f32>::lower(&gemm, &t4).is_ok_and(|program| program.variant() == "fma"));
        let (kind, text) = refusal::<bf16>(&gemm, &t4);
        assert!(kind == ErrorKind::Unsupported && text.contains("sm_75"), "{text}");
        let (kind, text) = refusal::<f16>(&gemm.clone().precision(Precision::Split), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("use Precision::Tensor"), "{text}");
        let volta = CudaProfile { compute: [7, 0], ..t4.clone() };
        let (kind, text) = refusal::<f16>(&gemm, &volta);
        assert!(
            kind == ErrorKind::Unsupported && text.contains("need sm_75") && text.contains("sm_70"),
            "{text}"
        );
        let (kind, text) = refusal::<f16>(&gemm.clone().variant("tiled"), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, fma, wmma"), "{text}");
        let (kind, text) = refusal::<f16>(&gemm.clone().variant("mma"), &t4);
        assert!(kind == ErrorKind::Unsupported && text.contains("Sm80"), "{text}");
        let (kind, text) = refusal::<f16>(&gemm.clone().lda(63), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("lda = 63"), "{text}");
        let (kind, text) = refusal::<f16>(&Gemm::new(1, 1 << 31, 1), &h100);
        assert!(kind == ErrorKind::TooLarge && text.contains("n = 2147483648"), "{text}");
        for tile in [[128, 128, 8], [24, 128, 32], [0, 128, 32], [256, 256, 256]] {
            let (kind, _) =
                refusal::<f16>(&gemm.clone().tile(ProductTile { m: tile[0], n: tile[1], k: tile[2] }), &h100);
            assert_eq!(kind, ErrorKind::InvalidArgument, "{tile:?}");
        }
        let asked =
            gemm.tile(ProductTile { m: 64, n: 128, k: 32 }).thread_tile(ThreadTile { rows: 32, columns: 64 });
        let program = CudaOp::<f16>::lower(&asked, &h100).unwrap();
        assert_eq!((program.launches[0].block, program.launches[0].grid), (128, [1, 1, 1]));
    }

    #[test]
    fn small_products_use_small_tiles() {
        let h100 = CudaProfile::h100();
        let tile = |side| {
            let program = CudaOp::<f16>::lower(&Gemm::new(side, side, side).variant("mma"), &h100).unwrap();
            [defined(&program, "TILE_M").unwrap(), defined(&program, "TILE_N").unwrap()]
        };
        assert_eq!(tile(4096), ["128", "256"]);
        assert_eq!(tile(2048), ["128", "256"]);
        assert_eq!(tile(1024), ["64", "128"]);
        assert_eq!(tile(512), ["64", "64"]);
    }
}
