//! The matrix-vector product.

use super::Layout;
use super::gemm::form::{ALPHA, BETA};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Form, Grid, Input, Kernel, Op, Operand,
    Operation, Program, Requires, Resource, Role, Setting, Variant, by_type, choose, kernel_params, operands,
};
use crate::shader::Spec;
use crate::shape::{elements, index_u32, round_up};
use half::f16;

/// Matrix-vector product: `y = alpha op(A) x + beta y`.
///
/// # Shapes
/// `a` is stored m x k, row-major. op(A) is A: `x` has k elements and `y` m; with [`trans`](Self::trans) it is
/// A transposed: `x` has m elements and `y` k. Elements are `f32` or [`f16`](half::f16). Operands are `a`, `x`,
/// `y`, in this order. The leading dimension (`lda`) is the number of elements from one stored row of `a` to
/// the next; `a` then has `(m - 1) * lda + k` elements. `y` must not overlap the others.
///
/// Any extent may be 0. With `beta` = 0 (the default) `y` is not read, so what it holds, NaN too, does not
/// matter. With `alpha` = 0, or where `x` is empty, the result is `beta y`, and `a` and `x` are not read. A
/// matrix above the device's largest binding is taken in bands of rows.
///
/// # Precision and determinism
/// Products are summed in f32 for both element types, in an order that shape and device decide; the end is
/// rounded once to the element type. The error is at most `gamma(n + 4) (|alpha| |op(A)| |x| + |beta y|)` with
/// n the length of `x`, `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::gemv_bound`](crate::reference::gemv_bound)). NaN and infinities go through as IEEE arithmetic
/// has them. Same device, same inputs, same variant: same bits.
///
/// # Cost
/// 2 m k flop; a and x read once, y written once, and read once if `beta` is not 0. One dispatch, or two where
/// sums are split between workgroups: few long rows, or A transposed. The second adds up 4 bytes of scratch for
/// each element of y and part.
///
/// # Variants
/// `naive`, `tiled`; `auto` (the default) takes `tiled`, on processors mostly `naive`.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a leading dimension below k, an unknown variant.
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer of the device; `x`, `y`, a row
/// of `a` or the scratch above its largest binding.
/// [`Unsupported`](crate::ErrorKind::Unsupported): `f16` on a device without SHADER_F16.
///
/// # Algorithm
/// `shaders/dense/gemv_naive.wgsl`: the definition. `shaders/dense/gemv_rows.wgsl`: lanes own columns, several
/// rows share each load of x, a tree joins the lanes. `shaders/dense/gemv_columns.wgsl`: lanes own columns, the
/// rows are split between workgroups, and `shaders/dense/gemv_finish.wgsl` joins the parts. As in MAGMA
/// (Nath, Tomov, Dongarra 2010).
///
/// # Example
/// ```
/// use tilework::dense::Gemv;
/// use tilework::program::{DeviceProfile, Op};
///
/// // The gradient of a layer with respect to its input: weights stored 128 x 784.
/// let gradient = Gemv::new(128, 784).trans(true);
/// let program = Op::<f32>::lower(&gradient, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!((program.operands[1].len, program.operands[2].len), (128, 784));
/// assert_eq!(program.cost.flop, 2.0 * 128.0 * 784.0);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gemv {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) trans: bool,
    lda: Option<usize>,
    variant: String,
}

kernel_params! {
    /// Of every kernel of the product.
    struct Params {
        rows: u32,
        cols: u32,
        ld: u32,
        origin: u32,
        first_row: u32,
        parts: u32,
        part_len: u32,
        first_part: u32,
        outputs: u32,
        read_y: u32,
        alpha: f32,
        beta: f32,
    }
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one invocation sums a row (or a column) alone"),
    Variant::portable(
        "tiled",
        "lanes own columns and load vec4s, rows share the loads of x, trees join the sums; long sums are split",
    ),
];

const WORKGROUP_SIZE: u64 = 256;

/// Rows that a team of `gemv_columns` takes at once.
const COLUMNS_UNROLL: u64 = 8;

