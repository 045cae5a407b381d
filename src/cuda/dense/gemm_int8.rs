//! The product of bytes on CUDA's tensor cores: [`GemmInt8`], scaled or not.
//!
//! Tensor cores read bytes along k, in rows of whole 16-byte chunks. Any other factor is first copied so.

use super::gemm::{CudaProduct, ProductEnd};
use super::ways::{CudaEngine, CudaWay};
use super::wgmma::{self, WgmmaTiling};
use crate::cuda::tile::{self, TileEnd, TileFactor};
use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, ArgMemory, CudaOp, CudaProfile, CudaProgram, CudaVariant};
use crate::dense::{Activation, BatchLayout, Product, ProductTile, ProductTypes};
use crate::program::prelude::*;
use crate::quantize::{GemmInt8, Int8End};

const VARIANTS: &[CudaVariant] = &[tile::MMA, wgmma::VARIANT];

impl GemmInt8 {
    /// Lists the CUDA variants.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

fn lower(op: &GemmInt8, result: DType, profile: &CudaProfile) -> Result<CudaProgram> {
    let (name, end, factor) = (op.name(), op.end(result)?, TileFactor::Bytes);
    let operands = op.operands(end)?;
    factor.check(&name, profile)?;
    let mut product = Product {
        trans_b: op.trans_b,
        tile: op.tile.map(|[m, n, k]| ProductTile { m, n, k }),
        thread: op.thread,
        ..Product::new(op.m, op.n, op.k)
    };
    let layouts = product.layouts(&name)?;
    let types = ProductTypes { factors: DType::I8, result };
    let memory = [0, 1].map(ArgMemory::Operand);
    let given = CudaProduct { name, product: &product, layouts, types, memory };
    given.check_extents()?;
    let policy = || match suits_wgmma(&given, profile) {
        Some(why) => ("wgmma", why),
        None => tile::policy(factor, profile),
    };
    let (variant, decision) = choose(op.op(), &op.variant, VARIANTS, profile, policy)?;
    let mut program = CudaProgram::new(op.op(), decision);
    program.cost = Cost::of(2.0 * op.m as f64 * op.n as f64 * op.k as f64, &operands);
    program.operands = operands;
    if op.m == 0 || op.n == 0 {
        return Ok(program);
    }
    let packed = [0, 1].map(|which| pack(&given, &mut program, which));
    let [a, b] = packed;
    let (a, b) = (a?, b?);
    let CudaProduct { name, layouts: [.., c], .. } = given;
    product.trans_b = true;
    let (layouts, memory) = ([a.1, b.1, c], [a.0, b.0]);
    let ready = CudaProduct { name, product: &product, layouts, types, memory };
    match variant.name {
        "wgmma" => {
            let end = finish(end, &program, c, ["quantize/gemm_int8_wgmma", "gemm_int8_wgmma"]);
            if let Some(e) = wgmma::refusal(&ready, factor) {
                return Err(e);
            }
            let tiling = WgmmaTiling::of_bytes(op.n);
            let way = CudaWay::whole(CudaEngine::Warpgroups(tiling.clone()), op.k);
            wgmma::lower(&ready, &mut program, factor, (&tiling, &way), &end, profile)?;
        }
        _ => {
            let end = finish(end, &program, c, ["quantize/gemm_int8_mma", "gemm_int8_mma"]);
            let (a, b) = (ready.lines(0, factor), ready.lines(1, factor));
            let row = match ready.rows(factor, profile)?[..] {
                [row] => row,
                _ => tile::suits(factor, a, b, &ready.work(factor), profile)?,
            };
            let way = CudaWay::whole(CudaEngine::Tiles(row), op.k);
            ready.tiles(&mut program, factor, (&row, &way), &end)?;
        }
    }
    Ok(program)
}

/// Returns why warpgroup products are the fastest, if they are.
fn suits_wgmma(of: &CudaProduct<'_>, profile: &CudaProfile) -> Option<String> {
    let Product { m, n, k, .. } = *of.product;
    // On an H100 results of 1024 x 1024 are faster with the smaller tiles of `mma`, of 2048 x 2048 with these.
    let worth = of.product.tile.is_none() && m.min(n).min(k) >= 64 && m * n >= 3 << 19;
    (worth && profile.runs(Arch::Sm90a) && wgmma::refused(of).is_none())
        .then(|| "enough tiles for every multiprocessor".into())
}

/// Returns where a factor is and its layout, after a copy if tensor cores cannot read it as it is.
fn pack(of: &CudaProduct<'_>, program: &mut CudaProgram, which: usize) -> Result<(ArgMemory, BatchLayout)> {
    let (factor, k) = (TileFactor::Bytes, of.product.k);
    let lines = of.lines(which, factor);
    if k == 0 || lines.along_k && lines.unit == 16 {
        return Ok((of.memory[which], of.layouts[which]));
    }
    if let Some(why) = wgmma::refused(of) {
        return Err(err!(TooLarge, "{}: {why}; store rows along k, of a multiple of 16 bytes", of.name));
    }
    let why = if lines.along_k { "is copied into rows of whole 16-byte chunks" } else { "is transposed" };
    program.decision.because(format_args!("{} {why} first", ["A", "B"][which]));
    Ok(wgmma::packed(of, program, factor, which, true))
}

fn finish(end: Int8End, program: &CudaProgram, c_layout: BatchLayout, kernel: [&'static str; 2]) -> ProductEnd {
    let Int8End { result, scaled, bias, activation } = end;
    let given = |there: bool, at| if there { Arg::Operand(at) } else { Arg::Null };
    ProductEnd {
        kernel,
        end: TileEnd { result, bias: bias.into(), read_c: false, activation },
        bias: given(bias, 4),
        c: Arg::Operand(program.operands.len() - 1),
        c_layout,
        last: [given(scaled, 2), given(scaled, 3)],
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl CudaOp<$t> for GemmInt8 {
            fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
                lower(self, <$t>::DTYPE, profile)
            }
        }
    )*};
}
op!(i32, f32, f16);

/// Returns programs that together use every kernel of the device.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let mut programs = Vec::new();
    for variant in VARIANTS.iter().filter(|v| profile.runs(v.arch)) {
        let gemm = GemmInt8::new(32, 48, 64).variant(variant.name);
        programs.push(lower(&gemm.clone().trans_b(), DType::I32, profile)?);
        programs.push(lower(&GemmInt8::new(33, 300, 65).variant(variant.name), DType::I32, profile)?);
        let scaled = gemm.scaled().activation(Activation::Gelu);
        programs.push(lower(&scaled.clone().trans_b(), DType::F16, profile)?);
        programs.push(lower(&scaled.with_bias().trans_b(), DType::F32, profile)?);
    }
    Ok(programs)
}
