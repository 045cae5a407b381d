//! Register-tiled kernels: their constants, their resources, and the product on them.
//! `shaders/dense/gemm_register_tiles.wgsl` and `gemm_register_product.wgsl` have the algorithm that all of them
//! share.
//!
//! For a batch of products a workgroup computes a tile of one, or several whole ones side by side, each with its
//! share of the threads and of workgroup memory.

use super::division::{Division, ProductTile, register_sides};
use super::job::{ProductJob, Workgroups};
use super::plain::FOURS;
use super::policy;
use crate::program::prelude::*;

/// The number of steps of k, as far as a kernel is specialised to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StepCount {
    Even,
    Odd,
    /// Unknown: it differs from workgroup to workgroup.
    Any,
}

impl StepCount {
    /// The steps that a sum over `k` takes.
    pub(crate) fn of(k: usize, tile: ProductTile) -> Self {
        if k.div_ceil(tile.k as usize).is_multiple_of(2) { Self::Even } else { Self::Odd }
    }
}

/// The constants that a register-tiled kernel is specialised to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RegisterForm {
    pub(crate) tile: ProductTile,
    /// Rows and columns of C that one thread computes.
    pub(crate) thread: [u32; 2],
    /// Two tiles in workgroup memory, one filled while the other is used; or one.
    pub(crate) double: bool,
    /// The steps of k in a tile are written out.
    pub(crate) unrolled: bool,
    /// Workgroup memory is made of vec4s, whose components are stored one by one. WGSL lets such a store touch the
    /// whole vector, which other threads store to at the same time. Where it does not, a read of a vec4 is always
    /// one instruction.
    pub(crate) vectors: bool,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
    /// A and B are bound as vec4s.
    pub(crate) vec_a: bool,
    pub(crate) vec_b: bool,
    /// The number of steps of k, as far as it is known.
    pub(crate) steps: StepCount,
    /// Products of a batch that a workgroup computes, whose C is no larger than the tile; `None` if a product may
    /// have several tiles.
    pub(crate) products: Option<u32>,
    /// An element of a factor is a word of four signed bytes along k, and sums are of i32.
    pub(crate) bytes: bool,
    /// Replaces the kernels of a matrix product.
    pub(crate) walked: Option<WalkedKernel>,
}

/// A kernel with factors that need not be matrices in memory. For such a factor `x` it defines
/// `line_x(row or column)`, `walk_x(k)`, `step_x(walk)`, which advances by TILE_K, and `load_x(line, walk)`. A
/// thread loads along one walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WalkedKernel {
    /// The shader file and its entry point.
    pub(crate) kernel: [&'static str; 2],
    /// A and B are such factors.
    pub(crate) a: bool,
    pub(crate) b: bool,
}

struct StagedSide {
    /// Rows (columns) of the tile.
    side: u32,
    /// The stored rows run along k.
    along_k: bool,
    vec: bool,
    walked: bool,
}

impl RegisterForm {
    /// Describes two matrices in memory, with two tiles in workgroup memory and no vec4s.
    pub(crate) fn of(division: Division) -> Self {
        Self {
            tile: division.tile,
            thread: division.thread,
            double: true,
            unrolled: true,
            vectors: true,
            trans_a: false,
            trans_b: false,
            vec_a: false,
            vec_b: false,
            steps: StepCount::Any,
            products: None,
            bytes: false,
            walked: None,
        }
    }

    pub(super) fn new(job: &ProductJob<'_>, division: Division, double: bool) -> Self {
        let product = job.product;
        let any = Self::of(division);
        Self {
            double,
            unrolled: product.unrolled.unwrap_or(true),
            vectors: product.vectors.unwrap_or(!job.profile.quirks.stores_whole_vectors),
            trans_a: product.trans_a,
            trans_b: product.trans_b,
            vec_a: job.vec4s(0),
            vec_b: job.vec4s(1),
            walked: product.kernel,
            steps: if job.is_sliced() { any.steps } else { StepCount::of(product.k, division.tile) },
            ..any
        }
    }

    /// Takes the requested division, or one that suits. `double`: two tiles in workgroup memory.
    pub(super) fn check(variant: &str, double: bool, job: &ProductJob<'_>) -> Result<(Self, Division)> {
        let suits = policy::fastest(variant, job).division;
        let division = job.product.division(suits, policy::register_thread);
        Ok((Self::of_division(variant, division, double, job)?, division))
    }

    /// Rejects a division that kernels with sums in registers cannot run.
    pub(super) fn of_division(variant: &str, division: Division, double: bool, job: &ProductJob<'_>) -> Result<Self> {
        let right = register_sides(division.thread);
        division.check_sides(job.name, variant, right, FOURS)?;
        if !division.tile.k.is_multiple_of(4) {
            return Err(err!(
                InvalidArgument,
                "{}: for `{variant}` its last side must be a multiple of 4",
                division.text(job.name)
            ));
        }
        let form = Self::new(job, division, double);
        let workgroup = [division.threads(), 1];
        division.check_limits(job.name, workgroup, form.workgroup_bytes(), job.profile)?;
        Ok(form)
    }

