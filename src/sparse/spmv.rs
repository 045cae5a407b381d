//! The product of a sparse matrix and a vector.

mod atomic;
mod by_row;
mod segmented;

pub(super) use segmented::{sort_by_row, split};

use super::by_name::FORMAT;
use super::matrix_layout::windows;
use super::{Described, Format, MatrixLayout, Statistics};
use crate::array::HostArray;
use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Asked, Binding, Bits, DeviceProfile, Form, Grid, Input, Kernel, Op, Operand, Operation, Program,
    Role, Setting, Variant, choose_with, deterministic, kernel_params,
};
use crate::shader::Spec;

/// Product of a sparse matrix and a vector: `y = alpha A x + beta y`.
///
/// # Shapes
/// A has `rows` x `cols` elements, stored in any [`Format`], with values of f32 or f16 and indices of u32. `x` has `cols`
/// elements and `y` has `rows`, of f32; `y` must not overlap the others. Operands are the matrix, `x`, `y`: a plan
/// takes a [`DeviceMatrix`](crate::DeviceMatrix). Without types (as [`Executable`](crate::gpu::Executable)) they are
/// the lists of the format, in its order, then `x` and `y`.
///
/// Any extent may be 0, and the matrix may have no entries. A position that comes more than once counts as the sum of its
/// values. Padding never multiplies, whatever its value is. With `beta` = 0 (the default) `y` is not read, so what
/// it holds, NaN too, does not matter. With `alpha` = 0 the result is `beta y`, and A and `x` are not read.
///
/// # Precision and determinism
/// Products are summed in f32, in an order that the matrix and the device decide. The error of row r is at most
/// `gamma(n + 4) (|alpha| |A| |x| + |beta y|)` with n its entries, `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::spmv_bound`](crate::reference::spmv_bound)). Same device, same inputs, same variant: same bits,
/// except for `coo-atomic` and `csc-atomic`, which [`deterministic`](Self::deterministic) rules out. NaN and infinities
/// go through as IEEE arithmetic has them, except that `csc-atomic` leaves out columns whose element of `x` is 0.
///
/// # Cost
/// 2 flop for each entry; every list without its padding and x read once, y written once, and read once if `beta` is not 0. One dispatch for
/// `csr-scalar`, `csr-vector`, `ell`, `jds` and `sell` (one more for every 2^20 entries of a longer row); three for
/// `csr-merge` and `csr-segmented`, two or more for the others. Scratch is 8 bytes for each of their tiles, 12 for those
/// of the former two. `csc`, and `coo` of entries in no order, sort on each call and take 12 bytes of scratch for each
/// entry and those of [`RadixSort`](crate::RadixSort) beside.
///
/// # Variants
/// `coo`, `coo-atomic` for coordinates; `csr-scalar`, `csr-vector`, `csr-merge`, `csr-segmented` for compressed rows;
/// `csc`, `csc-atomic` for compressed columns; `ell`, `jds`, `hybrid`, `sell` for these formats. `auto` (the default)
/// takes for compressed rows `csr-segmented` if some are far longer than the mean (`csr-merge` if the mean is below 8,
/// and on a processor), `csr-scalar` if all are very short, else `csr-vector`; for the others the one without atomics.
/// [`Statistics::format`](super::Statistics::format) names the format that suits a matrix.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, one of another format, slices of 0 rows.
/// [`Unsupported`](crate::ErrorKind::Unsupported): one with atomics where the same bits are asked for.
/// [`TooLarge`](crate::ErrorKind::TooLarge): a list above the device's largest binding, rows and entries of more than
/// 2^32 - 1 together. Indices out of range are refused on upload
/// ([`SparseMatrix::layout`](super::SparseMatrix::layout)); kernels take those in lists of other origin for padding.
///
/// # Algorithm
/// `shaders/sparse/spmv_csr_scalar.wgsl`, `spmv_csr_vector.wgsl`, `spmv_ell.wgsl`: N. Bell and M. Garland (2009).
/// `spmv_csr_merge.wgsl`: D. Merrill and M. Garland (2016), rows within a tile in the manner of J. Greathouse and M. Daga
/// (2014). `spmv_csr_segmented.wgsl`, with the same tiles, and `spmv_coo.wgsl`: segmented sums with carries
/// (G. Blelloch et al. 1993). `spmv_jds.wgsl`: Y. Saad (1989). `spmv_sell.wgsl`: M. Kreutzer et al. (2014).
/// `csc` sorts products by row.
///
/// # Example
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::Csr;
///
/// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
/// let gpu = Gpu::new()?;
/// let a = gpu.upload_matrix(&Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values })?;
/// let (x, y) = (gpu.upload(&[1.0f32, 10.0, 100.0])?, gpu.upload(&[1.0f32, 1.0])?);
/// let plan = Spmv::new(a.layout()).beta(-1.0).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [200.0, 29.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spmv {
    pub(crate) matrix: MatrixLayout,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    deterministic: bool,
    statistics: Option<String>,
    tile: Option<(u32, u32)>,
    variant: String,
}