/// Columns as long as this are summed faster by `tiled` on processors: 1.0 to 2.4 times as fast at 256 x 256,
/// 2048 x 2048 and 262144 x 16 on Mesa 22.3 and SwiftShader; 16 x 262144 takes three to five times as long.
const LONG_COLUMN: usize = 256;

/// Constants of `tiled` that depend on the device.
struct Policy {
    /// Workgroups that fill the device: fewer make it worth while to split rows.
    workgroups: u64,
    /// Rows that share each load of x, where there are enough of them: 1, 2 or 4.
    rows: u64,
    /// Loads of A that an invocation has in flight: steps along a row are unrolled 2 or 4 times for it.
    loads: u64,
    /// Lanes of a workgroup that lie side by side along a row of A transposed.
    column_lanes: u64,
    /// Workgroups that A transposed is cut into.
    column_workgroups: u64,
}

fn policy(profile: &DeviceProfile) -> Policy {
    if profile.is_cpu() {
        Policy { workgroups: 64, rows: 4, loads: 4, column_lanes: 64, column_workgroups: 64 }
    } else {
        // Six workgroups a multiprocessor of an H100 are what reductions need there; the rest is by design: rows
        // of 1 KiB a team, so many workgroups that the last ones to finish do not count. GB/s there (Vulkan, driver
        // 580.159.04), then transposed: 16384 x 16384 3077 and 3011, 16383 x 16381 2846 and 2542, 4096 x 4096 2303 and
        // 2100, 1024 x 2^18 2965 and 2990, 2^18 x 1024 3127 and 2980.
        Policy { workgroups: 792, rows: 2, loads: 4, column_lanes: 64, column_workgroups: 2112 }
    }
}

/// The longest sum of one invocation of `naive`.
fn naive_terms(profile: &DeviceProfile) -> u64 {
    profile.loop_steps(1, 1 << 20)
}

/// Rows of A that one binding shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Band {
    first_row: u64,
    rows: u64,
}

/// What one dispatch over a band does.
struct Launch {
    band: Band,
    parts: u64,
    /// Terms of a part, where parts are contiguous.
    part_len: u64,
    workgroups: u64,
}

impl Gemv {
    /// The product of a matrix that is stored m x k and a vector.
    pub fn new(m: usize, k: usize) -> Self {
        Self { m, k, alpha: 1.0, beta: 0.0, trans: false, lda: None, variant: "auto".into() }
    }

    /// Factor of the product; 1 by default. With 0, `a` and `x` are not read.
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

    /// Whether A is transposed: `x` then has m elements and `y` k. False by default.
    #[must_use]
    pub fn trans(mut self, trans: bool) -> Self {
        self.trans = trans;
        self
    }

    /// Elements from one stored row of `a` to the next; k by default.
    #[must_use]
    pub fn lda(mut self, lda: usize) -> Self {
        self.lda = Some(lda);
        self
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// Where `a` is stored.
    pub(crate) fn layout(&self) -> Layout {
        Layout { rows: self.m, cols: self.k, ld: self.lda.unwrap_or(self.k) }
    }

    /// Elements of `x` and of `y`.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        if self.trans { (self.m, self.k) } else { (self.k, self.m) }
    }

