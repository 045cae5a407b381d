//! The matrix product on CUDA: [`Gemm`] and [`GemmBatched`], with or without a bias, in one or mixed precision.
//!
//! Factors are f16, bf16 or f32. Tensor cores round f32 to tf32 ([`Precision::Tensor`]) or split it into two tf32
//! ([`Precision::Split`]). Sums are f32. If a leading dimension or stride is not a multiple of 16 bytes, either chunks
//! of 8 or 4 bytes or single elements are copied, which is slower, or the whole factor is first copied into aligned
//! rows. Where there are fewer tiles than the device holds, k is cut into slices; a second kernel adds their sums in
//! their order.

use super::narrow;
use super::ways::{self, CudaEngine, CudaWay};
use super::wgmma;
use crate::cuda::tile::{self, TileEnd, TileFactor, TileLines, TileRow, TileWork, Tiling};
use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, ArgMemory, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::dense::{Activation, BatchLayout, DenseLayout, Gemm, GemmBatched, Precision, Product, ProductTypes};
use crate::program::prelude::*;
use half::{bf16, f16};

/// Threads beyond which each adds all slices of its vec4.
const SLICE_THREADS: usize = 1 << 16;

const VARIANTS: &[CudaVariant] = &[tile::FMA, tile::WMMA, tile::MMA, wgmma::VARIANT, narrow::VARIANT];

impl Gemm {
    /// Lists the CUDA variants, the same for a batch.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

pub(super) struct CudaProduct<'a> {
    pub(super) name: String,
    pub(super) product: &'a Product,
    pub(super) layouts: [BatchLayout; 3],
    pub(super) types: ProductTypes,
    pub(super) memory: [ArgMemory; 2],
}

