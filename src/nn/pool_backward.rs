use super::by_name::{COUNT_INCLUDE_PAD, DILATION, FLOATS, KERNEL, KIND, PAD, STRIDE, WEIGHTS, pooling};
use super::pool::{Pool2d, PoolKind};
use super::windows::{ChunkedOperands, MAX_STEPS, Windows, window_methods};
use crate::program::prelude::*;

/// Computes the gradient of [`Pool2d`] with respect to its input: `dx` of a cell is the sum of its
/// shares of `dy` over all windows that contain it.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::Pool2dBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, dy) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.upload(&[5.0f32])?);
/// let dx = gpu.alloc::<f32>(4)?;
/// let plan = Pool2dBackward::new(PoolKind::Max, [1, 1, 2, 2], [2, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &dy, &dx)?;
/// rec.submit()?;
/// assert_eq!(dx.read()?, [0.0, 0.0, 0.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Max`](PoolKind::Max) gives all of `dy` to the first largest cell of a window; NaN counts as largest, and of
/// several NaN the last. [`Average`](PoolKind::Average) gives each cell `dy` over the number of cells,
/// [`L2`](PoolKind::L2) `dy` times the cell over the window's root of squares (0 if that is 0),
/// [`Weighted`](PoolKind::Weighted) `dy` times the cell's weight. With a fused bias or activation, apply
/// [`ActivationBackward`](super::ActivationBackward) and [`BiasBackward`](super::BiasBackward) first.
///
/// # Shapes
/// As [`Pool2d`] without bias and activation: `x` and `dx` are N x C x H x W, `dy` is N x C x P x Q.
/// `dx` must not share a wgpu buffer with the others.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// Shares are gathered without atomics and added in f32 in a fixed order. If all squares of a window are below 1.2e-38,
/// its root and its shares may be 0. The same device and inputs give the same bits.
///
/// # Cost
/// In `direct` each cell reads all windows that contain it, about `R S / stride` times R S cells, through the cache.
/// `pairs` reads and writes each element once. One dispatch for each chunk of `x` that fits a binding; no scratch.
///
/// # Variants
/// `direct` takes any windows; `pairs` takes windows of 2 x 2 that do not overlap, without padding, in an even number
/// of rows of a multiple of 4. `auto` (the default) takes `pairs` where it can.
///
/// # Errors
/// Those of [`Pool2d`], and [`TooLarge`](ErrorKind::TooLarge) if a cell lies in too many
/// windows of too many cells.
///
/// # Algorithm
/// `shaders/nn/pool_backward_direct.wgsl`, `pool_backward_pairs.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool2dBackward {
    kind: PoolKind,
    windows: Windows,
    weights: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "a thread for each cell gathers from the windows that contain it"),
    Variant::portable("pairs", "adjacent windows of 2 x 2: vec4 loads and stores, each element once"),
];

/// Pairs of windows for each thread of `pairs`.
const UNITS: u32 = 2;

impl Pool2dBackward {
    /// Takes the shape of `x` (N, C, H, W) and of the windows (R, S). The default stride makes windows adjacent.
    pub fn new(kind: PoolKind, shape: [usize; 4], kernel: [usize; 2]) -> Self {
        Self { kind, windows: Windows::new("pool-backward", shape, kernel), weights: false, variant: "auto".into() }
    }

    /// Creates the gradient of a layer. Its bias and activation do not enter.
    pub(super) fn of(pool: &Pool2d) -> Self {
        let windows = Windows { op: INFO.name, ..pool.windows.clone() };
        Self { kind: pool.kind.clone(), windows, weights: pool.weights, variant: "auto".into() }
    }

    window_methods!();

    /// Reads the weights of [`Weighted`](PoolKind::Weighted) from an operand `weights`, as
    /// [`Pool2d::with_weights`](super::Pool2d::with_weights).
    #[must_use]
    pub fn with_weights(mut self) -> Self {
        self.weights = true;
        self
    }

    variants!(variant);

    /// Returns the shape of `dy`: N, C, P, Q.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the windows do not fit.
    pub fn dy_shape(&self) -> Result<[usize; 4]> {
        self.windows.output_shape()
    }

