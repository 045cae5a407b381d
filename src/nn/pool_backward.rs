//! The gradient of pooling.

use super::form::{COUNT_INCLUDE_PAD, DILATION, FLOATS, KERNEL, KIND, PAD, STRIDE, WEIGHTS, pooling};
use super::pool::PoolKind;
use super::windows::{Forms, MAX_STEPS, Windows};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::When;
use crate::program::{
    Access, Asked, Cost, DeviceProfile, Domain, Example, Form, Grid, Input, Kernel, Op, Operand, Operation,
    Program, Role, Variant, by_type, choose, element_fragment, operands,
};
use crate::shader::Spec;
use half::f16;

/// The gradient of a loss by the input of a pooling, from that by its output: every cell gets its share of `dy` of every
/// window that holds it.
///
/// The whole share goes to the first largest cell of a window (NaN is largest, the last one of several) of
/// [`Max`](PoolKind::Max); one over the number of cells to each of [`Average`](PoolKind::Average); the cell over the
/// window's root of squares to each of [`L2`](PoolKind::L2), 0 where that is 0; the weight of its place to each of
/// [`Weighted`](PoolKind::Weighted). Of a fused bias and activation, the gradients come first:
/// [`ActivationBackward`](super::ActivationBackward), [`BiasBackward`](super::BiasBackward).
///
/// # Shapes
/// As of [`Pool2d`](super::Pool2d) without bias and activation: `x` and `dx` N x C x H x W, `dy` N x C x P x Q. Operands are `x`,
/// `dy`, `dx`, in this order. `dx` must be a wgpu buffer of its own.
///
/// # Types
/// f32, and f16 with arithmetic in f32.
///
/// # Precision and determinism
/// Shares are added in f32 in the order of the window's cells, gathered without atomics. Same device, same bits.
/// Where all of a window's squares are below 1.2e-38, its root may be 0, and then its shares are.
///
/// # Cost
/// In `direct` a cell reads every window that holds it: about `R S / stride` times R S cells, through the cache; `pairs` moves
/// every byte once. One dispatch (one for each
/// part of `x` that a binding holds), no scratch.
///
/// # Variants
/// `direct` takes any window; `pairs` windows of 2 x 2 that do not overlap, without padding, of an even number of rows of a
/// multiple of 4. `auto` (the default) takes `pairs` where it can.
///
/// # Errors
/// As of [`Pool2d`](super::Pool2d); [`TooLarge`](crate::ErrorKind::TooLarge) for windows that are too many for a cell, and of too
/// many cells; [`Unsupported`](crate::ErrorKind::Unsupported): `pairs` where it cannot.
///
/// # Algorithm
/// `shaders/nn/pool_backward_direct.wgsl`, `pool_backward_pairs.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::{Pool2dBackward, PoolKind};
/// use tilework::program::{DeviceProfile, Op};
///
/// let op = Pool2dBackward::new(PoolKind::Max, [8, 16, 28, 28], [2, 2]);
/// let program = Op::<f32>::lower(&op, &DeviceProfile::h100())?;
/// assert_eq!(program.operands[1].len, 8 * 16 * 14 * 14);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pool2dBackward {
    kind: PoolKind,
    windows: Windows,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "one invocation a cell gathers from the windows that hold it"),
    Variant::portable("pairs", "windows of 2 x 2 side by side: vec4 loads and stores, every byte once"),
];

/// Times two windows that an invocation of `pairs` takes.
const UNITS: u32 = 2;

impl Pool2dBackward {
    /// Of x of this shape (N, C, H, W), pooled in windows of `kernel` (R, S), one beside the other.
    pub fn new(kind: PoolKind, shape: [usize; 4], kernel: [usize; 2]) -> Self {
        Self { kind, windows: Windows::new("pool-backward", shape, kernel), variant: "auto".into() }
    }

    /// As of [`Pool2d::stride`](super::Pool2d::stride).
    #[must_use]
    pub fn stride(mut self, stride: [usize; 2]) -> Self {
        self.windows.stride = stride;
        self
    }

    /// As of [`Pool2d::pad`](super::Pool2d::pad).
    #[must_use]
    pub fn pad(mut self, [h, w]: [usize; 2]) -> Self {
        self.windows.pads = [h, w, h, w];
        self
    }

