mod atomic;
mod by_row;
mod segmented;

pub(super) use segmented::split;

use super::by_name::FORMAT;
use super::by_row::given_order;
use super::matrix_layout::windows;
use super::scalars::{ResultLayout, SCALARS, with_scalars};
use super::{Described, Format, MatrixLayout, Statistics};
use crate::program::prelude::*;

/// Multiplies a sparse matrix by a vector: `y = alpha A x + beta y`.
///
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
///
/// # Shapes
/// A is `rows` x `cols` in any [`Format`], with f32 or f16 values and u32 indices. `x` has `cols` elements and `y` has
/// `rows`, both f32. Operands are a [`DeviceMatrix`](crate::DeviceMatrix), `x` and `y`; an untyped
/// [`Executable`](crate::gpu::Executable) takes the lists of the format in its order instead of the matrix, and then
/// those of [`SparseMatrix::by_row`](super::SparseMatrix::by_row). `y` must not overlap the others. Any extent may be
/// 0, and the matrix may have no entries.
///
/// [`with_scalars`](Self::with_scalars) takes alpha and beta from the device, to change them without a new plan.
///
/// Values at duplicate positions add up. The values of padding are ignored. With `beta` = 0 (the default) `y` is not
/// read, so its old contents do not matter, even NaN. With `alpha` = 0 the result is `beta y`, and A and `x` are not
/// read.
///
/// # Precision and determinism
/// Products are summed in f32, in an order that depends on the matrix and the device. The error of a row with n entries
/// is at most `gamma(n + 4) (|alpha| |A| |x| + |beta y|)` with `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::spmv_bound`](crate::reference::spmv_bound)). NaN and infinities propagate as in IEEE arithmetic,
/// except that `csc-atomic` skips columns whose element of `x` is 0. The same device, inputs and variant give the same
/// bits, except with `coo-atomic` and `csc-atomic`, which [`deterministic`](Self::deterministic) excludes.
///
/// # Cost
/// 2 flop for each entry. Every list (without padding) and x are read once, y is written once, and read once if `beta`
/// is not 0. One dispatch for `csr-scalar`, `csr-vector`, `ell`, `jds` and `sell`, and one more for every 2^20 entries
/// of the longest row; three for `csr-merge` and `csr-segmented`; two or more for the others. Scratch is 8 bytes for
/// each tile of entries, 12 for `csr-merge` and `csr-segmented`. `csc`, and `coo` and `hybrid` on unsorted entries,
/// read 12 bytes more for each entry: its row, column and index in an order by row. The
/// [`DeviceMatrix`](crate::DeviceMatrix) owns that order, which its first product makes
/// ([`Gpu::order_matrix`](crate::Gpu::order_matrix)).
///
/// # Variants
/// `coo`, `coo-atomic`; `csr-scalar`, `csr-vector`, `csr-merge`, `csr-segmented`; `csc`, `csc-atomic`; `ell`; `jds`;
/// `hybrid`; `sell`. The name starts with the format. `auto` (the default) never takes one with atomics. For CSR it
/// takes `csr-segmented` if some rows are far longer than the mean (`csr-merge` if the mean is below 8, and on a
/// processor), `csr-scalar` if all rows are very short, else `csr-vector`.
/// [`Statistics::format`](super::Statistics::format) names the format that suits a matrix.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, a variant of another format, values
///   other than f32 and f16, or slices of 0 rows.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant with atomics where determinism is asked for.
/// - [`TooLarge`](ErrorKind::TooLarge): a list above the device's largest binding, or 2^32 or more rows and
///   entries together.
///
/// Upload checks indices ([`SparseMatrix::layout`](super::SparseMatrix::layout)). In lists from elsewhere, kernels
/// treat an index out of range as padding.
///
/// # Algorithm
/// - `shaders/sparse/spmv_csr_scalar.wgsl`, `spmv_csr_vector.wgsl`, `spmv_ell.wgsl`: N. Bell and M. Garland, 2009.
/// - `spmv_csr_merge.wgsl`: D. Merrill and M. Garland, 2016; rows within a tile as J. Greathouse and M. Daga, 2014.
/// - `spmv_csr_segmented.wgsl` (the same tiles) and `spmv_coo.wgsl`: segmented sums with carries, G. Blelloch et al.,
///   1993. `csc` reads its entries in an order by row.
/// - `spmv_jds.wgsl`: Y. Saad, 1989. `spmv_sell.wgsl`: M. Kreutzer et al., 2014.
#[derive(Debug, Clone, PartialEq)]
pub struct Spmv {
    pub(crate) matrix: MatrixLayout,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) scalars: bool,
    deterministic: bool,
    statistics: Option<Statistics>,
    tile: Option<(u32, u32)>,
    variant: String,
}