    pub(crate) fn parts(&self) -> (&PoolKind, &Windows) {
        (&self.kind, &self.windows)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let windows = &self.windows;
        self.kind.check(windows)?;
        // A thread walks all windows that contain its cell.
        let [r, s] = windows.kernel;
        let held = r.div_ceil(windows.stride[0].max(1)).saturating_mul(s.div_ceil(windows.stride[1].max(1)));
        let steps = held.saturating_mul(r.saturating_mul(s)).saturating_add(r.saturating_mul(s));
        if steps > MAX_STEPS {
            return Err(err!(
                TooLarge,
                "pool-backward: a cell lies in {held} windows of {r} x {s}, which take {steps} steps; every driver \
                 runs at most {}; use smaller windows or larger strides",
                MAX_STEPS
            ));
        }
        let pairs = windows.are_pairs() && windows.shape[2].is_multiple_of(2);
        let (variant, decision) = choose("pool-backward", &self.variant, VARIANTS, profile, || {
            if pairs {
                ("pairs", "adjacent windows of 2 x 2: reads each vec4 once".to_owned())
            } else {
                ("direct", format!("windows of {r} x {s} overlap, leave gaps or are not aligned"))
            }
        })?;
        let fast = variant.name == "pairs";
        if fast && !pairs {
            return Err(err!(
                Unsupported,
                "pool-backward: the variant `pairs` needs windows of 2 x 2 with stride 2, no padding or dilation, and \
                 an even number of rows of a multiple of 4; these are {r} x {s} with stride {:?} in {} rows of {}; use \
                 `direct` or `auto`",
                windows.stride,
                windows.shape[2],
                windows.shape[3]
            ));
        }
        let mut program = Program::new("pool-backward", decision);
        let (wide, narrow) = windows.lengths()?;
        let [.., h, w] = windows.shape;
        program.operands = vec![
            Operand { name: "x", dtype, len: wide, access: Access::Read },
            Operand { name: "dy", dtype, len: narrow, access: Access::Read },
            Operand { name: "dx", dtype, len: wide, access: Access::Write },
        ];
        if self.weights {
            program.operands.insert(2, self.kind.weights_operand("pool-backward", windows.kernel)?);
        }
        let dx = program.operands.len() - 1;
        program.cost = Cost::of(narrow as f64 * (windows.kernel[0] * windows.kernel[1]) as f64, &program.operands);
        windows.check_sizes(&program, profile)?;
        // Means and weighted sums do not read the cells.
        let weighted = matches!(self.kind, PoolKind::Weighted(_));
        let reads_cells = !weighted && self.kind != PoolKind::Average;
        let mut spec = self
            .kind
            .flagged(Spec::new())
            .slot("element", element_fragment(dtype))
            .constant("GRADIENTS_BINDING", if reads_cells { 2u32 } else { 1 })
            .constant("OUTPUT_BINDING", if reads_cells { 3u32 } else { 2 })
            .flag("HALVES", dtype == DType::F16)
            .flag("CELLS", reads_cells)
            .flag("WEIGHTED", weighted);
        if weighted {
            spec = spec.constant("WEIGHTS_BINDING", 3u32);
        }
        let weights = self.kind.weights(&mut program, self.weights.then_some(2));
        let kernel = if fast {
            Kernel::library("nn/pool_backward_pairs", "pool_backward_pairs", spec.constant("UNITS", UNITS))
        } else {
            let spec = spec.flag("PADDING_COUNTS", windows.padding_counts);
            Kernel::library("nn/pool_backward_direct", "pool_backward_direct", spec)
        };
        let kernel = program.kernel(kernel);
        let operands = ChunkedOperands { dtype, wide: &[0, dx], narrow: &[1], profile };
        windows.each_chunk(&mut program, &operands, |program, params, wide, narrow| {
            let cells = u64::from(params.planes) * (h * w) as u64 + if dtype == DType::F16 { 2 } else { 0 };
            let per_workgroup = if fast { 256 * 8 * u64::from(UNITS) } else { 256 * 4 / dtype.size() as u64 };
            let grid = Grid::fold(cells.div_ceil(per_workgroup));
            let mut bindings = vec![wide[0], narrow[0], wide[1]].split_off(usize::from(!reads_cells));
            bindings.extend(weights);
            program.dispatch(kernel, &params, bindings, grid);
        });
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Pool2dBackward, T {
        fn record(x: T, dy: T, dx: T);
        /// Takes the weights of a window.
        optional with_weights(weights: f32);
    }
}

lowered_as!(Pool2dBackward: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "pool-backward",
    about: "the gradient of pooling with respect to its input",
    inputs: &[Input::new("x", "(N, C, H, W)"), Input::new("dy", "(N, C, P, Q)")],
    outputs: &[("dx", "as x")],
    types: &FLOATS,
    options: &[KIND, WEIGHTS, KERNEL, STRIDE, PAD, DILATION, COUNT_INCLUDE_PAD],
    domains: &[("weights", Domain::Finite)],
    make: Some(make),
    variants: Pool2dBackward::variants,
    samples,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, shape) = asked.array("x")?;
    asked.check_type(&x)?;
    let (kind, windows) = pooling(asked, shape)?;
    let dy = asked.like("dy", &windows.output_shape()?)?;
    let mut op = Pool2dBackward { kind, windows, weights: false, variant: asked.variant().to_owned() };
    let dtype = x.dtype();
    let mut operands = vec![Role::Given(x), Role::Given(dy)];
    if let PoolKind::Weighted(weights) = &op.kind {
        operands.push(Role::Given(HostArray::new(&op.windows.kernel, weights.clone())?));
        op = op.with_weights();
    }
    operands.push(Role::Result(shape.to_vec()));
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for kind in [PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(vec![0.25; 4])] {
        for counts in [false, true] {
            let op = Pool2dBackward::new(kind.clone(), [2, 3, 8, 8], [2, 2])
                .variant(variant)
                .when(counts, |op| op.count_include_pad());
            programs.extend([Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?]);
        }
    }
    let weighted = Pool2dBackward::new(PoolKind::Weighted(vec![0.25; 4]), [2, 3, 8, 8], [2, 2]);
    programs.push(Op::<f32>::lower(&weighted.with_weights().variant(variant), profile)?);
    Ok(programs)
}
