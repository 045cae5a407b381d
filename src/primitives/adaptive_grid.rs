use super::compact::VARIANTS;
use super::frontier::{Levels, decision, rooms};
use crate::program::prelude::*;
use std::sync::Arc;

kernel_params! {
    struct MeasureParams { level: u32, depth: u32, threshold: f32, width: u32, height: u32 }
}

/// Words of a cell.
const WORDS: usize = 4;
const DEEPEST: u32 = 12;
/// The largest width and height: kernels compute places in f32.
const MAX_EXTENT: usize = 1 << 24;

#[derive(Debug, Clone, PartialEq, Eq)]
enum GridField {
    /// Height and width of an image.
    Image([usize; 2]),
    /// The text of a WGSL function.
    Function(Arc<str>),
}

/// Refines a grid where a field varies: a cell whose 8 x 8 samples differ by more than `threshold` is split into four,
/// down to `depth`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // 1 in the lower left quarter of the unit square, and 0 elsewhere.
/// let gpu = Gpu::new()?;
/// let field = "fn field(p: vec2<f32>) -> f32 { return f32(p.x < 0.5 && p.y < 0.5); }";
/// let grid = AdaptiveGrid::of_function(field).levels(0, 8);
/// let (nodes, values) = (gpu.alloc::<u32>(4 * grid.max_nodes())?, gpu.alloc::<f32>(2 * grid.max_nodes())?);
/// let count = gpu.alloc::<u32>(1)?;
/// let plan = grid.plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record_function(&mut rec, &nodes, &values, &count)?;
/// rec.submit()?;
/// assert_eq!(count.read()?, [5]); // the square and its quarters, which are even
/// assert_eq!(nodes.slice(..8)?.read()?, [1, 0, 0, 0, u32::MAX, 1, 0, 0]); // first child, level, x, y
/// assert_eq!(values.slice(..4)?.read()?, [0.25, 1.0, 1.0, 0.0]); // mean, range
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `image`, of a grid [`of_image`](AdaptiveGrid::of_image), has `h w` f32 in rows. `nodes` has 4
/// [`max_nodes`](AdaptiveGrid::max_nodes) u32 and `values` 2 f32 for each node, of which those of the first `count`
/// are written. A node is a cell: the number of the first of its four children, 2^32 - 1 for a leaf; its level; its
/// column and row among the 2^level x 2^level cells of its level. Its values are the mean and the range (largest minus
/// smallest) of its samples. All cells of the first level are there, along the Morton curve; then come levels in order,
/// and children in the order of their parents: (0, 0), (1, 0), (0, 1), (1, 1).
///
/// Samples lie at the centres of 8 x 8 equal parts of a cell. Of an image each is the pixel that it falls on, by one
/// product in f32.
///
/// A cell with a sample that is NaN or infinite has NaN for mean and range, and does not split. A cell without room for
/// four children in `nodes` does not split either: a leaf above level `depth` with a range above the threshold. There
/// is always room unless [`limit`](AdaptiveGrid::limit) is set.
///
/// # Precision and determinism
/// The range is exact up to one rounding, the mean a sum of 64 numbers in a fixed order. The same image gives the same
/// cells and ranges on every device; devices may evaluate your function differently. Ranges below 2^-126 may
/// count as 0.
///
/// # Cost
/// 64 samples for each cell, and for each level a [`Frontier`] and an indirect dispatch. No count returns to the host.
/// Scratch: 12 bytes for each cell of the largest level, and that of the selection.
///
/// [`Frontier`]: crate::Frontier
///
/// # Variants
/// Those of [`Frontier`], which lists the cells that split.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an extent of 0, levels that are not in order or above 12,
///   a threshold that is not a number from 0, a limit that the first level exceeds, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an extent above 2^24, or an operand above the device's largest binding;
///   set a [`limit`](AdaptiveGrid::limit).
/// - [`Shader`](ErrorKind::Shader): a function that does not compile.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that the device cannot run.
///
/// # Algorithm
/// Adaptive refinement (M. J. Berger and J. Oliger, 1984) on a quadtree, level by level without launches from the host,
/// as dynamic parallelism does it: `shaders/primitives/adaptive_grid_measure.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveGrid {
    field: GridField,
    first: u32,
    depth: u32,
    threshold: f32,
    given: bool,
    limit: Option<usize>,
    variant: String,
}

impl AdaptiveGrid {
    fn new(field: GridField) -> Self {
        Self { field, first: 3, depth: 8, threshold: 0.1, given: false, limit: None, variant: "auto".into() }
    }

    /// Refines a grid over an image of height and width `[h, w]`: levels 3 to 8, threshold 0.1.
    pub fn of_image(extents: [usize; 2]) -> Self {
        Self::new(GridField::Image(extents))
    }

