//! Packs the factors of a product on cooperative matrices.
//!
//! The kernel reads four elements at a time where the layout of a factor allows it, and else two or one. Where that
//! costs more than a copy, or elements are split, the factor is first copied to scratch as f16, in its storage order
//! and with rows of whole pieces.

use super::coop::{CoopForm, PIECE};
use super::job::ProductJob;
use super::layout::BatchLayout;
use super::{DenseLayout, Division, Precision, policy};
use crate::program::prelude::*;

kernel_params! {
    struct PackFactorParams {
        rows: u32,
        cols: u32,
        ld: u32,
        pieces: u32,
        pieces_of_row: u32,
        first_magnitude: u32,
    }
}

kernel_params! {
    /// Parameters of the kernels that find the magnitudes of rows and columns.
    struct ScaleParams {
        rows: u32,
        cols: u32,
        ld: u32,
        first_magnitude: u32,
        magnitudes: u32,
        tiles: u32,
        chunks: u32,
    }
}

/// Threads of a workgroup of both, as in the shaders.
const WORKGROUP_SIZE: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactorLoad {
    /// In place: 4, 2 or 1 elements of this type at a time.
    InPlace(u32, DType),
    /// From a copy in f16, made by a pass of its own.
    Packed,
}

impl FactorLoad {
    pub(super) fn of(job: &ProductJob<'_>, division: Division) -> [Self; 2] {
        let product = job.product;
        let place = |i: usize| {
            let BatchLayout { at, stride, .. } = job.layouts[i];
            let stride = if product.batch == 1 { 0 } else { stride };
            let fits = |unit: &usize| [at.ld, at.cols, stride].iter().all(|x| x.is_multiple_of(*unit));
            let unit = [4, 2].into_iter().find(fits).unwrap_or(1) as u32;
            let packs = product.precision == Precision::Split
                || !product.batched && product.packs.unwrap_or_else(|| policy::packing_pays(job, &division, i, unit));
            if packs { Self::Packed } else { Self::InPlace(unit, job.types.factors) }
        };
        let loads = [place(0), place(1)];
        // A row of a copy ends with zeros, which must meet zeros.
        let along_k = [!product.trans_a, product.trans_b];
        let pads = |(load, along_k)| load == Self::Packed && along_k;
        if loads.into_iter().zip(along_k).any(pads) && !product.k.is_multiple_of(4) {
            return [Self::Packed; 2];
        }
        loads
    }

    /// Elements of one load.
    pub(super) fn unit(self) -> u32 {
        if let Self::InPlace(unit, _) = self { unit } else { 4 }
    }

    /// The type of the elements in WGSL.
    pub(super) fn element(self) -> &'static str {
        if self.in_place(DType::F32) { "f32" } else { "f16" }
    }

    fn in_place(self, dtype: DType) -> bool {
        matches!(self, Self::InPlace(_, of) if of == dtype)
    }
}

struct StoredFactor {
    /// Its operand, and its name in texts.
    operand: usize,
    name: &'static str,
    at: DenseLayout,
    along_k: bool,
    /// The index of its first row's or column's magnitude among those of both.
    first_magnitude: u32,
}

/// Both factors as the kernel reads them.
pub(super) struct PackedFactors {
    /// A and B; if they are split, the high halves of both, the low ones, and the magnitudes.
    pub(super) bindings: Vec<Binding>,
    /// Elements from one stored row to the next.
    pub(super) lds: [u32; 2],
    /// Steps of k, padding included.
    pub(super) k: usize,
}

impl PackedFactors {
    /// Writes the passes that pack factors which the kernel of `form` does not read in place.
    pub(super) fn of(job: &ProductJob<'_>, program: &mut Program, form: &CoopForm) -> Result<Self> {
        let product = job.product;
        let [a, b] = [job.layouts[0].at, job.layouts[1].at];
        let (along_a, along_b, m) = (!product.trans_a, product.trans_b, product.m as u32);
        let factors = [
            StoredFactor { operand: 0, name: "a", at: a, along_k: along_a, first_magnitude: 0 },
            StoredFactor { operand: 1, name: "b", at: b, along_k: along_b, first_magnitude: m },
        ];
        // Zeros up to a whole load, where both factors are copies.
        let pads = form.loads == [FactorLoad::Packed; 2];
        let k = if pads { product.k.next_multiple_of(4) } else { product.k };

        let magnitudes = if form.split { Some(magnitudes(job, program, &factors)?) } else { None };
        let mut lds = [0; 2];
        let (mut bindings, mut low) = (Vec::with_capacity(8), Vec::new());
        for ((factor, load), to) in factors.iter().zip(form.loads).zip(&mut lds) {
            if load == FactorLoad::Packed {
                let (halves, ld) = pack(job, program, factor, k, magnitudes)?;
                bindings.push(halves[0]);
                low.extend_from_slice(&halves[1..]);
                *to = ld;
            } else {
                bindings.push(Binding::operand(factor.operand, &program.operands));
                *to = index_u32(job.name, "ld", factor.at.ld)?;
            }
        }
        bindings.extend(low);
        bindings.extend(magnitudes);
        Ok(Self { bindings, lds, k })
    }
}

