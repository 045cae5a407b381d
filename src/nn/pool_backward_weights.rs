use super::by_name::{DILATION, FLOATS, KERNEL, PAD, STRIDE, windows};
use super::pool::Pool2d;
use super::windows::{ChunkedOperands, MAX_STEPS, Windows, WindowsParams, window_methods};
use crate::program::prelude::*;

/// Computes the gradient of a weighted [`Pool2d`] with respect to its weights: `dw[a, b] = sum over n,
/// c, i, j of dy[n, c, i, j] x[n, c, i stride - pad + a dilation, j stride - pad + b dilation]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::Pool2dBackwardWeights;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2 windows of 1 x 2
/// let (dy, dw) = (gpu.upload(&[1.0f32, 10.0])?, gpu.alloc::<f32>(2)?);
/// let plan = Pool2dBackwardWeights::new([1, 1, 1, 4], [1, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &dy, &dw)?;
/// rec.submit()?;
/// assert_eq!(dw.read()?, [31.0, 42.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// With a fused bias or activation, apply [`ActivationBackward`](super::ActivationBackward) and
/// [`BiasBackward`](super::BiasBackward) first.
///
/// # Shapes
/// As [`Pool2d`]: `x` is N x C x H x W, `dy` N x C x P x Q; `dw` is R x S. Cells of the padding add
/// nothing. `dw` must not share a wgpu buffer with the others.
///
/// # Types
/// f32 and f16 for `x` and `dy`; `dw` is f32, as are all sums.
///
/// # Precision and determinism
/// Sums over the windows of a part by each thread, then in a tree, then over parts, all in a fixed order.
/// [`reference::pool_backward_weights_bound`](crate::reference::pool_backward_weights_bound) bounds the error. The same
/// device and inputs give the same bits. NaN and infinities propagate as in f32 arithmetic.
///
/// # Cost
/// Two flop for each cell of each window. Up to 16 weights are summed at a time; each time reads `dy`, and the cells of
/// `x` under those weights, once. Two dispatches (more for an `x` above the largest binding), and scratch of 4 R S
/// bytes for each of at most about 528 parts.
///
/// # Variants
/// `parts` takes any windows. `columns` takes windows of at most 16 cells, without dilation down: a thread loads the
/// cells under up to eight windows down a column once; in f32, without padding and with rows of whole vec4s, those
/// under four windows of a row. `auto` (the default) takes it where it can.
///
/// # Errors
/// Those of [`Pool2d`], and [`Unsupported`](ErrorKind::Unsupported) for windows of more than
/// 32767 cells.
///
/// # Algorithm
/// `shaders/nn/pool_backward_weights.wgsl`, then `pool_backward_weights_sum.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool2dBackwardWeights {
    windows: Windows,
    variant: String,
}

kernel_params! { struct WeightSumsParams { weights: u32, parts: u32 } }

const VARIANTS: &[Variant] = &[
    Variant::portable("parts", "parts of all windows, several weights at a time, then their sums"),
    Variant::portable("columns", "the same, each thread with windows down a column, whose cells it loads once"),
];

const WORKGROUP: u64 = 256;

/// Maximum weights that a workgroup sums at a time.
const MAX_CELLS: u64 = 16;

impl Pool2dBackwardWeights {
    /// Takes the shape of `x` (N, C, H, W) and of the windows (R, S). The default stride makes windows adjacent.
    pub fn new(shape: [usize; 4], kernel: [usize; 2]) -> Self {
        Self { windows: Windows::new(INFO.name, shape, kernel), variant: "auto".into() }
    }

    /// Creates the gradient of a layer. Its bias and activation do not enter.
    pub(super) fn of(pool: &Pool2d) -> Self {
        Self { windows: Windows { op: INFO.name, ..pool.windows.clone() }, variant: "auto".into() }
    }

    window_methods!(weighted);

    variants!(variant);

    /// Returns the shape of `dy`: N, C, P, Q.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the windows do not fit.
    pub fn dy_shape(&self) -> Result<[usize; 4]> {
        self.windows.output_shape()
    }