kernel_params! {
    /// Of every kernel of the product.
    pub(super) struct SpmvParams {
        rows: u32,
        cols: u32,
        entries: u32,
        parts: u32,
        slice: u32,
        begin: u32,
        end: u32,
        read_y: u32,
        alpha: f32,
        beta: f32,
    }
}

impl SpmvParams {
    /// What a matrix says of itself.
    pub(super) fn of(matrix: MatrixLayout) -> Self {
        let slice = match matrix.format {
            Format::Sell { slice, .. } => slice as u32,
            _ => 0,
        };
        Self {
            rows: matrix.rows as u32,
            cols: matrix.cols as u32,
            entries: matrix.places() as u32,
            parts: 0,
            slice,
            begin: 0,
            end: u32::MAX,
            read_y: 0,
            alpha: 1.0,
            beta: 0.0,
        }
    }
}

const VARIANTS: &[Variant] = &[
    Variant::portable(
        "coo",
        "tiles of entries, segmented sums, carries from tile to tile; sorts what is in no order",
    ),
    Variant::portable("coo-atomic", "one invocation adds an entry to its row by an atomic: for comparison")
        .in_any_order(),
    Variant::portable("csr-scalar", "one invocation sums a row"),
    Variant::portable("csr-vector", "neighbouring lanes, as many as suit the mean row, sum a row together"),
    Variant::portable(
        "csr-merge",
        "ends of rows and entries are merged and shared evenly; carries from tile to tile",
    ),
    Variant::portable(
        "csr-segmented",
        "as `csr-merge`, and within a tile segmented sums, whose time no row changes",
    ),
    Variant::portable("csc", "products in the order of columns, sorted by row, summed as by `coo`"),
    Variant::portable("csc-atomic", "one invocation adds a column to the rows by atomics: for comparison")
        .in_any_order(),
    Variant::portable("ell", "one invocation sums a row of places down the columns"),
    Variant::portable("jds", "one invocation sums a row down the jagged diagonals"),
    Variant::portable("hybrid", "`ell` for the places, then `coo` for the list"),
    Variant::portable("sell", "one invocation sums a row of its slice"),
];

/// Constants that depend on the device.
struct SpmvPolicy {
    /// Invocations of kernels that own rows.
    workgroup_size: u32,
    /// Invocations of kernels that share tiles.
    tile_size: u32,
    /// Entries of an invocation in `coo`; odd, so that lanes meet in no bank.
    coo_items: u32,
    /// Steps of an invocation in `csr-merge`, which has four of them on their way at once.
    merge_items: u32,
    /// Steps of an invocation in `csr-segmented`, a divisor of 32 and at least 4. On an H100 (power law): 170 us by 8, 173
    /// by 4, 172 by 16.
    segment_items: u32,
    /// The maximum number of places of a row that one dispatch takes.
    most_places: u32,
}

fn policy(profile: &DeviceProfile) -> SpmvPolicy {
    // With room for what else an invocation does.
    let most_places = profile.loop_steps(3, 1 << 20) as u32;
    if profile.quirks.serial_workgroups {
        // Barriers are dear on processors.
        SpmvPolicy {
            workgroup_size: 64,
            tile_size: 16,
            coo_items: 33,
            merge_items: 32,
            segment_items: 32,
            most_places,
        }
    } else {
        // On an H100, 2^20 rows: coordinates of a power law 133 us by 3 items, 143 by 5; its rows (another one) 181 us by 8
        // items, 204 by 16; of 16 a row 100 us by 4 items, 96 by 8, 126 by 16.
        SpmvPolicy {
            workgroup_size: 256,
            tile_size: 256,
            coo_items: 3,
            merge_items: 8,
            segment_items: 8,
            most_places,
        }
    }
}

/// Lanes that can join sums by shuffles; 1 if none can.
fn shuffled(profile: &DeviceProfile) -> u32 {
    if profile.features.subgroups { profile.subgroup_sizes.0 } else { 1 }
}

impl Spmv {
    /// With a matrix that is stored like this.
    pub fn new(matrix: MatrixLayout) -> Self {
        Self {
            matrix,
            alpha: 1.0,
            beta: 0.0,
            deterministic: false,
            statistics: None,
            tile: None,
            variant: "auto".into(),
        }
    }

    /// Factor of the product; 1 by default. With 0, the matrix and `x` are not read.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Factor of what `y` holds before; 0 by default, and `y` is then not read.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    deterministic!(deterministic);