    /// Describes a batch: two tiles of each factor if there is room.
    pub(super) fn of_batch(job: &ProductJob<'_>) -> Self {
        let double = Self::new(job, policy::fastest("register", job).division, true);
        Self { double: double.workgroup_bytes() <= job.profile.limits.max_workgroup_bytes.into(), ..double }
    }

    pub(super) fn division(&self) -> Division {
        let ProductTile { m, n, k } = self.tile;
        Division::new([m, n, k], self.thread)
    }

    /// Says if the device has the threads and the workgroup memory.
    pub(crate) fn fits(&self, profile: &DeviceProfile) -> bool {
        self.threads() <= profile.limits.max_invocations
            && self.workgroup_bytes() <= profile.limits.max_workgroup_bytes.into()
    }

    pub(super) fn lower(&self, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        let product = job.product;
        let spec = job
            .end_spec(3, job.is_sliced())
            .flag("VEC_C", job.vec4s(2))
            .flag("WHOLE_TILES", self.divides(product.m, product.n));
        let kernel = program.kernel(self.kernel(spec));
        let workgroups = match self.products {
            Some(products) => Workgroups {
                count: (product.batch as u64).div_ceil(products.into()),
                elements: u64::from(products) * self.tile.elements(),
            },
            None => job.tiles(self.tile),
        };
        job.multiply(program, kernel, self.tile, workgroups)
    }

    /// The kernel; `spec` has everything but the form.
    pub(crate) fn kernel(&self, spec: Spec) -> Kernel {
        let [file, entry] = match (self.walked, self.products, self.double) {
            (Some(walked), ..) => walked.kernel,
            (None, Some(_), _) => ["dense/gemm_small", "gemm_small"],
            (None, None, true) => ["dense/gemm_double", "gemm_double"],
            (None, None, false) => ["dense/gemm_register", "gemm_register"],
        };
        let mut spec = spec
            .constant("TILE_M", self.tile.m)
            .constant("TILE_N", self.tile.n)
            .constant("TILE_K", self.tile.k)
            .constant("THREAD_M", self.thread[0])
            .constant("THREAD_N", self.thread[1])
            .flag("TRANS_A", self.trans_a)
            .flag("TRANS_B", self.trans_b)
            .flag("VEC_A", self.vec_a)
            .flag("VEC_B", self.vec_b)
            .flag("VECTORS", self.vectors)
            .flag("ROLLED", !self.unrolled)
            .flag("BYTES", self.bytes);
        if let Some(products) = self.products {
            spec = spec.constant("PRODUCTS", products);
        }
        if self.double {
            spec = spec.flag("ODD_STEPS", self.steps == StepCount::Odd).flag("ANY_STEPS", self.steps == StepCount::Any);
        }
        Kernel::library(file, entry, spec)
    }

    pub(crate) fn lanes(&self) -> u32 {
        (self.tile.m / self.thread[0]).saturating_mul(self.tile.n / self.thread[1])
    }

    pub(crate) fn threads(&self) -> u32 {
        self.lanes().saturating_mul(self.products.unwrap_or(1))
    }

    pub(crate) fn workgroup_bytes(&self) -> u64 {
        let buffers = if self.double { 2 } else { 1 };
        let each = u64::from(self.products.unwrap_or(1)) * buffers;
        let pitches = u64::from(self.side_a().pitch()) + u64::from(self.side_b().pitch());
        pitches.saturating_mul(4 * u64::from(self.tile.k)).saturating_mul(each)
    }

    /// Says if an m x n result is made of whole tiles.
    pub(crate) fn divides(&self, m: usize, n: usize) -> bool {
        m.is_multiple_of(self.tile.m as usize) && n.is_multiple_of(self.tile.n as usize)
    }

    /// Says if all loads of a thread can stand at one k, in walked factors.
    pub(crate) fn walks(&self) -> bool {
        let (lanes, k) = (self.lanes(), self.tile.k);
        [self.side_a(), self.side_b()].iter().filter(|side| side.walked).all(|side| match side.along_k {
            true => lanes.is_multiple_of(k / side.width()),
            false => lanes.is_multiple_of(k) && (side.side * k).is_multiple_of(lanes),
        })
    }

    fn side_a(&self) -> StagedSide {
        StagedSide {
            side: self.tile.m,
            along_k: !self.trans_a,
            vec: self.vec_a,
            walked: self.walked.is_some_and(|w| w.a),
        }
    }

    fn side_b(&self) -> StagedSide {
        StagedSide {
            side: self.tile.n,
            along_k: self.trans_b,
            vec: self.vec_b,
            walked: self.walked.is_some_and(|w| w.b),
        }
    }
}

impl StagedSide {
    /// Elements of a load.
    fn width(&self) -> u32 {
        if self.vec { 4 } else { 1 }
    }

    /// Elements from one step of k to the next in workgroup memory. A factor that is stored along k is transposed
    /// on the way: four more elements spread it over the banks.
    fn pitch(&self) -> u32 {
        if self.along_k { self.side.saturating_add(4) } else { self.side }
    }
}

#[cfg(test)]
mod tests;