    pub(crate) fn parts(&self) -> &Windows {
        &self.windows
    }

    /// Tells whether a thread can hold the cells under windows down a column.
    fn runs_columns(&self) -> bool {
        let Windows { kernel: [r, s], dilation, .. } = self.windows;
        (r * s) as u64 <= MAX_CELLS && (dilation[0] == 1 || r == 1)
    }

    /// Tells whether threads can load four cells at a time, for four windows that leave out none.
    fn runs_wide(&self, dtype: DType) -> bool {
        let Windows { kernel: [_, s], stride, dilation, pads, shape: [.., w], .. } = self.windows;
        dtype == DType::F32 && pads == [0; 4] && dilation[1] == 1 && stride[1] <= s && w.is_multiple_of(4)
    }

    /// Windows down a column for each thread: as many as have fewer than 32 cells together.
    fn column_rows(&self) -> u64 {
        let Windows { kernel: [r, s], stride, .. } = self.windows;
        let cells =
            |rows: u64| ((rows - 1).saturating_mul(stride[0] as u64).saturating_add(r as u64)).saturating_mul(s as u64);
        [8, 4, 2].into_iter().find(|&rows| cells(rows) < 32).unwrap_or(1)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (windows, op) = (&self.windows, INFO.name);
        let (wide, narrow) = windows.lengths()?;
        let [r, s] = windows.kernel;
        if r * s > MAX_STEPS {
            return Err(err!(
                Unsupported,
                "{op}: windows of {r} x {s} have more than {MAX_STEPS} weights; use smaller windows"
            ));
        }
        let columns = self.runs_columns();
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if columns {
                ("columns", "windows down a column share their cells".into())
            } else {
                ("parts", "the windows are too large for registers, or their rows are apart".into())
            }
        })?;
        let by_columns = variant.name == "columns";
        if by_columns && !columns {
            return Err(err!(
                Unsupported,
                "{op}: the variant `columns` takes windows of at most {MAX_CELLS} cells without dilation down, not {r} x {s} \
                 with a dilation of {}; use `auto`",
                windows.dilation[0]
            ));
        }
        let mut program = Program::new(op, decision);
        let (all, [.., p, q]) = ((r * s) as u64, windows.output_shape()?);
        program.operands = vec![
            Operand { name: "x", dtype, len: wide, access: Access::Read },
            Operand { name: "dy", dtype, len: narrow, access: Access::Read },
        ];
        windows.check_sizes(&program, profile)?;
        program.operands.push(Operand { name: "dw", dtype: DType::F32, len: r * s, access: Access::Write });
        program.cost = Cost::of(2.0 * narrow as f64 * all as f64, &program.operands);

        let groups = if by_columns { 1 } else { all.div_ceil(MAX_CELLS) };
        let wide = by_columns && self.runs_wide(dtype);
        let across = if wide { 4 } else { 1 };
        let rows = if by_columns && !wide { self.column_rows() } else { 1 };
        let spec = Spec::new().slot("element", element_fragment(dtype));
        let spec = if by_columns {
            let spec = spec
                .flag("COLUMNS", true)
                .flag("PADDED", windows.pads != [0; 4])
                .constant("R", r as u32)
                .constant("S", s as u32)
                .constant("STRIDE", windows.stride[0] as u32)
                .constant("ROWS", rows as u32);
            match wide {
                true => spec
                    .flag("WIDE", true)
                    .flag("WHOLE", q.is_multiple_of(4))
                    .constant("STRIDE_W", windows.stride[1] as u32),
                false => spec,
            }
        } else {
            spec.constant("CELLS", all.div_ceil(groups) as u32).constant("GROUPS", groups as u32)
        };
        let kernel = program.kernel(Kernel::of_file("nn/pool_backward_weights", spec));
        let operands = ChunkedOperands { dtype, wide: &[0], narrow: &[1], profile };
        // Enough workgroups to fill a card, of at least four windows a thread. GB/s on an H200 (Vulkan, driver
        // 580.159.04), 32 x 64 x 112 x 112, by rows x workgroups, 2 x 2 and 3 x 3 with stride 1: 2855, 2481 with
        // 4 x 528; 2791, 2344 with 4 x 1024. On an H100 2218 and 2190 with 4 x 528, `parts` 2043 and 948. Four windows
        // across there: 2314, 2441 with 1 x 528; 2286, 2078 with 1 x 264; 2274, 2399 with 2 x 528. A plain sum of x
        // alone reaches 2389.
        let runs_of = |planes: u64| planes * (p.div_ceil(rows as usize) * q.div_ceil(across)) as u64;
        let wanted = (if profile.quirks.few_cores { 16 } else { 528 } / groups).max(1);
        let most = WORKGROUP * profile.loop_steps(2, 1 << 20);
        let planes = (windows.shape[0] * windows.shape[1]) as u64;
        let block = runs_of(planes).div_ceil(wanted).max((4 / rows).max(1) * WORKGROUP).min(most);
        let parts_of = |params: &WindowsParams| runs_of(u64::from(params.planes)).div_ceil(block);
        let mut chunks = Vec::new();
        windows.each_chunk(&mut program, &operands, |_, params, wide, narrow| {
            chunks.push((params, wide[0], narrow[0]));
        });
        let parts: u64 = chunks.iter().map(|(params, ..)| parts_of(params)).sum();
        let partials = program.scratch(4 * all * parts);
        let mut first_part = 0;
        for (params, x, dy) in chunks {
            let params = WindowsParams { block: block as u32, first_part, all_parts: parts as u32, ..params };
            let parts = parts_of(&params);
            first_part += parts as u32;
            program.dispatch(kernel, &params, vec![x, dy, partials], Grid::fold(parts * groups));
        }
        let kernel = program.kernel(Kernel::of_file("nn/pool_backward_weights_sum", Spec::new()));
        let params = WeightSumsParams { weights: all as u32, parts: parts as u32 };
        let dw = Binding::operand(2, &program.operands);
        program.dispatch(kernel, &params, vec![partials, dw], Grid::fold(all));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Pool2dBackwardWeights, T {
        fn record(x: T, dy: T, dw: f32);
    }
}