    /// As of [`Pool2d::dilation`](super::Pool2d::dilation).
    #[must_use]
    pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
        self.windows.dilation = dilation;
        self
    }

    /// As of [`Pool2d::count_include_pad`](super::Pool2d::count_include_pad).
    #[must_use]
    pub fn count_include_pad(mut self) -> Self {
        self.windows.padding_counts = true;
        self
    }

    crate::program::variants!(variant);

    /// The shape of `dy`: N, C, P, Q.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) for windows that do not fit.
    pub fn dy_shape(&self) -> Result<[usize; 4]> {
        self.windows.output_shape()
    }

    pub(crate) fn parts(&self) -> (&PoolKind, &Windows) {
        (&self.kind, &self.windows)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let windows = &self.windows;
        self.kind.check(windows)?;
        // A cell walks every window that holds it.
        let [r, s] = windows.kernel;
        let held = r.div_ceil(windows.stride[0].max(1)).saturating_mul(s.div_ceil(windows.stride[1].max(1)));
        let steps = held.saturating_mul(r.saturating_mul(s)).saturating_add(r.saturating_mul(s));
        if steps > MAX_STEPS {
            return Err(err!(
                TooLarge,
                "pool-backward: a cell is held by {held} windows of {r} x {s}, which take {steps} steps; at most {} are safe on \
                 every driver; take smaller windows or larger strides",
                MAX_STEPS
            ));
        }
        let pairs = windows.are_pairs() && windows.shape[2].is_multiple_of(2);
        let (variant, decision) = choose("pool-backward", &self.variant, VARIANTS, profile, || {
            if pairs {
                ("pairs", "windows of 2 x 2 side by side are read by vec4, each cell once".to_owned())
            } else {
                ("direct", format!("windows of {r} x {s} that overlap, leave gaps or are not aligned"))
            }
        })?;
        if variant.name == "pairs" && !pairs {
            return Err(err!(
                Unsupported,
                "pool-backward: the variant `pairs` takes windows of 2 x 2 with stride 2, without padding or dilation, in an \
                 even number of rows of a multiple of 4; these are {r} x {s} with stride {:?} in {} rows of {}; take `direct` \
                 or `auto`",
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
        program.cost = Cost {
            flop: narrow as f64 * (windows.kernel[0] * windows.kernel[1]) as f64,
            bytes: program.operands.iter().map(|o| o.bytes() as f64).sum(),
        };
        windows.check_sizes(&program, profile)?;
        // A mean does not ask for the cells, nor do weights.
        let weighted = matches!(self.kind, PoolKind::Weighted(_));
        let cells_count = !weighted && self.kind != PoolKind::Average;
        let mut spec = self
            .kind
            .flagged(Spec::new())
            .slot("element", element_fragment(dtype))
            .constant("GRADIENTS_BINDING", if cells_count { 2u32 } else { 1 })
            .constant("OUTPUT_BINDING", if cells_count { 3u32 } else { 2 })
            .flag("HALVES", dtype == DType::F16)
            .flag("CELLS", cells_count)
            .flag("WEIGHTED", weighted);
        if weighted {
            spec = spec.constant("WEIGHTS_BINDING", 3u32);
        }
        let weights = self.kind.weights(&mut program);
        let fast = variant.name == "pairs";
        let kernel = if fast {
            Kernel::library("nn/pool_backward_pairs", "pool_backward_pairs", spec.constant("UNITS", UNITS))
        } else {
            let spec = spec.flag("PADDING_COUNTS", windows.padding_counts);
            Kernel::library("nn/pool_backward_direct", "pool_backward_direct", spec)
        };
        let kernel = program.kernel(kernel);
        let forms = Forms { dtype, wide: &[0, 2], narrow: &[1], profile };
        windows.each_chunk(&mut program, &forms, |program, params, wide, narrow| {
            let cells = u64::from(params.planes) * (h * w) as u64 + if dtype == DType::F16 { 2 } else { 0 };
            let per_workgroup = if fast { 256 * 8 * u64::from(UNITS) } else { 256 * 4 / dtype.size() as u64 };
            let grid = Grid::fold(cells.div_ceil(per_workgroup));
            let mut bindings = vec![wide[0], narrow[0], wide[1]].split_off(usize::from(!cells_count));
            bindings.extend(weights);
            program.dispatch(kernel, &params, bindings, grid);
        });
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Pool2dBackward, T {
        fn record(x: T, dy: T, dx: T);
    }
}

crate::program::lowers! {
    impl[] Pool2dBackward as [f32, f16], |op, dtype, profile| op.lower_as(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "pool-backward",
    about: "the gradient of pooling by its input",
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

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (x, shape) = asked.array("x")?;
    asked.check_type(&x)?;
    let (kind, windows) = pooling(asked, shape)?;
    let dy = asked.like("dy", &windows.output_shape()?)?;
    let op = Pool2dBackward { kind, windows, variant: asked.variant().to_owned() };
    let (dtype, dx) = (x.dtype(), Role::Result(shape.to_vec()));
    let operands = vec![Role::Given(x), Role::Given(dy), dx];
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op, operands)))
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
    Ok(programs)
}