/// Writes the passes that find the largest magnitude of each row of op(A) and column of op(B).
fn magnitudes(job: &ProductJob<'_>, program: &mut Program, factors: &[StoredFactor; 2]) -> Result<Binding> {
    const ACROSS: usize = 32;
    const DOWN: usize = WORKGROUP_SIZE as usize / ACROSS;
    const CHUNK: usize = 1024;
    let all = job.product.m.saturating_add(job.product.n);
    let count = index_u32(job.name, "the rows and columns to scale", all)?;
    let scratch = scratch(job, program, 4 * u64::from(count), || "the magnitudes of its rows and columns".into())?;
    let none = ScaleParams { magnitudes: count, ..bytemuck::Zeroable::zeroed() };
    let clear = program.kernel(Kernel::library("dense/gemm_scales", "gemm_scales_clear", Spec::new()));
    let grid = Grid::fold(u64::from(count).div_ceil(WORKGROUP_SIZE));
    program.dispatch(clear, &none, vec![scratch], grid);
    for factor in factors {
        let DenseLayout { rows, cols, ld } = factor.at;
        // Elements that share a scale run along k.
        let columns = !factor.along_k;
        let (chunks, lines) = if columns {
            (rows.div_ceil(CHUNK), cols.div_ceil(ACROSS))
        } else {
            (cols.div_ceil(CHUNK), rows.div_ceil(DOWN))
        };
        let params = ScaleParams {
            rows: rows as u32,
            cols: cols as u32,
            ld: index_u32(job.name, "ld", ld)?,
            first_magnitude: factor.first_magnitude,
            tiles: (chunks * lines) as u32,
            chunks: chunks as u32,
            ..none
        };
        let spec = Spec::new().flag("COLUMNS", columns);
        let kernel = program.kernel(Kernel::library("dense/gemm_scales", "gemm_scales", spec));
        let input = Binding::operand(factor.operand, &program.operands);
        program.dispatch(kernel, &params, vec![scratch, input], Grid::fold(u64::from(params.tiles)));
    }
    Ok(scratch)
}

/// Writes the pass that packs a factor for `k` steps. Returns the packed factor, or its high and low halves, and
/// the elements from one of its rows to the next.
fn pack(
    job: &ProductJob<'_>, program: &mut Program, factor: &StoredFactor, k: usize, magnitudes: Option<Binding>,
) -> Result<(Vec<Binding>, u32)> {
    let DenseLayout { rows, cols, ld } = factor.at;
    let (out_rows, out_cols) = if factor.along_k { (rows, k) } else { (k, cols) };
    let out_cols = out_cols.next_multiple_of(PIECE as usize);
    let bytes = 2 * (out_rows as u64).saturating_mul(out_cols as u64);
    let what = || format!("{} as f16", factor.name);
    let mut halves = vec![scratch(job, program, bytes, what)?];
    if magnitudes.is_some() {
        halves.push(scratch(job, program, bytes, what)?);
    }
    let pieces_of_row = out_cols / PIECE as usize;
    let params = PackFactorParams {
        rows: rows as u32,
        cols: cols as u32,
        ld: index_u32(job.name, "ld", ld)?,
        pieces: index_u32(job.name, "the loads of a factor", out_rows * pieces_of_row)?,
        pieces_of_row: pieces_of_row as u32,
        first_magnitude: factor.first_magnitude,
    };
    let f16 = job.types.factors == DType::F16;
    let mut spec = Spec::new()
        .alias("T", if f16 { "f16" } else { "f32" })
        .flag("VEC4S", factor.at.vec4s())
        .flag("LOW", magnitudes.is_some());
    if magnitudes.is_some() {
        spec = spec.flag("POWER_OF_COLUMN", !factor.along_k);
    }
    let kernel = program.kernel(Kernel::library("dense/gemm_pack", "gemm_pack", spec));
    let mut bindings = vec![Binding::operand(factor.operand, &program.operands)];
    bindings.extend(&halves);
    bindings.extend(magnitudes);
    let grid = Grid::fold(u64::from(params.pieces).div_ceil(WORKGROUP_SIZE));
    program.dispatch(kernel, &params, bindings, grid);
    Ok((halves, out_cols as u32))
}

/// Allocates scratch for a pass, which one binding must hold.
fn scratch(job: &ProductJob<'_>, program: &mut Program, bytes: u64, what: impl Fn() -> String) -> Result<Binding> {
    let limit = job.profile.limits.max_storage_binding;
    if bytes > limit {
        return Err(err!(
            TooLarge,
            "{}: {} needs {bytes} bytes of scratch, above the {limit} bytes of the largest storage binding of {}; \
             compute blocks of C in separate calls",
            job.name,
            what(),
            job.profile.name
        ));
    }
    Ok(program.scratch(round_up(bytes, 16)))
}

#[cfg(test)]
mod tests;
