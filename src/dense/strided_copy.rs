use super::permute_axes::{MAX_AXES, packed, six, strides, words_of};
use crate::program::prelude::*;

/// Copies elements at any distances to an array without gaps: `output[i, j, ...] = input[origin + i strides[0] + j
/// strides[1] + ...]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])?; // 3 x 4
/// let y = gpu.alloc::<u32>(4)?;
/// // Every second row from the last back, and the middle columns.
/// let plan = StridedCopy::new(12, &[2, 2], &[-8, 1]).origin(9).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [9, 10, 1, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements; `output` has 1 to 6 axes, row-major. Any extent may be 0. Strides are in elements, may be
/// negative, and 0 repeats elements. Elements are of any type of at most 4 bytes. The operands must be different wgpu
/// buffers. [`scattered`](Self::scattered) writes into an array with gaps. Vectors with the increments of BLAS are
/// copies of this kind, `x[i]` at `i incx` or, below 0, from `(1 - n) incx` on.
///
/// # Precision and determinism
/// Bits are moved unchanged.
///
/// # Cost
/// No flop. Every element is read once and written once, neighbours together where the last stride is 1. One dispatch,
/// no scratch.
///
/// # Variants
/// `items`: a thread makes 4 bytes.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no axes or more than 6, another number of strides than of
///   extents, an element outside of `input`, scattered elements that share a place, an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): scattered elements of 1 or 2 bytes.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// `shaders/dense/strided_copy.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedCopy {
    n: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    origin: usize,
    scattered: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("items", "a thread makes an element of 4 bytes, or those of a word")];

kernel_params! {
    struct StridedCopyParams {
        n: u32, origin: u32,
        extent_0: u32, stride_0: u32, extent_1: u32, stride_1: u32, extent_2: u32, stride_2: u32,
        extent_3: u32, stride_3: u32, extent_4: u32, stride_4: u32, extent_5: u32, stride_5: u32,
    }
}

impl StridedCopy {
    /// Takes the number of elements of the input, the extents of the output, and for each axis of the output how far
    /// apart neighbours are in the input.
    pub fn new(n: usize, shape: &[usize], strides: &[isize]) -> Self {
        Self {
            n,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            origin: 0,
            scattered: false,
            variant: "auto".into(),
        }
    }

    /// Sets where in the input the first element lies. The default is 0.
    #[must_use]
    pub fn origin(mut self, element: usize) -> Self {
        self.origin = element;
        self
    }

