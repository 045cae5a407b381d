//! The common part of all lowerings of a product: parameters, bindings, the epilogue, and dispatches of a bounded
//! time.

use super::layout::BatchLayout;
use super::{Product, ProductTile, ProductTypes, RowEnd, StoredTriangle};
use crate::program::prelude::*;
use std::ops::Range;

kernel_params! {
    /// Parameters of every kernel of a product or a batch.
    pub(crate) struct ProductParams {
        m: u32,
        n: u32,
        k: u32,
        lda: u32,
        ldb: u32,
        ldc: u32,
        first_tile: u32,
        tiles: u32,
        tiles_n: u32,
        first_k: u32,
        end_k: u32,
        slice_k: u32,
        slices: u32,
        alpha: f32,
        beta: f32,
        batch: u32,
        stride_a: u32,
        stride_b: u32,
        stride_c: u32,
    }
}

impl ProductParams {
    /// Parameters of one product without strides, over all of k.
    pub(crate) fn of([m, n, k]: [usize; 3], [lda, ldb, ldc]: [u32; 3], tiles_n: u32) -> Self {
        Self {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            lda,
            ldb,
            ldc,
            tiles_n,
            end_k: k as u32,
            slices: 1,
            alpha: 1.0,
            batch: 1,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    /// The same parameters for the tiles of a dispatch.
    pub(crate) fn of_chunk(self, Range { start, end }: Range<u64>) -> Self {
        Self { first_tile: start as u32, tiles: (end - start) as u32, ..self }
    }
}

/// The workgroups of a dispatch, and the elements of C that each computes.
#[derive(Clone, Copy)]
pub(super) struct Workgroups {
    pub(super) count: u64,
    pub(super) elements: u64,
}

#[derive(Clone, Copy)]
pub(super) struct ProductJob<'a> {
    pub(super) product: &'a Product,
    /// The product, for error texts.
    pub(super) name: &'a str,
    pub(super) layouts: [BatchLayout; 3],
    pub(super) types: ProductTypes,
    pub(super) profile: &'a DeviceProfile,
}

impl ProductJob<'_> {
    pub(super) fn bindings(&self, program: &Program, first: usize) -> Vec<Binding> {
        let operands = &program.operands;
        (first..operands.len()).map(|i| Binding::operand(i, operands)).collect()
    }

    /// Says if a, b or c is bound as vec4s.
    pub(super) fn vec4s(&self, operand: usize) -> bool {
        // Rows of a triangle end anywhere.
        (operand < 2 || self.product.triangle.is_none()) && self.product.vec4s(self.layouts[operand])
    }

    /// Says if dispatches take slices of k.
    pub(super) fn is_sliced(&self) -> bool {
        self.product.k > slice_k(self.profile)
    }

    pub(super) fn type_spec(&self) -> Spec {
        let f16 = self.types.factors == DType::F16;
        Spec::new().alias("T", if f16 { "f16" } else { "f32" }).flag("F16", f16)
    }

    /// The spec of a kernel that ends in C. Its scalars, bias or C are bound at `next`, then come the others of them
    /// and, with `carry`, the carried sums.
    pub(super) fn end_spec(&self, next: u32, carry: bool) -> Spec {
        let product = self.product;
        let bias = next + u32::from(product.scalars);
        let rows = bias + u32::from(product.bias);
        let (weights, slopes) = (product.row_end == Some(RowEnd::Weights), product.row_end == Some(RowEnd::Slopes));
        let c = rows + u32::from(weights) + 2 * u32::from(slopes);
        let spec = self
            .type_spec()
            .alias("R", if self.types.result == DType::F16 { "f16" } else { "f32" })
            .flag("BIAS", product.bias)
            .flag("ROW_BIAS", product.bias && product.row_bias)
            .flag("CARRY", carry)
            .flag("READ_C", product.beta != 0.0)
            .constant("BIAS_BINDING", bias)
            .constant("C_BINDING", c)
            .constant("PARTIAL_BINDING", c + 1)
            .slot("activation", Fragment::Library(product.activation.fragment()));
        let spec = match product.triangle {
            Some(StoredTriangle::Lower) => spec.flag("LOWER", true),
            Some(StoredTriangle::Upper) => spec.flag("UPPER", true),
            None => spec,
        };
        let spec = match weights || slopes {
            true => spec.flag("WEIGHTS", weights).flag("SLOPES", slopes).constant("ROWS_BINDING", rows),
            false => spec,
        };
        let spec = if slopes { spec.constant("WEIGHTS_BINDING", rows + 1) } else { spec };
        let spec = if product.batched { spec.flag("BATCHED", true) } else { spec };
        if product.scalars { spec.flag("SCALARS", true).constant("SCALARS_BINDING", next) } else { spec }
    }

    /// The parameters of all dispatches over `k` in a grid of `tile`.
    pub(super) fn params(&self, k: usize, tile: ProductTile) -> Result<ProductParams> {
        let Product { m, n, batch, alpha, beta, .. } = *self.product;
        let name = self.name;
        let ld = |i: usize, what| index_u32(name, what, self.layouts[i].at.ld);
        tiles(name, "m", m, tile.m)?;
        tiles(name, "k", k, tile.k)?;
        let lds = [ld(0, "lda")?, ld(1, "ldb")?, ld(2, "ldc")?];
        // A stride that no kernel uses need not fit an index.
        let stride = |BatchLayout { span, stride, .. }| if batch > 1 && span > 0 { stride as u32 } else { 0 };
        let [stride_a, stride_b, stride_c] = self.layouts.map(stride);
        let tiles_n = tiles(name, "n", n, tile.n)?;
        Ok(ProductParams {
            alpha: if k > 0 { alpha } else { 0.0 },
            beta,
            batch: batch as u32,
            stride_a,
            stride_b,
            stride_c,
            ..ProductParams::of([m, n, k], lds, tiles_n)
        })
    }