    /// Refines a grid over your WGSL function `fn field(p: vec2<f32>) -> f32` on the unit square: levels 3 to 8,
    /// threshold 0.1. The text runs as [`CustomOp`](crate::CustomOp) says. Such a plan has no image and is recorded by
    /// `record_function`.
    pub fn of_function(wgsl: &str) -> Self {
        Self::new(GridField::Function(wgsl.into()))
    }

    /// Sets the level whose cells are all in the grid, and the deepest level, at most 12.
    #[must_use]
    pub fn levels(mut self, first: u32, depth: u32) -> Self {
        (self.first, self.depth) = (first, depth);
        self
    }

    /// Sets the range above which a cell is split.
    #[must_use]
    pub fn threshold(mut self, range: f32) -> Self {
        self.threshold = range;
        self
    }

    /// Reads the threshold from an operand of one f32, a [`Gpu::uniform`](crate::Gpu::uniform) that plans take by
    /// `with_threshold`, instead of the one given: it changes without a new plan. A negative one splits every cell, NaN
    /// none.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let grid = AdaptiveGrid::of_image([2, 2]).levels(0, 1).with_threshold();
    /// let (image, threshold) = (gpu.upload(&[0.0f32, 0.0, 0.0, 1.0])?, gpu.uniform(&[2.0f32])?);
    /// let (nodes, values, count) = (gpu.alloc::<u32>(20)?, gpu.alloc::<f32>(10)?, gpu.alloc::<u32>(1)?);
    /// let plan = grid.plan::<f32>(&gpu)?;
    /// let mut cells = Vec::new();
    /// for range in [2.0, 0.5] {
    ///     threshold.write(&[range])?;
    ///     let mut rec = gpu.recorder();
    ///     plan.with_threshold(&threshold).record(&mut rec, &image, &nodes, &values, &count)?;
    ///     rec.submit()?;
    ///     cells.extend(count.read()?);
    /// }
    /// assert_eq!(cells, [1, 5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn with_threshold(mut self) -> Self {
        self.given = true;
        self
    }

    /// Sets the maximum number of cells of all levels together. The default is enough for any field.
    #[must_use]
    pub fn limit(mut self, cells: usize) -> Self {
        self.limit = Some(cells);
        self
    }

    variants!(variant);

    /// Returns the number of cells that the operands `nodes` and `values` have room for.
    ///
    /// ```
    /// use tilework::AdaptiveGrid;
    /// assert_eq!(AdaptiveGrid::of_image([480, 640]).levels(1, 3).max_nodes(), 4 + 16 + 64);
    /// ```
    pub fn max_nodes(&self) -> usize {
        let all = self.rooms().iter().sum::<u64>() as usize;
        self.limit.map_or(all, |limit| all.min(limit))
    }

    /// Maximum cells of each level.
    fn rooms(&self) -> Vec<u64> {
        let first = self.first.min(DEEPEST);
        rooms(1 << (2 * first), self.depth.min(DEEPEST).saturating_sub(first), u64::MAX / 4)
    }

    fn check(&self) -> Result<()> {
        let Self { first, depth, threshold, limit, .. } = *self;
        if first > depth || depth > DEEPEST {
            return Err(err!(
                InvalidArgument,
                "adaptive-grid: levels {first} to {depth}; the first must not be above the deepest, which is at most \
                 {DEEPEST}"
            ));
        }
        if !(threshold >= 0.0 && threshold.is_finite()) {
            return Err(err!(
                InvalidArgument,
                "adaptive-grid: the threshold is {threshold:?}; it must be a number from 0"
            ));
        }
        let cells = 1usize << (2 * first);
        if let Some(limit) = limit.filter(|limit| *limit < cells) {
            return Err(err!(
                InvalidArgument,
                "adaptive-grid: the limit is {limit} cells; level {first} alone has {cells}"
            ));
        }
        let GridField::Image([h, w]) = self.field else { return Ok(()) };
        if h == 0 || w == 0 {
            return Err(err!(InvalidArgument, "adaptive-grid: an image of {h} x {w} pixels; it needs at least one"));
        }
        if h.max(w) > MAX_EXTENT {
            return Err(err!(
                TooLarge,
                "adaptive-grid: an image of {h} x {w} pixels; each extent may be at most {MAX_EXTENT}; make it smaller"
            ));
        }
        Ok(())
    }

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let Self { first, depth, threshold, .. } = *self;
        let (rooms, most) = (self.rooms(), self.max_nodes());
        let largest = rooms.iter().copied().max().unwrap_or(1).min(most as u64);
        let mut program = Program::new(INFO.name, decision(INFO.name, &self.variant, largest as usize, profile)?);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let [mut height, mut width] = [1; 2];
        if let GridField::Image([h, w]) = self.field {
            program.operands.push(operand("image", DType::F32, h.saturating_mul(w), Access::Read));
            [height, width] = [h as u32, w as u32];
        }
        let images = program.operands.len();
        if self.given {
            program.operands.push(operand("threshold", DType::F32, 1, Access::Read));
        }
        let inputs = program.operands.len();
        program.operands.extend([
            operand("nodes", DType::U32, WORDS * most, Access::Write),
            operand("values", DType::F32, 2 * most, Access::Write),
            operand("count", DType::U32, 1, Access::Write),
        ]);
        profile.check_bindings(INFO.name, &program.operands, "set a limit of cells")?;
        let sampled = 64.0 * rooms[0] as f64;
        program.cost = Cost {
            flop: 3.0 * sampled,
            bytes: program.operands[..images].iter().fold(0.0, |bytes, o| bytes + o.bytes() as f64),
        };
        let bound: Vec<_> = (0..inputs + 3).map(|i| Binding::operand(i, &program.operands)).collect();
        let mut levels = Levels::new(program, bound[inputs + 2], &rooms, most as u32);
        let mut spec = Spec::new();
        if let GridField::Function(text) = &self.field {
            spec = spec.slot("field", Fragment::of_user(text));
        }
        let params = |level| MeasureParams { level: first + level, depth, threshold, width, height };
        let mut bindings = vec![bound[inputs], bound[inputs + 1], levels.flags, levels.numbers];
        bindings.extend(&bound[..inputs]);
        // `before`: bindings before those of the inputs.
        let kernel = |spec: Spec, before: usize| {
            let at = (before + images) as u32;
            let spec = if self.given { spec.flag("GIVEN", true).constant("THRESHOLD_BINDING", at) } else { spec };
            Kernel::of_file("primitives/adaptive_grid_measure", spec)
        };
        let measure_all = levels.program.kernel(kernel(spec.clone().flag("FIRST", true), 7));
        let all = [levels.count, levels.length].iter().chain(&bindings).copied().collect();
        levels.program.dispatch(measure_all, &params(0), all, Grid::fold(rooms[0]));
        levels.grow(kernel(spec, 8), 1, params, &bindings, profile)
    }
}