    /// Copies the other way round: `output[origin + i[0] strides[0] + ...] = input[i[0], i[1], ...]`, and leaves the
    /// other elements of `output` as they are. `n` is then the length of `output`. Elements are of 4 bytes, and no two
    /// may go to one place.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row, matrix) = (gpu.upload(&[1.0f32, 2.0])?, gpu.alloc_zeroed::<f32>(6)?);
    /// // The second column of 2 x 3.
    /// let plan = StridedCopy::new(6, &[2], &[3]).origin(1).scattered().plan::<f32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.record(&mut rec, &row, &matrix)?;
    /// rec.submit()?;
    /// assert_eq!(matrix.read()?, [0.0, 1.0, 0.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn scattered(mut self) -> Self {
        self.scattered = true;
        self
    }

    variants!(variant);

    /// Extents of the output, strides and origin.
    pub(crate) fn parts(&self) -> (&[usize], &[isize], usize) {
        (&self.shape, &self.strides, self.origin)
    }

    /// Returns the number of elements of the output.
    fn check(&self) -> Result<usize> {
        let Self { n, shape, strides, origin, .. } = self;
        if !(1..=MAX_AXES).contains(&shape.len()) || shape.len() != strides.len() {
            return Err(err!(
                InvalidArgument,
                "strided-copy: the extents {shape:?} and strides {strides:?}; there must be 1 to {MAX_AXES} axes, each \
                 with a stride"
            ));
        }
        let len = elements(INFO.name, "output", shape)?;
        let (mut least, mut most) = (*origin as i128, *origin as i128);
        for (extent, stride) in shape.iter().zip(strides) {
            let reach = extent.saturating_sub(1) as i128 * *stride as i128;
            if reach < 0 { least += reach } else { most += reach }
        }
        if len > 0 && (least < 0 || most >= *n as i128) {
            return Err(err!(
                InvalidArgument,
                "strided-copy: the extents {shape:?} with strides {strides:?} from {origin} on reach elements {least} to \
                 {most} of an array of {n}"
            ));
        }
        if self.scattered && len > 0 {
            // Places differ if each stride leaves all those of smaller ones behind.
            let mut axes: Vec<(u128, u128)> = shape
                .iter()
                .zip(strides)
                .filter(|(extent, _)| **extent > 1)
                .map(|(extent, stride)| (stride.unsigned_abs() as u128, *extent as u128))
                .collect();
            axes.sort_unstable();
            let mut reach = 0;
            for (stride, extent) in axes {
                if stride <= reach {
                    return Err(err!(
                        InvalidArgument,
                        "strided-copy: elements of {shape:?} with strides {strides:?} may go to one place; use strides that \
                         keep them apart"
                    ));
                }
                reach += stride * (extent - 1);
            }
        }
        Ok(len)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let len = self.check()?;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        if self.scattered && dtype.size() != 4 {
            return Err(err!(
                Unsupported,
                "strided-copy: scattered elements of {dtype}, which share words; use f32, i32 or u32"
            ));
        }
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = if self.scattered {
            vec![operand("input", len, Access::Read), operand("output", self.n, Access::ReadWrite)]
        } else {
            vec![operand("input", self.n, Access::Read), operand("output", len, Access::Write)]
        };
        profile.check_bindings(INFO.name, &program.operands, "copy parts in separate calls")?;
        program.cost = Cost { flop: 0.0, bytes: 2.0 * (len * dtype.size()) as f64 };
        let n = index_u32(INFO.name, "elements", len)?;
        if n == 0 {
            return Ok(program);
        }
        let [extent_0, extent_1, extent_2, extent_3, extent_4, extent_5] =
            six(self.shape.iter().map(|extent| *extent as u32), 1);
        // Places in the input are below 2^32, and so are sums modulo 2^32.
        let [stride_0, stride_1, stride_2, stride_3, stride_4, stride_5] =
            six(self.strides.iter().map(|stride| *stride as u32), 0);
        let params = StridedCopyParams {
            n,
            origin: self.origin as u32,
            extent_0,
            stride_0,
            extent_1,
            stride_1,
            extent_2,
            stride_2,
            extent_3,
            stride_3,
            extent_4,
            stride_4,
            extent_5,
            stride_5,
        };
        let kernel =
            program.kernel(Kernel::of_file("dense/strided_copy", packed(dtype).flag("SCATTERED", self.scattered)));
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, words_of(n, dtype));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] StridedCopy, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(StridedCopy: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "strided-copy",
    about: "elements at any distances, without gaps; by default every other one of the last axis",
    inputs: &[Input::new("input", "1 to 6 axes")],
    outputs: &[("output", "(shape)")],
    types: &HostData::TYPES,
    options: &[
        Setting::text("shape", "N,N,...", ""),
        Setting::text("strides", "S,S,...", ""),
        Setting::number("origin", "0"),
    ],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: StridedCopy::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[5, 6, 7], options: &[] },
    ..Operation::UNDECLARED
};

/// Reads a list of numbers from an option.
pub(super) fn list<T: std::str::FromStr<Err: std::fmt::Display>>(
    asked: &Asked<'_>, name: &str,
) -> Result<Option<Vec<T>>> {
    let Some(text) = asked.settings().word(name) else { return Ok(None) };
    let numbers = text.split(',').map(|number| number.trim().parse::<T>());
    let numbers = numbers.collect::<std::result::Result<_, _>>();
    numbers.map(Some).map_err(|e| err!(InvalidArgument, "{}: --{name} {text}: {e}", asked.name()))
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let input = asked.any("input")?;
    // Without options every other element of the last axis.
    let mut usual: Vec<usize> = input.shape().to_vec();
    let mut steps: Vec<isize> = strides(&usual).into_iter().map(|stride| stride as isize).collect();
    if let (Some(extent), Some(step)) = (usual.last_mut(), steps.last_mut()) {
        (*extent, *step) = (extent.div_ceil(2), 2);
    }
    let shape = list(asked, "shape")?.unwrap_or(usual);
    let strides = list(asked, "strides")?.unwrap_or(steps);
    let op = StridedCopy::new(input.len(), &shape, &strides).variant(asked.variant());
    let op = op.origin(asked.settings().number("origin")?);
    op.check()?;
    asked.set("shape", &shape);
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(shape)]);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = StridedCopy::new(1000, &[9, 3, 7], &[100, -20, 2]).origin(60).variant(variant);
    let scattered = op.clone().scattered().lower_as(DType::F32, profile);
    [DType::F32, DType::F16, DType::U8]
        .into_iter()
        .map(|dtype| op.lower_as(dtype, profile))
        .chain([scattered])
        .collect()
}