kernel_params! {
    /// Parameters of every kernel of the op.
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
    /// Returns the parameters that the matrix determines.
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
    Variant::portable("coo", "tiles of entries by row, segmented sums, carries between tiles"),
    Variant::portable("coo-atomic", "one thread adds an entry to its row by an atomic; for comparison").in_any_order(),
    Variant::portable("csr-scalar", "one thread sums a row"),
    Variant::portable("csr-vector", "neighbouring lanes sum a row together, more of them for longer rows"),
    Variant::portable("csr-merge", "tiles share row ends and entries evenly; carries between tiles"),
    Variant::portable("csr-segmented", "the tiles of `csr-merge`, with segmented sums inside a tile"),
    Variant::portable("csc", "entries by row, in an order made once, summed as in `coo`"),
    Variant::portable("csc-atomic", "one thread adds a column to the rows by atomics; for comparison").in_any_order(),
    Variant::portable("ell", "one thread sums the slots of a row"),
    Variant::portable("jds", "one thread sums a row down the jagged diagonals"),
    Variant::portable("hybrid", "`ell`, then `coo` for the rest"),
    Variant::portable("sell", "one thread sums a row of a slice"),
];

/// Constants that depend on the device.
struct SpmvPolicy {
    workgroup_size: u32,
    /// Threads of a workgroup in kernels that share tiles of entries.
    tile_size: u32,
    /// Entries of a thread in `coo`; odd, so that lanes use different banks.
    coo_items: u32,
    /// Steps of a thread in `csr-merge`, which loads four at once.
    merge_items: u32,
    /// Steps of a thread in `csr-segmented`: a divisor of 32, at least 4. On an H100 a power-law matrix takes 170 us
    /// with 8, 173 with 4, 172 with 16.
    segment_items: u32,
    /// The maximum number of slots of a row in one dispatch.
    max_slots: u32,
}

fn policy(profile: &DeviceProfile) -> SpmvPolicy {
    // Leaves room for the other work of a thread.
    let max_slots = profile.loop_steps(3, 1 << 20) as u32;
    if profile.quirks.serial_workgroups {
        // Barriers are slow on software drivers.
        SpmvPolicy { workgroup_size: 64, tile_size: 16, coo_items: 33, merge_items: 32, segment_items: 32, max_slots }
    } else {
        // On an H100, 2^20 rows. `coo`, power law: 133 us with 3 items, 143 with 5. `csr-merge`, power law: 181 us with
        // 8 items, 204 with 16; 16 entries in each row: 100 us with 4 items, 96 with 8, 126 with 16.
        SpmvPolicy { workgroup_size: 256, tile_size: 256, coo_items: 3, merge_items: 8, segment_items: 8, max_slots }
    }
}

/// Returns the number of lanes that can sum by shuffles, 1 if none can.
fn shuffled(profile: &DeviceProfile) -> u32 {
    if profile.features.subgroups { profile.subgroup_sizes.0 } else { 1 }
}

impl Spmv {
    /// Multiplies by a matrix of this layout.
    pub fn new(matrix: MatrixLayout) -> Self {
        Self {
            matrix,
            alpha: 1.0,
            beta: 0.0,
            scalars: false,
            deterministic: false,
            statistics: None,
            tile: None,
            variant: "auto".into(),
        }
    }

    product_builders!("`x`", "y");

    deterministic!(deterministic);

    /// Adds row statistics: the plan's report then names the format that suits the matrix.
    #[must_use]
    pub fn statistics(mut self, statistics: &Statistics) -> Self {
        self.statistics = Some(*statistics);
        self
    }

    /// For tests and tuning: sets the threads of a workgroup, and the items of a thread (`coo`, `csc`, `csr-merge`,
    /// `csr-segmented`) or the lanes of a row (`csr-vector`).
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, items: u32) -> Self {
        self.tile = Some((workgroup_size, items));
        self
    }

    /// Returns the variant that suits, and why.
    pub(super) fn choose(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let MatrixLayout { longest, .. } = self.matrix;
        let mean = self.matrix.mean();
        match self.matrix.format {
            Format::Csr if self.matrix.skewed() => (
                // On an H100 `csr-segmented` takes 170 us and `csr-merge` 175 for a power law with 16 entries in a row,
                // 35 and 32 us for an arrow with 3. Gathers alone take 146 us of the former.
                if mean < 8 || profile.quirks.serial_workgroups { "csr-merge" } else { "csr-segmented" },
                format!("the longest row has {longest} entries, the mean {mean}: workgroups share rows"),
            ),
            Format::Csr if profile.quirks.serial_workgroups => {
                ("csr-scalar", "on a processor one thread walks a row fastest".into())
            }
            Format::Csr if mean < 2 => ("csr-scalar", format!("rows are short: {mean} entries on average")),
            Format::Csr => {
                let lanes = self.lanes(profile);
                if self.matrix.few_rows(lanes as usize, mean / lanes as usize, profile) {
                    let rows = self.matrix.rows;
                    let why =
                        format!("{rows} rows of {mean} entries are too few to fill the device: workgroups share rows");
                    return ("csr-segmented", why);
                }
                ("csr-vector", format!("{lanes} lanes for a row of {mean} entries on average, at most {longest}"))
            }
            format => (format.name(), format!("the variant for {} without atomics", format.name())),
        }
    }

    /// Returns the lanes that share a row: one for every four entries of the mean row, which load at once, and more if
    /// the longest row would keep them much longer.
    pub(super) fn lanes(&self, profile: &DeviceProfile) -> u32 {
        let wanted = (self.matrix.mean() / 4).max(self.matrix.longest / 64).clamp(2, 1 << 16) as u32;
        let max = policy(profile).workgroup_size;
        let shuffled = shuffled(profile);
        let lanes = wanted.next_power_of_two();
        // Above a subgroup, barriers cost more than longer walks, unless rows fill a workgroup.
        if shuffled > 1 && lanes < 16 * shuffled { lanes.min(shuffled).min(max) } else { lanes.min(max) }
    }
}