/// What follows the sums of a product.
pub(super) struct ProductEnd {
    /// The kernel: file and entry point.
    pub(super) kernel: [&'static str; 2],
    pub(super) end: TileEnd,
    pub(super) bias: Arg,
    pub(super) c: Arg,
    pub(super) c_layout: BatchLayout,
    pub(super) last: [Arg; 2],
}

impl CudaProduct<'_> {
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
            c_layout: self.layouts[2],
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
            // A single row starts where the operand does.
            (at.rows == 1 || (at.ld * size).is_multiple_of(*unit))
                && (self.product.batch < 2 || (stride * size).is_multiple_of(*unit))
        };
        let unit = [16, 8, 4].into_iter().find(aligned).unwrap_or(size);
        let partial = !(at.cols * size).is_multiple_of(unit);
        TileLines { along_k, unit: unit as u32, partial }
    }

    pub(super) fn packed_lines(&self, of: usize, factor: TileFactor) -> TileLines {
        let partial = !(self.layouts[of].at.cols * factor.size()).is_multiple_of(16);
        TileLines { unit: 16, partial, ..self.lines(of, factor) }
    }

    pub(super) fn work(&self, factor: TileFactor) -> TileWork {
        let Product { m, n, batch, beta, .. } = *self.product;
        let k = self.product.inner();
        let elements = |which: usize, rows: usize| {
            let products = if self.layouts[which].stride == 0 { 1 } else { batch };
            (rows * k * products * factor.size()) as f64
        };
        let c = (m * n * batch * self.types.result.size()) as f64 * if beta == 0.0 { 1.0 } else { 2.0 };
        TileWork { m, n, k, products: batch, bytes: elements(0, m) + elements(1, n) + c }
    }

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
        if product.variant == wgmma::VARIANT.name {
            tile::check_factor(name, wgmma::VARIANT.name, factor)?;
            if let Some(e) = wgmma::refusal(self, factor) {
                return Err(e);
            }
        }
        let rows = self.rows(factor, profile)?;
        let of = |variant: &str| {
            ways::fastest(self, factor, &rows, variant, profile)
                .ok_or_else(|| err!(Unsupported, "{name}: no tile fits {}; plan it on a `Gpu`", profile.name))
        };
        let best = of("auto")?;
        let (tiles, why) = tile::policy(factor, profile);
        let policy = || match best.engine {
            CudaEngine::Tiles(_) => (tiles, why),
            CudaEngine::Warpgroups(_) | CudaEngine::Narrow(_) => {
                (best.variant(tiles), format!("{:.1} us predicted, the fastest", best.seconds * 1e6))
            }
        };
        let (variant, mut decision) = choose(product.op(), &product.variant, VARIANTS, profile, policy)?;
        let way = match variant.name {
            name if name == best.variant(tiles) => best.clone(),
            "narrow" => match ways::fastest(self, factor, &rows, "narrow", profile) {
                Some(way) => way,
                None => return Err(narrow::refusal(self)),
            },
            name => of(name)?,
        };
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
            self.add_launches(&mut program, factor, &way, profile)?;
        }
        Ok(program)
    }

    /// Adds the launches of a way: copies of factors, the product, and the addition of its slices.
    fn add_launches(
        &self, program: &mut CudaProgram, factor: TileFactor, way: &CudaWay, profile: &CudaProfile,
    ) -> Result<()> {
        let product = self.product;
        let (mut layouts, mut memory) = (self.layouts, self.memory);
        for which in 0..2 {
            if way.packs[which] {
                program.decision.because(format_args!("{} is copied into aligned rows first", ["A", "B"][which]));
                (memory[which], layouts[which]) = wgmma::packed(self, program, factor, which, false);
            }
        }
        let of = CudaProduct { name: self.name.clone(), product, layouts, types: self.types, memory };
        let kernel = match way.engine {
            CudaEngine::Tiles(_) => ["dense/gemm_wmma", "gemm_wmma"],
            CudaEngine::Warpgroups(_) => ["dense/gemm_wgmma", "gemm_wgmma"],
            CudaEngine::Narrow(_) => ["dense/gemm_narrow", "gemm_narrow"],
        };
        let end = of.end(kernel);
        let sums = (way.slices > 1).then(|| of.sums(program, kernel, way.slices));
        let to = sums.as_ref().unwrap_or(&end);
        match &way.engine {
            CudaEngine::Tiles(row) => of.tiles(program, factor, (row, way), to)?,
            CudaEngine::Warpgroups(tiling) => wgmma::lower(&of, program, factor, (tiling, way), to, profile)?,
            CudaEngine::Narrow(tiling) => narrow::lower(&of, program, factor, (*tiling, way), to),
        }
        if let Some(sums) = sums {
            program.decision.because(format_args!("k in {} slices of {}", way.slices, way.slice_k));
            of.add_slices(program, way.slices, &sums, &end);
        }
        Ok(())
    }

    /// Returns the end of a product whose slices are summed later: plain sums in scratch.
    fn sums(&self, program: &mut CudaProgram, kernel: [&'static str; 2], slices: usize) -> ProductEnd {
        let Product { m, n, batch, .. } = *self.product;
        let at = DenseLayout { rows: m, cols: n, ld: n.next_multiple_of(4) };
        let scratch = program.scratch((4 * m * at.ld * slices * batch) as u64);
        ProductEnd {
            kernel,
            end: TileEnd { result: DType::F32, bias: 0, read_c: false, activation: Activation::None },
            bias: Arg::Null,
            c: Arg::Scratch(scratch),
            c_layout: BatchLayout { at, span: m * at.ld, stride: m * at.ld },
            last: [Arg::F32(1.0), Arg::F32(0.0)],
        }
    }

    fn add_slices(&self, program: &mut CudaProgram, slices: usize, sums: &ProductEnd, end: &ProductEnd) {
        let Product { m, n, batch, .. } = *self.product;
        let arch = if self.types.result == DType::Bf16 { Arch::Sm80 } else { Arch::Sm75 };
        let kernel = CudaKernel::new("dense/gemm_slices", "gemm_slices", arch);
        let kernel = program.kernel(end.end.define(kernel));
        let vec4s = sums.c_layout.at.ld / 4;
        // Where there are few vec4s, several threads share one, up to one for four slices.
        let mut groups = 1;
        while groups < 16 && 8 * groups <= slices && m * vec4s * batch * groups < SLICE_THREADS {
            groups *= 2;
        }
        let mut args = vec![sums.c.clone(), end.bias.clone(), end.c.clone()];
        args.extend([slices, groups, batch, m, n, vec4s].map(|x| Arg::U32(x as u32)));
        args.extend([end.c_layout.at.ld, end.c_layout.stride].map(|x| Arg::U64(x as u64)));
        args.extend(end.last.clone());
        let blocks = (m * vec4s).div_ceil(256 / groups) as u32;
        program.launches.push(Launch::new(kernel, [blocks, batch as u32, 1], 256, args));
    }

    pub(super) fn rows(&self, factor: TileFactor, profile: &CudaProfile) -> Result<Vec<TileRow>> {
        let (a, b) = (self.lines(0, factor), self.lines(1, factor));
        let Some(tile) = self.product.tile else { return Ok(tile::rows(factor, profile).to_vec()) };
        if self.product.variant == wgmma::VARIANT.name {
            return Ok(Vec::new());
        }
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
            return Ok(vec![TileRow::asked(tiling)]);
        }
        let wrong = of(2).wrong(factor, a, b, profile).unwrap_or_default();
        Err(err!(InvalidArgument, "{name}: {wrong}"))
    }

    pub(super) fn tiles(
        &self, program: &mut CudaProgram, factor: TileFactor, (row, way): (&TileRow, &CudaWay), end: &ProductEnd,
    ) -> Result<()> {
        let product = self.product;
        let (a, b) = (self.lines(0, factor), self.lines(1, factor));
        let tiling = row.tiling;
        program.decision.because(format_args!("tile {}, {}", tiling.describe(), row.measured));
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
            .checked_mul(product.batch as u64 * way.slices as u64)
            .ok_or_else(|| err!(TooLarge, "{}: too many tiles; use fewer products in one call", self.name))?;
        let max = i32::MAX as u64;
        for first in (0..blocks).step_by(max as usize) {
            let extents = [product.m, product.n, product.inner()].map(|x| Arg::U32(x as u32));
            let layouts = [self.layouts[0], self.layouts[1], end.c_layout];
            let lds = layouts.map(|layout| Arg::U64(layout.at.ld as u64));
            let strides = layouts.map(|layout| Arg::U64(layout.stride as u64));
            let slices = [way.slices, way.slice_k].map(|x| Arg::U32(x as u32));
            let [from_a, from_b] = self.memory.map(Arg::from);
            let mut args = vec![from_a, from_b, end.bias.clone(), end.c.clone(), Arg::U64(first)];
            args.extend(extents.into_iter().chain(lds).chain(strides).chain(slices).chain(end.last.clone()));
            let grid = [(blocks - first).min(max) as u32, 1, 1];
            let shared = tiling.shared(factor, a, b);
            program.launches.push(Launch { shared, ..Launch::new(kernel, grid, tiling.threads(), args) });
        }
        Ok(())
    }
}

