use super::permute_axes::{packed, words_of};
use crate::program::prelude::*;

/// Joins two to four arrays along an axis, as `numpy.concatenate`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u8, 2, 3, 4])?, gpu.upload(&[8u8, 9])?); // 2 x 2, 2 x 1
/// let joined = gpu.alloc::<u8>(6)?;
/// let plan = Concatenate::new(&[&[2, 2], &[2, 1]], 1).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &joined)?;
/// rec.submit()?;
/// assert_eq!(joined.read()?, [1, 2, 8, 3, 4, 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// Arrays of any number of axes, row-major without gaps, whose extents are the same but for that of the axis. Any
/// extent may be 0. Operands are `a` and `b`, and with more arrays `c` and `d`, which plans take by `with_c` and
/// `with_d`. Elements are of any type of at most 4 bytes. `output` must be another wgpu buffer than the others. Along
/// the first axis, [`Recorder::copy`](crate::Recorder::copy) into slices joins any number of arrays.
///
/// # Precision and determinism
/// Bits are moved unchanged.
///
/// # Cost
/// No flop. Every element is read once and written once. One dispatch, no scratch.
///
/// # Variants
/// `items`: a thread makes 4 bytes.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): fewer than two arrays or more than four, an axis that they
///   do not have, an unknown variant.
/// - [`Shape`](ErrorKind::Shape): other extents that differ.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// `shaders/dense/concatenate.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concatenate {
    shapes: Vec<Vec<usize>>,
    axis: usize,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("items", "a thread makes an element of 4 bytes, or those of a word")];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

kernel_params! {
    struct ConcatenateParams {
        n: u32, along: u32, inner: u32, extent_0: u32, extent_1: u32, extent_2: u32, extent_3: u32, unused: u32,
    }
}

impl Concatenate {
    /// Takes the extents of each array, and the axis.
    pub fn new(shapes: &[&[usize]], axis: usize) -> Self {
        Self { shapes: shapes.iter().map(|shape| shape.to_vec()).collect(), axis, variant: "auto".into() }
    }

    variants!(variant);

    /// Extents of the arrays, and the axis.
    pub(crate) fn parts(&self) -> (&[Vec<usize>], usize) {
        (&self.shapes, self.axis)
    }

    pub(crate) fn output(&self) -> Result<Vec<usize>> {
        let Self { shapes, axis, .. } = self;
        if !(2..=NAMES.len()).contains(&shapes.len()) {
            return Err(err!(InvalidArgument, "concatenate: {} arrays; it takes 2 to 4", shapes.len()));
        }
        let mut output = shapes[0].clone();
        if *axis >= output.len() {
            return Err(err!(
                InvalidArgument,
                "concatenate: axis {axis} of arrays {output:?}; axes are counted from 0"
            ));
        }
        for (name, shape) in NAMES.iter().zip(shapes).skip(1) {
            let fits = shape.len() == output.len() && (0..shape.len()).all(|k| k == *axis || shape[k] == output[k]);
            if !fits {
                return Err(err!(
                    Shape,
                    "concatenate: {name} is {shape:?} and a {:?}; they may differ only along axis {axis}",
                    shapes[0]
                ));
            }
            output[*axis] = output[*axis].saturating_add(shape[*axis]);
        }
        elements(INFO.name, "output", &output)?;
        Ok(output)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let output = self.output()?;
        let len = elements(INFO.name, "output", &output)?;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        for (name, shape) in NAMES.iter().zip(&self.shapes) {
            let len = elements(INFO.name, name, shape)?;
            program.operands.push(Operand { name, dtype, len, access: Access::Read });
        }
        program.operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        profile.check_bindings(INFO.name, &program.operands, "join parts in separate calls")?;
        program.cost = Cost::of(0.0, &program.operands);
        let n = index_u32(INFO.name, "elements", len)?;
        if n == 0 {
            return Ok(program);
        }
        // Empty arrays are not bound.
        let parts: Vec<usize> = (0..self.shapes.len()).filter(|k| self.shapes[*k][self.axis] > 0).collect();
        let mut extents = [0; 4];
        for (extent, k) in extents.iter_mut().zip(&parts) {
            *extent = self.shapes[*k][self.axis] as u32;
        }
        let [extent_0, extent_1, extent_2, extent_3] = extents;
        let inner = output[self.axis + 1..].iter().product::<usize>() as u32;
        let along = output[self.axis] as u32;
        let params = ConcatenateParams { n, along, inner, extent_0, extent_1, extent_2, extent_3, unused: 0 };
        let inputs = parts.len() as u32;
        let spec = packed(dtype).constant("INPUTS", inputs).constant("OUTPUT_BINDING", inputs + 1);
        let kernel = program.kernel(Kernel::of_file("dense/concatenate", spec));
        let all = parts.iter().copied().chain([self.shapes.len()]);
        let bindings = all.map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, words_of(n, dtype));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Concatenate, T {
        fn record(a: T, b: T, output: T);
        /// Takes the third array.
        optional with_c(c: T);
        /// Takes the fourth array.
        optional with_d(d: T);
    }
}

lowered_as!(Concatenate: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "concatenate",
    about: "two to four arrays joined along an axis",
    inputs: &[
        Input::new("a", "any shape"),
        Input::new("b", "as a but for the axis"),
        Input::optional("c", "as b"),
        Input::optional("d", "as b"),
    ],
    outputs: &[("output", "(joined)")],
    types: &HostData::TYPES,
    options: &[Setting::number("axis", "0")],
    domains: &[("a", Domain::Bits), ("b", Domain::Bits), ("c", Domain::Bits), ("d", Domain::Bits)],
    make: Some(make),
    variants: Concatenate::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[5, 6, 7], options: &[("axis", "1")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let a = asked.any("a")?;
    asked.check_type(&a)?;
    let (dtype, usual) = (a.dtype(), a.shape().to_vec());
    let mut arrays = vec![a];
    arrays.push(asked.any_of("b", &usual, dtype)?);
    for name in ["c", "d"] {
        if asked.has_more() {
            arrays.push(asked.any_of(name, &usual, dtype)?);
        }
    }
    let shapes: Vec<&[usize]> = arrays.iter().map(|array| array.shape()).collect();
    let op = Concatenate::new(&shapes, asked.settings().number("axis")?).variant(asked.variant());
    let shape = op.output()?;
    asked.set("joined", &shape);
    let operands = arrays.into_iter().map(Role::Given).chain([Role::Result(shape)]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let shapes: [&[usize]; 4] = [&[5, 3, 7], &[5, 1, 7], &[5, 0, 7], &[5, 2, 7]];
    let mut programs = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::U8] {
        for count in 2..=4 {
            programs.push(Concatenate::new(&shapes[..count], 1).variant(variant).lower_as(dtype, profile)?);
        }
    }
    let four = [&[4][..], &[1], &[2], &[3]];
    programs.push(Concatenate::new(&four, 0).variant(variant).lower_as(DType::F32, profile)?);
    Ok(programs)
}