operands! {
    impl[] AdaptiveGrid, f32 {
        fn record(image: f32, nodes: u32, values: f32, count: u32);
        fn record_function(nodes: u32, values: f32, count: u32);
        /// Takes the threshold, a uniform.
        optional with_threshold(threshold: f32);
    }
}

lowered_as!(AdaptiveGrid: f32);

pub(super) const INFO: Operation = Operation {
    name: "adaptive-grid",
    about: "a cell of an image whose samples differ by more than `threshold` is split into four, on the device",
    inputs: &[Input::new("image", "(h, w)")],
    outputs: &[("nodes", "u32 (count, 4)"), ("values", "(count, 2)")],
    types: &[DType::F32],
    options: &[
        Setting::number("first", "3"),
        Setting::number("depth", "8"),
        Setting::number("threshold", "0.1"),
        Setting::array("device-threshold", "(1)"),
        Setting::number("limit", ""),
    ],
    domains: &[("image", Domain::Any)],
    make: Some(make),
    variants: AdaptiveGrid::variants,
    samples,
    example: Example { shape: &[16, 16], options: &[("first", "1"), ("depth", "4")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (image, extents) = asked.array("image")?;
    asked.check_type(&image)?;
    let settings = asked.settings();
    let mut op = AdaptiveGrid::of_image(extents).variant(asked.variant());
    op = op.levels(settings.number("first")?, settings.number("depth")?);
    op = op.threshold(settings.number("threshold")?);
    if let Some(limit) = settings.maybe("limit")? {
        op = op.limit(limit);
    }
    let threshold = asked.named_of("device-threshold", &[1], DType::F32)?;
    if threshold.is_some() {
        op = op.with_threshold();
    }
    let inputs = [image].into_iter().chain(threshold).map(Role::Given);
    let operands = inputs.chain([Role::CountedRows(WORDS), Role::CountedRows(2), Role::Count]).collect();
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: AdaptiveGrid| Op::<f32>::lower(&op.levels(1, 3).variant(variant), profile);
    let field = "fn field(p: vec2<f32>) -> f32 { return p.x * p.y; }";
    let ops = [AdaptiveGrid::of_image([5, 7]), AdaptiveGrid::of_function(field)];
    ops.iter().flat_map(|op| [of(op.clone()), of(op.clone().with_threshold())]).collect()
}
