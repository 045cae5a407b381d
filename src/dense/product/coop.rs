//! The product on cooperative matrices: specialises `shaders/dense/gemm_coop.wgsl`, counts its resources and writes
//! the dispatches.

use super::division::{Division, ProductTile};
use super::job::{ProductJob, ProductParams, slice_k};
use super::layout::BatchLayout;
use super::packing::{FactorLoad, PackedFactors};
use super::split_k::Slabs;
use super::{Precision, Product, policy};
use crate::dense::Activation;
use crate::program::prelude::*;

/// How sums reach C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoopEnd {
    /// Blocks are stored directly: C is made of whole ones.
    Whole,
    /// As `Whole`, but tiles at the edges of C end as `Staged`.
    Direct,
    /// Through workgroup memory, where threads reach single elements.
    Staged,
}

/// The constants that the kernel is specialised to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoopForm {
    pub(super) tile: ProductTile,
    /// Rows and columns of C that one subgroup computes.
    pub(super) part: [u32; 2],
    /// Rows and columns of a cooperative matrix: 16 or 8.
    pub(super) side: u32,
    /// Threads of a subgroup.
    pub(super) lanes: u32,
    pub(super) trans_a: bool,
    pub(super) trans_b: bool,
    /// The factors come as high and low halves.
    pub(super) split: bool,
    /// Each step of k has sums of its own.
    pub(super) fresh: bool,
    pub(super) loads: [FactorLoad; 2],
    pub(super) one_step: bool,
    /// Slices of k, each computed by workgroups of its own; the sums of several go to slabs of scratch.
    pub(super) slices: usize,
    pub(super) end: CoopEnd,
}

/// Elements that a thread moves to workgroup memory together, as in the shader.
pub(super) const PIECE: u32 = 8;

/// Padding of a row in workgroup memory, in elements, as in the shader.
const PAD: u32 = 8;

impl CoopForm {
    pub(super) fn new(job: &ProductJob<'_>, division: Division, slices: usize) -> Self {
        let (product, profile) = (job.product, job.profile);
        let Product { m, n, k, alpha, beta, activation, bias, .. } = *product;
        let side = profile.cooperative_side().unwrap_or(16);
        let split = product.precision == Precision::Split;
        let as_it_is = alpha == 1.0 && beta == 0.0 && activation == Activation::None && !bias;
        let to_c = as_it_is && job.types.result == DType::F32 && !job.is_sliced();
        // Rows of a block that is stored are 16-byte aligned.
        let BatchLayout { at, stride, .. } = job.layouts[2];
        let aligned = at.ld.is_multiple_of(4) && (product.batch == 1 || stride.is_multiple_of(4));
        let direct = !split && if slices > 1 { n.is_multiple_of(4) } else { to_c && aligned };
        let whole = [m, n].iter().all(|x| x.is_multiple_of(side as usize));
        Self {
            tile: division.tile,
            part: division.thread,
            side,
            lanes: profile.subgroup_sizes.0,
            trans_a: product.trans_a,
            trans_b: product.trans_b,
            split,
            fresh: product.fresh_sums,
            loads: FactorLoad::of(job, division),
            one_step: k <= division.tile.k as usize,
            slices,
            end: match (direct, whole) {
                (true, true) => CoopEnd::Whole,
                (true, false) => CoopEnd::Direct,
                (false, _) => CoopEnd::Staged,
            },
        }
    }

    /// Takes the requested division, or one that suits.
    pub(super) fn check(job: &ProductJob<'_>) -> Result<(Self, Division)> {
        let (product, profile) = (job.product, job.profile);
        let suits = policy::fastest("coop", job).division;
        let division = match product.batched {
            true => suits,
            false => product.division(suits, |tile| [tile.m.min(64), tile.n.min(64)]),
        };
        let form = Self::new(job, division, 1);
        let name = || format!("{} of `coop`", division.text(job.name));
        if let Some(wrong) = form.wrong() {
            return Err(err!(InvalidArgument, "{}: {wrong}", name()));
        }
        let form = Self::new(job, division, policy::sliced("coop", &division, job).slices);
        let limits = &profile.limits;
        let most = limits.max_invocations.min(limits.max_workgroup_size[0]);
        let (threads, bytes) = (form.threads(), form.workgroup_bytes());
        if threads > most.into() || bytes > limits.max_workgroup_bytes.into() {
            return Err(err!(
                TooLarge,
                "{} needs {threads} threads and {bytes} bytes of workgroup memory; {} allows {most} and {}; \
                 take smaller sides",
                name(),
                profile.name,
                limits.max_workgroup_bytes
            ));
        }
        Ok((form, division))
    }

    /// Says if the sides are valid and the device has the threads and the workgroup memory.
    pub(super) fn fits(&self, profile: &DeviceProfile) -> bool {
        self.wrong().is_none()
            && self.threads() <= profile.limits.max_invocations.into()
            && self.workgroup_bytes() <= profile.limits.max_workgroup_bytes.into()
    }