    /// The shape, for texts.
    fn name(&self) -> String {
        format!("gemv {} x {}{}", self.m, self.k, if self.trans { " transposed" } else { "" })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        let f16 = dtype == DType::F16;
        if let Some(missing) = (Requires { f16, ..Requires::NOTHING }).missing(profile) {
            return Err(err!(
                Unsupported,
                "{name}: elements of f16 need {missing}, which {} does not have; convert them to f32",
                profile.name
            ));
        }
        let (x_len, y_len) = self.lengths();
        let operands = vec![
            Operand { name: "a", dtype, len: self.stored_len()?, access: Access::Read },
            Operand { name: "x", dtype, len: x_len, access: Access::Read },
            Operand { name: "y", dtype, len: y_len, access: Access::ReadWrite },
        ];
        for operand in &operands {
            check_operand(&name, operand, profile)?;
        }
        let (_, mut decision) = choose("gemv", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let product = x_len > 0 && self.alpha != 0.0;
        if !product {
            let zero = if x_len == 0 { "the length of x" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and x are not read"));
        }
        let mut program = Program::new("gemv", decision);
        program.cost = self.cost(dtype, product);
        program.operands = operands;
        if y_len > 0 {
            let lowering = Lowering { gemv: self, name, profile, program };
            return if product { lowering.product() } else { lowering.scale() };
        }
        Ok(program)
    }

    /// Elements of `a`: all rows but the last have their full distance.
    fn stored_len(&self) -> Result<usize> {
        let Layout { rows, cols, ld } = self.layout();
        let name = self.name();
        if ld < cols {
            return Err(err!(
                InvalidArgument,
                "{name}: lda = {ld} is below {cols}, the length of a row of a ({rows} x {cols} as stored); a leading \
                 dimension counts the elements from one row to the next"
            ));
        }
        if rows == 0 || cols == 0 { Ok(0) } else { Ok(elements(&name, "a", &[rows, ld])? - (ld - cols)) }
    }

    /// Which variant, and why.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        if !profile.is_cpu() {
            ("tiled", "reads A once, by vec4 where its rows allow, at the speed of memory".to_owned())
        } else if self.trans && self.m >= LONG_COLUMN {
            ("tiled", "eight rows at a time keep more of A in a processor's caches".to_owned())
        } else {
            ("naive", "on a processor the caches hold x, and barriers are dear".to_owned())
        }
    }

    fn cost(&self, dtype: DType, product: bool) -> Cost {
        let (x_len, y_len) = self.lengths();
        let factors = if product && y_len > 0 { self.m as f64 * self.k as f64 } else { 0.0 };
        let x = if factors > 0.0 { x_len as f64 } else { 0.0 };
        let y = y_len as f64 * if self.beta == 0.0 { 1.0 } else { 2.0 };
        Cost { flop: 2.0 * factors, bytes: (factors + x + y) * dtype.size() as f64 }
    }
}

/// Whether the device can hold the operand and, of all but the matrix, bind the whole.
fn check_operand(name: &str, operand: &Operand, profile: &DeviceProfile) -> Result<()> {
    index_u32(name, &format!("the number of elements of {}", operand.name), operand.len)?;
    let bytes = round_up(operand.bytes(), 4);
    let limits = &profile.limits;
    let (limit, what) = match limits.max_buffer_size.min(limits.max_storage_binding) {
        binding if operand.name != "a" && binding < limits.max_buffer_size => (binding, "storage binding"),
        _ => (limits.max_buffer_size, "buffer"),
    };
    if bytes <= limit {
        return Ok(());
    }
    Err(err!(
        TooLarge,
        "{name}: {} has {} elements of {}, {bytes} bytes, above the {limit} bytes of the largest {what} of {}; \
         multiply blocks of A, a call each, with beta = 1 for those that add up",
        operand.name,
        operand.len,
        operand.dtype,
        profile.name
    ))
}

struct Lowering<'a> {
    gemv: &'a Gemv,
    name: String,
    profile: &'a DeviceProfile,
    program: Program,
}