fn lower(product: &Product, types: ProductTypes, profile: &CudaProfile) -> Result<CudaProgram> {
    let name = product.name();
    let mut layouts = product.layouts(&name)?;
    let memory = [0, 1].map(ArgMemory::Operand);
    let mut product = product.clone();
    // A column without gaps is a row along k.
    let is_column = |layout: &BatchLayout| layout.at.cols == 1 && layout.at.ld == 1;
    let turned = |layout: BatchLayout| {
        let at = DenseLayout { rows: 1, cols: layout.at.rows, ld: layout.at.rows };
        BatchLayout { at, ..layout }
    };
    if product.trans_a && is_column(&layouts[0]) {
        (product.trans_a, layouts[0]) = (false, turned(layouts[0]));
    }
    if !product.trans_b && is_column(&layouts[1]) {
        (product.trans_b, layouts[1]) = (true, turned(layouts[1]));
    }
    CudaProduct { name, product: &product, layouts, types, memory }.lower(profile)
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
    let mut types = vec![(ProductTypes::MIXED, Precision::Strict), (ProductTypes::all(DType::F16), Precision::Strict)];
    if profile.runs(Arch::Sm80) {
        types.push((ProductTypes::all(DType::Bf16), Precision::Strict));
        types.push((ProductTypes { factors: DType::Bf16, result: DType::F32 }, Precision::Strict));
        types.push((ProductTypes::all(DType::F32), Precision::Tensor));
        types.push((ProductTypes::all(DType::F32), Precision::Split));
    }
    let mut programs = Vec::new();
    let mut add = |variant: &str, i: usize, types: ProductTypes, precision: Precision| {
        let gemm = Gemm::new(32, 32, 64 - i % 2).variant(variant).precision(precision);
        let gemm = gemm.when(i % 2 == 1, |op| op.trans_a()).when(i % 4 > 1, |op| op.trans_b()).beta((i % 3) as f32);
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
    for (i, types) in types.iter().filter(|(types, _)| types.factors != DType::F32).enumerate() {
        let gemm = if i % 2 == 0 { Gemm::new(3, 32, 2000) } else { Gemm::new(32, 2, 2000).trans_b() };
        programs.push(lower(&gemm.variant("narrow").beta((i % 3) as f32).product, types.0, profile)?);
    }
    // Large tiles, and clusters of them.
    for side in [4096, 3000] {
        programs.push(lower(&Product::new(side, side, side), ProductTypes::MIXED, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