    /// Writes the product: packs factors where needed, then multiplies slices of k.
    pub(super) fn lower(&self, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        let (product, tile) = (job.product, self.tile);
        let packed = PackedFactors::of(job, program, self)?;
        let [lda, ldb] = packed.lds;
        let (k, mut bindings) = (packed.k, packed.bindings);
        let params = ProductParams { lda, ldb, ..job.params(k, tile)? };
        if self.slices > 1 {
            let slabs = Slabs::new(job, program, k, tile, self.slices)?;
            let spec = slabs.spec(job).constant("PARTIAL_BINDING", 1 + bindings.len() as u32);
            let kernel = program.kernel(self.kernel(spec));
            bindings.push(slabs.sums);
            slabs.multiply(job, program, kernel, params, &bindings, tile)?;
            return slabs.add(job, program);
        }
        // Slices of about equal length, each at least one step.
        let slices = product.k.div_ceil(slice_k(job.profile));
        let slice = k.div_ceil(slices).next_multiple_of(tile.k as usize);
        let spec = job.end_spec(1 + bindings.len() as u32, job.is_sliced());
        let direct = self.end != CoopEnd::Staged;
        let kernel = program.kernel(self.kernel(spec.flag("VEC_C", !direct && job.vec4s(2))));
        bindings.extend(job.bindings(program, 2));
        if job.is_sliced() {
            bindings.push(program.scratch(job.sums_bytes(product.batch)?));
        }
        for first_k in (0..k).step_by(slice) {
            let end_k = k.min(first_k + slice);
            let params = ProductParams { first_k: first_k as u32, end_k: end_k as u32, ..params };
            job.dispatch(program, kernel, &params, &bindings, job.tiles(tile))?;
        }
        Ok(())
    }

    /// Subgroups of a workgroup along the rows and along the columns of the tile.
    fn teams(&self) -> [u32; 2] {
        [self.tile.m / self.part[0], self.tile.n / self.part[1]]
    }

    pub(super) fn threads(&self) -> u64 {
        self.teams().into_iter().map(u64::from).product::<u64>() * u64::from(self.lanes)
    }

    pub(super) fn workgroup_bytes(&self) -> u64 {
        let ProductTile { m, n, k } = self.tile;
        // Rows of the tile in storage order, and their elements.
        let (rows_a, across_a) = if self.trans_a { (k, m) } else { (m, k) };
        let (rows_b, across_b) = if self.trans_b { (n, k) } else { (k, n) };
        let elements = |rows: u32, across: u32| u64::from(rows) * (u64::from(across) + u64::from(PAD));
        let staged = elements(rows_a, across_a) + elements(rows_b, across_b);
        let halves = if self.split { 2 } else { 1 };
        let end = if self.end == CoopEnd::Whole { 0 } else { self.threads() / u64::from(self.lanes) };
        2 * halves * staged + 4 * end * u64::from(self.side * self.side)
    }

    /// Says in words why the sides are invalid.
    pub(super) fn wrong(&self) -> Option<String> {
        let Self { tile: ProductTile { m, n, k }, part: [rows, columns], side, .. } = *self;
        let whole = |x: u32, of: u32| x > 0 && x.is_multiple_of(of);
        if !whole(rows, side) || !whole(columns, side) || !whole(k, side) {
            return Some(format!(
                "the sides of a subgroup's part, {rows} x {columns}, and the step of k, {k}, must be multiples of \
                 {side}, the side of a cooperative matrix"
            ));
        }
        if rows.saturating_mul(columns) > 128 * 128 || k > 128 {
            return Some("a subgroup's part has at most 16384 elements, a step of k at most 128".into());
        }
        if !whole(m, rows) || !whole(n, columns) {
            return Some(format!("the tile must be made of whole parts of {rows} x {columns}"));
        }
        let threads = self.threads();
        let loads = |x: u32| u64::from(x) * u64::from(k / PIECE);
        if !loads(m).is_multiple_of(threads) || !loads(n).is_multiple_of(threads) {
            return Some(format!(
                "{threads} threads cannot share the loads of {m} x {k} and {k} x {n} elements evenly"
            ));
        }
        None
    }

    pub(super) fn kernel(&self, end: Spec) -> Kernel {
        let ProductTile { m, n, k } = self.tile;
        let spec = end
            .constant("TILE_M", m)
            .constant("TILE_N", n)
            .constant("TILE_K", k)
            .constant("PART_M", self.part[0])
            .constant("PART_N", self.part[1])
            .constant("BLOCK_SIDE", self.side)
            .constant("LANES", self.lanes)
            .flag("TRANS_A", self.trans_a)
            .flag("TRANS_B", self.trans_b)
            .flag("LOW", self.split)
            .flag("FRESH", self.fresh)
            .flag("ONE_STEP", self.one_step)
            .flag("SPLIT", self.slices > 1)
            .constant("unit_a", self.loads[0].unit())
            .constant("unit_b", self.loads[1].unit())
            .alias("Element_a", self.loads[0].element())
            .alias("Element_b", self.loads[1].element())
            .flag("WHOLE_BLOCKS", self.end == CoopEnd::Whole)
            .flag("DIRECT", self.end == CoopEnd::Direct);
        Kernel::library("dense/gemm_coop", "gemm_coop", spec)
    }
}

#[cfg(test)]
mod tests;