impl Lowering<'_> {
    fn element_size(&self) -> u64 {
        self.program.operands[0].dtype.size() as u64
    }

    fn spec(&self) -> Spec {
        let f16 = self.program.operands[0].dtype == DType::F16;
        Spec::new().alias("T", if f16 { "f16" } else { "f32" }).flag("F16", f16)
    }

    fn params(&self) -> Params {
        let Gemv { alpha, beta, .. } = *self.gemv;
        Params {
            rows: 0,
            cols: 0,
            ld: 0,
            origin: 0,
            first_row: 0,
            parts: 0,
            part_len: 0,
            first_part: 0,
            outputs: self.gemv.lengths().1 as u32,
            read_y: u32::from(beta != 0.0),
            alpha,
            beta,
        }
    }

    fn y(&self) -> Binding {
        Binding::operand(2, &self.program.operands)
    }

    /// `y = beta y`.
    fn scale(mut self) -> Result<Program> {
        let spec = self.spec().constant("SHARE", 1u32).constant("RESULT_BINDING", 1u32);
        let kernel = self.program.kernel(Kernel::library("dense/gemv_finish", "gemv_finish", spec));
        // Without parts the sum is 0, which an infinite or absent alpha must not turn into NaN.
        let params = Params { alpha: 0.0, ..self.params() };
        let workgroups = u64::from(params.outputs).div_ceil(WORKGROUP_SIZE);
        let y = self.y();
        self.program.dispatch(kernel, &params, vec![y], Grid::fold(workgroups));
        Ok(self.program)
    }

    fn product(mut self) -> Result<Program> {
        let Layout { cols, ld, .. } = self.gemv.layout();
        index_u32(&self.name, "lda", ld)?;
        let naive = self.program.variant() == "naive";
        let vectors = !naive && cols.is_multiple_of(4) && ld.is_multiple_of(4);
        let per_load = if vectors { 4 } else { 1 };
        let loads = cols as u64 / per_load;
        let bands = self.bands()?;
        let (kernel, launches) = match (naive, self.gemv.trans) {
            (true, _) => self.naive(&bands),
            (_, false) => self.rows(&bands, loads, vectors),
            (_, true) => self.columns(&bands, loads, vectors),
        };
        // Bands of rows are parts of a transposed sum, and different sums otherwise.
        let trans = self.gemv.trans;
        let parts = match trans {
            true => launches.iter().map(|l| l.parts).sum(),
            false => launches.first().map_or(1, |l| l.parts),
        };
        let target = if parts > 1 { self.partials(parts)? } else { self.y() };
        let kernel = Kernel { spec: kernel.spec.flag("SPLIT", parts > 1), ..kernel };
        let kernel = self.program.kernel(kernel);
        let x = Binding::operand(1, &self.program.operands);
        let mut first_part = 0;
        for launch in launches {
            let (a, origin) = self.bind(launch.band);
            let params = Params {
                rows: launch.band.rows as u32,
                cols: loads as u32,
                ld: (ld as u64 / per_load) as u32,
                origin: (origin / per_load) as u32,
                first_row: launch.band.first_row as u32,
                parts: launch.parts as u32,
                part_len: launch.part_len as u32,
                first_part: first_part as u32,
                ..self.params()
            };
            self.program.dispatch(kernel, &params, vec![a, x, target], Grid::fold(launch.workgroups));
            first_part += if trans { launch.parts } else { 0 };
        }
        if parts > 1 {
            self.finish(parts, target);
        }
        Ok(self.program)
    }

    /// Cuts A into bands of rows that one binding holds each.
    fn bands(&self) -> Result<Vec<Band>> {
        let Layout { rows, cols, ld } = self.gemv.layout();
        let (rows, cols, ld, size) = (rows as u64, cols as u64, ld as u64, self.element_size());
        let limit = self.profile.limits.max_storage_binding.min(u64::from(u32::MAX) / 4 * 4);
        if self.program.operands[0].bytes() <= limit {
            return Ok(vec![Band { first_row: 0, rows }]);
        }
        // A band may begin up to 255 bytes into its binding.
        let room = limit.saturating_sub(256);
        if cols * size > room {
            return Err(err!(
                TooLarge,
                "{}: a row of a has {} bytes; of {}, whose largest storage binding has {}, a row can have {room}; \
                 multiply blocks of columns, a call each",
                self.name,
                cols * size,
                self.profile.name,
                self.profile.limits.max_storage_binding
            ));
        }
        let most = (room - cols * size) / (ld * size) + 1;
        // Bands of about equal size.
        let step = rows.div_ceil(rows.div_ceil(most));
        let band = |i| Band { first_row: i * step, rows: step.min(rows - i * step) };
        Ok((0..rows.div_ceil(step)).map(band).collect())
    }

    /// The binding that shows a band, and where the band begins in it, in elements.
    fn bind(&self, band: Band) -> (Binding, u64) {
        let Layout { cols, ld, .. } = self.gemv.layout();
        let size = self.element_size();
        let first = band.first_row * ld as u64 * size;
        let offset = first / 256 * 256;
        let bytes = ((band.rows - 1) * ld as u64 + cols as u64) * size;
        let binding = Binding { resource: Resource::Operand(0), offset, size: first - offset + bytes };
        (binding, (first - offset) / size)
    }

    fn naive(&self, bands: &[Band]) -> (Kernel, Vec<Launch>) {
        let kernel =
            Kernel::library("dense/gemv_naive", "gemv_naive", self.spec().flag("TRANS", self.gemv.trans));
        let (cols, part_len) = (self.gemv.k as u64, naive_terms(self.profile));
        let launch = |&band: &Band| {
            let (outputs, terms) = if self.gemv.trans { (cols, band.rows) } else { (band.rows, cols) };
            let parts = terms.div_ceil(part_len);
            Launch { band, parts, part_len, workgroups: parts * outputs.div_ceil(WORKGROUP_SIZE) }
        };
        (kernel, bands.iter().map(launch).collect())
    }

    fn rows(&self, bands: &[Band], loads: u64, vectors: bool) -> (Kernel, Vec<Launch>) {
        let policy = policy(self.profile);
        let m = self.gemv.m as u64;
        // As many lanes as have two loads each.
        let lanes = (loads / 2).next_power_of_two().min(WORKGROUP_SIZE);
        let teams = WORKGROUP_SIZE / lanes;
        // Rows share loads where that leaves two workgroups for each place.
        let shared = |rows: &u64| *rows == 1 || m.div_ceil(teams * rows) >= 2 * policy.workgroups;
        let rows = [policy.rows, 2, 1].into_iter().find(shared).unwrap_or(1);
        let unroll = if policy.loads / rows >= 4 { 4 } else { 2 };
        // At least eight steps a lane, or a second pass costs more than it brings.
        let useful = (loads / (lanes * unroll * 8)).max(1);
        let parts = (policy.workgroups / m.div_ceil(teams * rows)).clamp(1, useful);
        let spec = self
            .spec()
            .constant("LANES", lanes as u32)
            .flag("VECTORS", vectors)
            .flag("ROWS_2", rows == 2)
            .flag("ROWS_4", rows == 4)
            .flag("DEEP", unroll == 4)
            .flag("TWO_STAGE", lanes == WORKGROUP_SIZE && self.profile.features.subgroups);
        let launch = |&band: &Band| {
            let workgroups = band.rows.div_ceil(teams * rows) * parts;
            Launch { band, parts, part_len: 0, workgroups }
        };
        let kernel = Kernel::library("dense/gemv_rows", "gemv_rows", spec);
        (kernel, bands.iter().map(launch).collect())
    }

    fn columns(&self, bands: &[Band], loads: u64, vectors: bool) -> (Kernel, Vec<Launch>) {
        let policy = policy(self.profile);
        let lanes = loads.next_power_of_two().min(policy.column_lanes);
        let step = WORKGROUP_SIZE / lanes * COLUMNS_UNROLL;
        let strips = loads.div_ceil(lanes);
        let wanted = policy.column_workgroups.div_ceil(strips).div_ceil(bands.len() as u64);
        let launch = |&band: &Band| {
            // At least four steps a team, or the second pass costs more than it brings.
            let parts = wanted.clamp(1, band.rows.div_ceil(4 * step));
            let part_len = round_up(band.rows.div_ceil(parts), step);
            let parts = band.rows.div_ceil(part_len);
            Launch { band, parts, part_len, workgroups: strips * parts }
        };
        let spec = self.spec().constant("LANES", lanes as u32).flag("VECTORS", vectors);
        let kernel = Kernel::library("dense/gemv_columns", "gemv_columns", spec);
        (kernel, bands.iter().map(launch).collect())
    }

    /// A scratch area for `parts` sums for each element of y.
    fn partials(&mut self, parts: u64) -> Result<Binding> {
        let outputs = self.gemv.lengths().1 as u64;
        let bytes = 4 * outputs * parts;
        let limit = self.profile.limits.max_storage_binding.min(u64::from(u32::MAX));
        if bytes > limit {
            return Err(err!(
                TooLarge,
                "{}: {parts} parts of {outputs} sums need {bytes} bytes of scratch; {limit} is the most on {}; multiply \
                 blocks of columns, a call each",
                self.name,
                self.profile.name
            ));
        }
        Ok(self.program.scratch(bytes))
    }

    /// Adds up the parts.
    fn finish(&mut self, parts: u64, partial: Binding) {
        let share = (parts / 4).next_power_of_two().min(WORKGROUP_SIZE);
        let spec =
            self.spec().constant("SHARE", share as u32).constant("RESULT_BINDING", 2u32).flag("PARTS", true);
        let kernel = self.program.kernel(Kernel::library("dense/gemv_finish", "gemv_finish", spec));
        let params = Params { parts: parts as u32, ..self.params() };
        let workgroups = u64::from(params.outputs).div_ceil(WORKGROUP_SIZE / share);
        let y = self.y();
        self.program.dispatch(kernel, &params, vec![partial, y], Grid::fold(workgroups));
    }
}