    /// What was seen of the rows, and the format that suits them: the plan's report repeats it.
    #[must_use]
    pub fn statistics(mut self, statistics: &Statistics) -> Self {
        let (format, why) = statistics.format();
        self.statistics = Some(format!("{format} suits the matrix: {why}"));
        self
    }

    crate::program::variants!(variant);

    /// Invocations of a workgroup, and items of each in `coo`, `csc`, `csr-merge` and `csr-segmented` or lanes of a row in
    /// `csr-vector`, instead of what the device's policy has: for tuning.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, items: u32) -> Self {
        self.tile = Some((workgroup_size, items));
        self
    }

    /// Which variant, and why.
    fn choose(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let MatrixLayout { longest, .. } = self.matrix;
        let mean = self.matrix.mean();
        match self.matrix.format {
            Format::Csr if self.matrix.skewed() => (
                // On an H100, by `csr-segmented` and by `csr-merge`: 170 and 175 us for a power law of 16 entries a row, 35
                // and 32 us for an arrow of 3. Gathers alone take 146 us of the former, which caches and no order bound.
                if mean < 8 || profile.quirks.serial_workgroups { "csr-merge" } else { "csr-segmented" },
                format!(
                    "the longest row has {longest} entries and the mean one {mean}: work is shared evenly"
                ),
            ),
            Format::Csr if profile.quirks.serial_workgroups => {
                ("csr-scalar", "on a processor a row is best walked by one".into())
            }
            Format::Csr if mean < 2 => ("csr-scalar", format!("rows are short, {mean} entries in the mean")),
            Format::Csr => {
                let lanes = self.lanes(profile);
                (
                    "csr-vector",
                    format!("{lanes} lanes a row suit {mean} entries in the mean, {longest} at the most"),
                )
            }
            format => (format.name(), format!("the way of {} without atomics", format.name())),
        }
    }

    /// Lanes that share a row: four entries each in the mean, which are on their way at once, and more where the longest row would keep its team
    /// many times longer than that.
    fn lanes(&self, profile: &DeviceProfile) -> u32 {
        let wanted = (self.matrix.mean() / 4).max(self.matrix.longest / 64).clamp(2, 1 << 16) as u32;
        let most = policy(profile).workgroup_size;
        let shuffled = shuffled(profile);
        let lanes = wanted.next_power_of_two();
        // Between a subgroup and rows that fill a workgroup, barriers cost more than longer walks.
        if shuffled > 1 && lanes < 16 * shuffled { lanes.min(shuffled).min(most) } else { lanes.min(most) }
    }
}

impl Op<f32> for Spmv {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let mut operands = self.matrix.operands("spmv")?;
        let vector = |name, len, access| Operand { name, dtype: DType::F32, len, access };
        operands.push(vector("x", self.matrix.cols, Access::Read));
        operands.push(vector("y", self.matrix.rows, Access::ReadWrite));
        self.matrix.check("spmv", profile, &operands)?;
        let bits = Bits { rounds: true, deterministic: self.deterministic };
        let (variant, mut decision) =
            choose_with("spmv", &self.variant, VARIANTS, profile, bits, || self.choose(profile))?;
        self.matrix.suits("spmv", variant)?;
        let product = self.matrix.places() > 0 && self.matrix.cols > 0 && self.alpha != 0.0;
        if !product {
            let zero = if self.alpha == 0.0 { "alpha is 0" } else { "there are no entries" };
            decision.because(format_args!("{zero}, so y is only scaled"));
        }
        if let Some(statistics) = &self.statistics {
            decision.because(format_args!("{statistics}"));
        }
        let mut program = Program::new("spmv", decision);
        let (entries, used) = if product { (1, &operands[..]) } else { (0, &operands[operands.len() - 1..]) };
        program.cost = self.matrix.cost(used, entries, self.beta != 0.0);
        program.operands = operands;
        if self.matrix.rows == 0 {
            return Ok(program);
        }
        let mut policy = policy(profile);
        if let Some((size, items)) = self.tile {
            (policy.workgroup_size, policy.tile_size) = (size, size);
            (policy.coo_items, policy.merge_items) = (items, items);
            policy.segment_items = items.next_power_of_two().clamp(4, 32);
        }
        let mut lowering = SpmvLowering { spmv: self, matrix: self.matrix, profile, policy, program };
        lowering.lower(product)?;
        Ok(lowering.program)
    }
}

struct SpmvLowering<'a> {
    spmv: &'a Spmv,
    matrix: MatrixLayout,
    profile: &'a DeviceProfile,
    policy: SpmvPolicy,
    program: Program,
}