impl Op<f32> for Spmv {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        if self.scalars {
            let product = Self { alpha: 1.0, beta: 0.0, scalars: false, ..self.clone() }.lower(profile)?;
            let rows = self.matrix.rows;
            let operand = Operand { name: "y", dtype: DType::F32, len: rows, access: Access::ReadWrite };
            return with_scalars(product, ResultLayout { rows, cols: 1, stride: 1, operand }, profile);
        }
        let bits = Bits { rounds: true, deterministic: self.deterministic };
        let (variant, mut decision) =
            choose_with("spmv", &self.variant, VARIANTS, profile, bits, || self.choose(profile))?;
        let mut operands = self.matrix.product_lists("spmv", variant)?;
        let vector = |name, len, access| Operand { name, dtype: DType::F32, len, access };
        operands.push(vector("x", self.matrix.cols, Access::Read));
        operands.push(vector("y", self.matrix.rows, Access::ReadWrite));
        self.matrix.check("spmv", profile, &operands)?;
        self.matrix.suits("spmv", variant)?;
        let product = self.has_product(&mut decision);
        if let Some(statistics) = &self.statistics {
            let (format, why) = statistics.format(profile);
            decision.because(format_args!("{format} suits the matrix: {why}"));
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
        lowering.lower(product);
        let mut program = lowering.program;
        // An entry loads its element of x.
        let gathered = if product { self.matrix.entries.saturating_sub(self.matrix.cols) } else { 0 };
        program.traffic = program.requested().map(|bytes| bytes + 4.0 * gathered as f64);
        Ok(program)
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
    fn lower(&mut self, product: bool) {
        if !product || self.matrix.adds() {
            self.scale();
        }
        if !product {
            return;
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
            (Format::Hybrid { width, list, .. }, _) => {
                if width > 0 {
                    self.ell(width);
                }
                if list > 0 {
                    self.coo(2, list);
                }
            }
            (Format::Coo { .. }, "coo-atomic") => self.coo_atomic(),
            (Format::Csc, "csc-atomic") => self.csc_atomic(),
            (Format::Coo { .. } | Format::Csc, _) => self.coo(0, self.matrix.entries),
        }
    }

    fn spec(&self) -> Spec {
        Spec::new().constant("WORKGROUP_SIZE", self.policy.workgroup_size)
    }

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

    fn grid(&self, threads: u64) -> Grid {
        Grid::fold(threads.div_ceil(u64::from(self.policy.workgroup_size)))
    }

    /// See [`windows`].
    fn windows(&self, longest: u32, end: u32) -> Vec<(u32, u32)> {
        windows(longest, end, self.policy.max_slots)
    }

    /// Appends y = beta y.
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
        SCALARS,
        Setting::flag("deterministic"),
    ],
    make: Some(make),
    variants: Spmv::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (lists, Described { layout, statistics, .. }) = asked.sparse::<Described>()?;
    asked.set("rows", &[layout.rows]);
    let x = asked.of("x", &[layout.cols], DType::F32)?;
    // By default y starts as zeros.
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
    let order = given_order(layout, &lists, VARIANTS, asked.variant())?;
    let scalars = asked.named_of(SCALARS.name, &[2], DType::F32)?;
    if scalars.is_some() {
        op = op.with_scalars();
    }
    let others = [x].into_iter().chain(scalars).map(Role::Given).chain([Role::Updated(y)]);
    let operands = lists.into_iter().map(Role::Given).chain(order).chain(others).collect();
    Ok(OpCall::new::<f32>(op.variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for format in super::sample_formats(variant) {
        for (entries, longest) in [(3000, 9), (60_000, 200), (3_000_000, 9000), (3, 1)] {
            for (beta, values) in [(0.0, DType::F32), (1.0, DType::F32), (1.0, DType::F16)] {
                let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values };
                programs.push(Spmv::new(matrix).beta(beta).variant(variant).lower(profile)?);
            }
            let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values: DType::F32 };
            programs.push(Spmv::new(matrix).with_scalars().variant(variant).lower(profile)?);
        }
    }
    Ok(programs)
}