operands! {
    impl[T: Element,] Gemv, T {
        fn record(a: T, x: T, y: T);
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl Op<$t> for Gemv {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                self.lower_as(<$t>::DTYPE, profile)
            }
        }
    )*};
}
op!(f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "gemv",
    about: "y = alpha op(A) x + beta y",
    inputs: &[Input::new("a", "(m, k)"), Input::new("x", "(k); (m) with trans"), Input::optional("y", "(m)")],
    types: &[DType::F32, DType::F16],
    options: &[Setting::flag("trans"), ALPHA, BETA],
    make: Some(make),
    variants: Gemv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let settings = asked.settings();
    let trans = settings.has("trans");
    let (a, [m, k]) = asked.array("a")?;
    let (terms, outputs) = if trans { (m, k) } else { (k, m) };
    let x = asked.like("x", &[terms])?;
    let beta = settings.number(BETA.name)?;
    let y = if asked.has_more() {
        Role::Updated(asked.like("y", &[outputs])?)
    } else if beta != 0.0 {
        return Err(err!(InvalidArgument, "gemv: --beta {beta} needs y, the third input"));
    } else {
        Role::Result(vec![outputs])
    };
    let op =
        Gemv::new(m, k).trans(trans).alpha(settings.number(ALPHA.name)?).beta(beta).variant(asked.variant());
    by_type!(asked, a.dtype(), [f32, f16], T => {
        Ok(Form::new::<T>(op, vec![Role::Given(a), Role::Given(x), y]))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut samples = Vec::new();
    // Whole vec4s or not; teams of one, some and all lanes; few rows and many; parts.
    let shapes = [
        (3, 1 << 16),
        (3, (1 << 16) + 1),
        (1 << 11, 1 << 11),
        (1 << 11, 2047),
        (1 << 12, 64),
        (1 << 13, 2),
        (1 << 16, 5),
    ];
    for (m, k) in shapes {
        for trans in [false, true] {
            samples.push(Gemv::new(m, k).trans(trans));
        }
    }
    samples.push(Gemv::new(4, 0).beta(1.0));
    let types: &[DType] = if profile.features.f16 { &[DType::F32, DType::F16] } else { &[DType::F32] };
    types
        .iter()
        .flat_map(|&t| samples.iter().map(move |gemv| gemv.clone().variant(variant).lower_as(t, profile)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn lower(gemv: &Gemv, profile: &DeviceProfile) -> Result<Program> {
        Op::<f32>::lower(gemv, profile)
    }

    fn refusal(gemv: &Gemv, profile: &DeviceProfile) -> (ErrorKind, String) {
        let e = lower(gemv, profile).unwrap_err();
        (e.kind(), e.to_string())
    }

    #[test]
    fn a_large_square_fills_a_card_both_ways() {
        let h100 = DeviceProfile::h100();
        let rows = lower(&Gemv::new(16384, 16384), &h100).unwrap();
        assert_eq!((rows.dispatches.len(), rows.scratch_bytes()), (1, 0));
        assert_eq!(rows.dispatches[0].grid, Grid::fold(8192));
        let columns = lower(&Gemv::new(16384, 16384).trans(true), &h100).unwrap();
        assert_eq!(columns.dispatches[0].grid, Grid::fold(2048));
        assert_eq!(columns.scratch_bytes(), 32 * 4 * 16384);
        assert!(columns.scratch_bytes() as f64 * 100.0 < columns.cost.bytes);
    }

    #[test]
    fn a_matrix_above_one_binding_is_taken_in_bands_that_cover_every_row_once() {
        let webgpu = DeviceProfile::webgpu_defaults();
        for (gemv, bands) in [
            (Gemv::new(5000, 10_001), 2),
            (Gemv::new(5000, 10_001).trans(true), 2),
            (Gemv::new(30_000_000, 2), 2),
            (Gemv::new(3, 20_000_000), 3),
            (Gemv::new(100, 3).lda(500_000), 2),
        ] {
            for variant in ["naive", "tiled"] {
                let program = lower(&gemv.clone().variant(variant), &webgpu).unwrap();
                let of_a = |d: &&crate::program::Dispatch| d.bindings[0].resource == Resource::Operand(0);
                assert_eq!(program.dispatches.iter().filter(of_a).count(), bands, "{gemv:?}");
                let mut next = 0;
                for (i, d) in program.dispatches.iter().enumerate().filter(|(_, d)| of_a(d)) {
                    assert!(d.bindings.iter().all(|b| b.size <= webgpu.limits.max_storage_binding));
                    assert_eq!(program.param(i, "first_row"), next);
                    next += program.param(i, "rows");
                }
                assert_eq!(next, gemv.m as u64);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let webgpu = DeviceProfile::webgpu_defaults();
        let (kind, text) = refusal(&Gemv::new(3, 5).lda(4), &webgpu);
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(text.starts_with("gemv 3 x 5: ") && text.contains("lda = 4 is below 5"), "{text}");
        let (kind, text) = refusal(&Gemv::new(1 << 14, 1 << 14), &webgpu);
        assert!(kind == ErrorKind::TooLarge && text.contains("1073741824 bytes"), "{text}");
        assert!(text.contains("largest buffer"), "{text}");
        let (kind, text) = refusal(&Gemv::new(1, 40_000_000), &webgpu);
        assert!(kind == ErrorKind::TooLarge && text.contains("largest storage binding"), "{text}");
        assert_eq!(refusal(&Gemv::new(usize::MAX, 2), &webgpu).0, ErrorKind::TooLarge);
        assert_eq!(refusal(&Gemv::new(1, 1).variant("fast"), &webgpu).0, ErrorKind::InvalidArgument);
        let e = Op::<f16>::lower(&Gemv::new(4, 4), &DeviceProfile::swiftshader()).unwrap_err();
        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
    }

    #[test]
    fn what_has_factor_0_is_not_bound() {
        for gemv in [Gemv::new(40, 0), Gemv::new(0, 40).trans(true), Gemv::new(40, 7).alpha(0.0)] {
            for variant in ["naive", "tiled"] {
                let gemv = gemv.clone().variant(variant).beta(2.0);
                let program = lower(&gemv, &DeviceProfile::webgpu_defaults()).unwrap();
                let bound: Vec<_> = program.dispatches[0].bindings.iter().map(|b| b.resource).collect();
                assert_eq!(bound, [Resource::Operand(2)]);
                assert_eq!(program.cost, Cost { flop: 0.0, bytes: 2.0 * 4.0 * 40.0 });
            }
        }
        let program = lower(&Gemv::new(0, 9), &DeviceProfile::h100()).unwrap();
        assert!(program.dispatches.is_empty() && program.cost.bytes == 0.0);
    }

    #[test]
    fn auto_follows_the_device() {
        let variant = |gemv: &Gemv, profile: &DeviceProfile| lower(gemv, profile).unwrap().variant();
        let square = Gemv::new(300, 300);
        assert_eq!(variant(&square, &DeviceProfile::h100()), "tiled");
        assert_eq!(variant(&square, &DeviceProfile::webgpu_defaults()), "tiled");
        assert_eq!(variant(&square, &DeviceProfile::mesa()), "naive");
        assert_eq!(variant(&square.trans(true), &DeviceProfile::mesa()), "tiled");
    }
}