lowered_as!(Pool2dBackwardWeights: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "pool-backward-weights",
    about: "the gradient of weighted pooling with respect to its weights",
    inputs: &[Input::new("x", "(N, C, H, W)"), Input::new("dy", "(N, C, P, Q)")],
    outputs: &[("dw", "(kernel)")],
    types: &FLOATS,
    options: &[KERNEL, STRIDE, PAD, DILATION],
    make: Some(make),
    variants: Pool2dBackwardWeights::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, shape) = asked.array("x")?;
    asked.check_type(&x)?;
    let windows = windows(asked, shape, asked.settings().pair("kernel")?)?;
    let dy = asked.like("dy", &windows.output_shape()?)?;
    let kernel = windows.kernel;
    asked.set("kernel", &kernel);
    let op = Pool2dBackwardWeights { windows, variant: asked.variant().to_owned() };
    let dtype = x.dtype();
    let operands = vec![Role::Given(x), Role::Given(dy), Role::Result(kernel.to_vec())];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (shape, kernel) in [([2, 3, 8, 8], [2, 2]), ([1, 1, 12, 12], [5, 5]), ([4, 8, 64, 64], [1, 1])] {
        let op = Pool2dBackwardWeights::new(shape, kernel).variant(variant);
        if variant == "columns" && !op.runs_columns() {
            continue;
        }
        programs.extend([Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?]);
    }
    let padded = Pool2dBackwardWeights::new([2, 3, 7, 9], [3, 3]).stride([1, 1]).pad([1, 1]).variant(variant);
    // Four windows across, of which some are left over.
    let across = Pool2dBackwardWeights::new([1, 2, 9, 12], [3, 3]).stride([1, 1]).variant(variant);
    programs.push(Op::<f32>::lower(&padded, profile)?);
    programs.push(Op::<f32>::lower(&across, profile)?);
    Ok(programs)
}