    pub(super) fn tiles(&self, tile: ProductTile) -> Workgroups {
        let Product { batch, m, n, .. } = *self.product;
        let [m, n] = [m.div_ceil(tile.m as usize), n.div_ceil(tile.n as usize)];
        // The count fits: there are no more tiles than elements of C.
        Workgroups { count: (batch * m) as u64 * n as u64, elements: tile.elements() }
    }

    /// Dispatches a kernel over all workgroups, in chunks that take a bounded time.
    pub(super) fn dispatch(
        &self, program: &mut Program, kernel: usize, params: &ProductParams, bindings: &[Binding],
        workgroups: Workgroups,
    ) -> Result<()> {
        let steps = if params.slice_k > 0 { params.slice_k } else { params.end_k - params.first_k };
        let flop = 2 * workgroups.elements * u64::from(steps.max(1));
        dispatch_chunks(program, kernel, bindings, workgroups.count, flop, self.profile, |chunk| params.of_chunk(chunk))
    }

    /// Dispatches a kernel that reads all operands over all tiles: once, or for each slice of k with carried sums.
    pub(super) fn multiply(
        &self, program: &mut Program, kernel: usize, tile: ProductTile, workgroups: Workgroups,
    ) -> Result<()> {
        let (k, slice) = (self.product.k, slice_k(self.profile));
        let params = self.params(k, tile)?;
        let mut bindings = self.bindings(program, 0);
        if self.is_sliced() {
            bindings.push(program.scratch(self.sums_bytes(self.product.batch)?));
        }
        for first_k in (0..k).step_by(slice) {
            let end_k = k.min(first_k + slice);
            let params = ProductParams { first_k: first_k as u32, end_k: end_k as u32, ..params };
            self.dispatch(program, kernel, &params, &bindings, workgroups)?;
        }
        Ok(())
    }

    /// Bytes of m x n sums in f32 for each of `slices` slices or products: each twice an f16 C.
    pub(super) fn sums_bytes(&self, slices: usize) -> Result<u64> {
        let Product { m, n, .. } = *self.product;
        let bytes = 4 * (m as u64).saturating_mul(n as u64).saturating_mul(slices as u64);
        let limit = self.profile.limits.max_storage_binding;
        if bytes <= limit {
            return Ok(bytes);
        }
        Err(err!(
            TooLarge,
            "{}: the sums of its slices of k need {bytes} bytes of scratch, above the {limit} bytes of the largest \
             storage binding of {}; compute blocks of C in separate calls",
            self.name,
            self.profile.name
        ))
    }
}

/// The longest slice of k in one dispatch. A thread walks through it alone; on a GPU that takes at worst about a
/// microsecond for a tile of 16, some 0.1 s in all.
pub(super) fn slice_k(profile: &DeviceProfile) -> usize {
    // Tiles take up to 6 rounds for each step of k (a coarsened tile of 1 x 4 x 64 is the worst).
    profile.loop_steps(6, 1 << 20) as usize
}

/// The maximum flop of one dispatch: a fraction of a second; watchdogs wait for two or more.
pub(crate) fn dispatch_flop(class: DeviceClass) -> u64 {
    match class {
        DeviceClass::Discrete => 1 << 38,
        DeviceClass::Integrated => 1 << 35,
        DeviceClass::Virtual | DeviceClass::Cpu | DeviceClass::Unknown => 1 << 33,
    }
}

/// Dispatches `count` workgroups of `flop` each, in chunks that take a bounded time, with `params` of each chunk.
pub(crate) fn dispatch_chunks<P: KernelParams>(
    program: &mut Program, kernel: usize, bindings: &[Binding], count: u64, flop: u64, profile: &DeviceProfile,
    params: impl Fn(Range<u64>) -> P,
) -> Result<()> {
    // At most 2^31 workgroups: the index of one in a folded grid stays below 2^32.
    let most = (dispatch_flop(profile.class) / flop.max(1)).clamp(1, 1 << 31);
    for chunk in program.chunks(count, most)? {
        let grid = Grid::fold(chunk.end - chunk.start);
        program.dispatch(kernel, &params(chunk), bindings.to_vec(), grid);
    }
    Ok(())
}

/// Counts the tiles of `side` along an extent. A kernel counts to the end of the last one, which must fit an index.
pub(crate) fn tiles(name: &str, what: &str, extent: usize, side: u32) -> Result<u32> {
    let end = round_up(extent as u64, u64::from(side));
    if end > u64::from(u32::MAX) {
        return Err(err!(
            TooLarge,
            "{name}: {what} = {extent} is {end} in whole tiles of {side}, above 2^32 - 1, the largest index of a \
             kernel; split the work into smaller calls"
        ));
    }
    Ok((end / u64::from(side)) as u32)
}

#[cfg(test)]
mod tests;