impl SpmvLowering<'_> {
    fn lower(&mut self, product: bool) -> Result<()> {
        if !product {
            self.scale();
            return Ok(());
        }
        match (self.matrix.format, self.program.variant()) {
            (Format::Csr, "csr-scalar") => self.csr(1),
            (Format::Csr, "csr-merge") => self.merge(),
            (Format::Csr, "csr-segmented") => self.segmented(),
            (Format::Csr, _) => {
                self.csr(self.spmv.tile.map_or(self.spmv.lanes(self.profile), |(_, lanes)| lanes));
            }
            (Format::Ell { width }, _) => self.ell(width),
            (Format::Jds, _) => self.jds(),
            (Format::Sell { .. }, _) => self.sell(),
            (Format::Hybrid { width, list, sorted }, _) => {
                if width > 0 {
                    self.ell(width);
                } else {
                    self.scale();
                }
                if list > 0 {
                    self.coo(2, list, sorted)?;
                }
            }
            (Format::Coo { .. }, "coo-atomic") => {
                self.scale();
                self.coo_atomic();
            }
            (Format::Coo { sorted }, _) => {
                self.scale();
                self.coo(0, self.matrix.entries, sorted)?;
            }
            (Format::Csc, "csc-atomic") => {
                self.scale();
                self.csc_atomic();
            }
            (Format::Csc, _) => {
                self.scale();
                self.csc()?;
            }
        }
        Ok(())
    }

    fn spec(&self) -> Spec {
        Spec::new().constant("WORKGROUP_SIZE", self.policy.workgroup_size)
    }

    /// Of a kernel that reads values, at this binding.
    fn values_at(&self, binding: u32) -> Spec {
        self.matrix.values_at(binding, self.spec())
    }

    fn params(&self) -> SpmvParams {
        let Spmv { alpha, beta, .. } = *self.spmv;
        SpmvParams { read_y: u32::from(beta != 0.0), alpha, beta, ..SpmvParams::of(self.matrix) }
    }

    fn operand(&self, index: usize) -> Binding {
        Binding::operand(index, &self.program.operands)
    }

    fn x(&self) -> Binding {
        self.operand(self.program.operands.len() - 2)
    }

    fn y(&self) -> Binding {
        self.operand(self.program.operands.len() - 1)
    }

    /// Workgroups for as many invocations.
    fn grid(&self, invocations: u64) -> Grid {
        Grid::fold(invocations.div_ceil(u64::from(self.policy.workgroup_size)))
    }

    /// See [`windows`].
    fn windows(&self, longest: u32, end: u32) -> Vec<(u32, u32)> {
        windows(longest, end, self.policy.most_places)
    }

    /// y = beta y.
    fn scale(&mut self) {
        let spec = self.spec().constant("RESULT_BINDING", 1u32);
        let kernel = self.program.kernel(Kernel::library("sparse/spmv_scale", "spmv_scale", spec));
        let (params, y, grid) = (self.params(), self.y(), self.grid(self.matrix.rows as u64));
        self.program.dispatch(kernel, &params, vec![y], grid);
    }
}

pub(super) const INFO: Operation = Operation {
    name: "spmv",
    about: "y = alpha A x + beta y, A sparse in any format",
    matrix: true,
    inputs: &[Input::new("x", "(cols)"), Input::optional("y", "(rows)")],
    outputs: &[("y", "(rows)")],
    types: &[DType::F32],
    options: &[
        FORMAT,
        Setting::number("alpha", "1"),
        Setting::number("beta", "0"),
        Setting::flag("deterministic"),
    ],
    make: Some(make),
    variants: Spmv::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (lists, Described { layout, statistics, .. }) = asked.sparse::<Described>()?;
    asked.set("rows", &[layout.rows]);
    let x = asked.of("x", &[layout.cols], DType::F32)?;
    // Without one, y begins as zeros.
    let y = if asked.has_more() {
        asked.of("y", &[layout.rows], DType::F32)?
    } else {
        HostArray::zeros(&[layout.rows], DType::F32)?
    };
    let settings = asked.settings();
    let mut op = Spmv::new(*layout).alpha(settings.number("alpha")?).beta(settings.number("beta")?);
    if let Some(statistics) = statistics {
        op = op.statistics(statistics);
    }
    if settings.has("deterministic") {
        op = op.deterministic();
    }
    let others = [Role::Given(x), Role::Updated(y)];
    let operands = lists.into_iter().map(Role::Given).chain(others).collect();
    Ok(Form::new::<f32>(op.variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for format in super::sample_formats(variant) {
        for (entries, longest) in [(3000, 9), (60_000, 200), (3_000_000, 9000), (3, 1)] {
            for (beta, values) in [(0.0, DType::F32), (1.0, DType::F32), (1.0, DType::F16)] {
                let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values };
                programs.push(Spmv::new(matrix).beta(beta).variant(variant).lower(profile)?);
            }
        }
    }
    Ok(programs)
}
