use super::DTYPES;
use crate::program::prelude::*;

/// Multiplies two vectors to a scalar: `result = x[0] y[0] + x[1] y[1] + ... + x[n - 1] y[n - 1]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[4.0f32, 5.0, 6.0])?);
/// let result = gpu.alloc::<f32>(1)?;
/// let plan = Dot::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [32.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have `n` elements each and may be the same; `result` has one. `n` may be 0, which gives 0. `result` must
/// be another wgpu buffer. With [`counted`](Dot::counted) an operand `length` of one u32 holds the number of elements,
/// at most `n`. [`incx`](Dot::incx) and [`incy`](Dot::incy) are BLAS's increments.
///
/// # Types
/// f32, f16, i32, u32.
///
/// # Precision and determinism
/// Products are summed in f32, in a tree: the error is at most about `(log2(n) + n / (workgroups * 256)) * 2^-24 * sum
/// |x y|`; f16 is rounded at the end. Integers wrap modulo 2^32. The same device gives the same bits in every run.
///
/// # Cost
/// `2 n` flop; each vector is read once. Two dispatches, one for short vectors, and scratch of a few KiB.
///
/// # Variants
/// `coarsened`: a bounded number of workgroups.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): a vector above the largest buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`Reduce`](crate::Reduce); `shaders/primitives/dot.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dot {
    n: usize,
    counted: bool,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("coarsened", "a bounded number of workgroups walks both vectors by vec4; two passes")];

kernel_params! { struct DotParams { n: u32, parts: u32, first: u32, before: u32 } }
kernel_params! { struct DotFinishParams { parts: u32 } }

impl Dot {
    /// Takes vectors of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, increments: Increments::default(), variant: "auto".into() }
    }

    counted!(counted, "elements", "Elements behind it are ignored.");

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("x", self.n, Access::Read), operand("y", self.n, Access::Read)];
        let length = Operand { dtype: DType::U32, ..operand("length", 1, Access::Read) };
        program.operands.extend(self.counted.then_some(length));
        program.operands.push(operand("result", 1, Access::Write));
        profile.check_buffers(INFO.name, &program.operands, "split the vectors and add the results")?;
        program.cost = Cost::of(2.0 * self.n as f64, &program.operands);
        let size = dtype.size() as u64;
        let workgroups = super::reduce::workgroups(profile);
        // Fewer than two steps of a vec4 a thread do not pay for another workgroup.
        let parts_of = |count: u64| (count * size).div_ceil(2 * 16 * 256).clamp(1, workgroups);
        let chunks: Vec<_> = profile.aligned_chunks(self.n as u64, size).collect();
        let parts: u64 = chunks.iter().map(|chunk| parts_of(chunk.count)).sum();
        let result = Binding::operand(program.operands.len() - 1, &program.operands);
        let spec = Spec::new().slot("element", element_fragment(dtype));
        let is_final = parts == 1;
        let target = if is_final { result } else { program.scratch(4 * parts.max(1)) };
        let (mut first, mut before) = (0, 0);
        for chunk in chunks {
            let vectors = chunk.count * size >= 16;
            let spec = spec.clone().flag("VECTORS", vectors).flag("FINAL", is_final);
            let spec = limited(spec, self.counted, if vectors { 6 } else { 4 });
            let kernel = program.kernel(Kernel::of_file("primitives/dot", spec));
            let [x, y] = [0, 1].map(|i| chunk.of(Resource::Operand(i), size));
            let mut bindings = vec![x, y, target];
            if vectors {
                bindings.extend([x, y].map(|b| Binding { size: b.size / 16 * 16, ..b }));
            }
            bindings.extend(self.counted.then(|| Binding::operand(2, &program.operands)));
            let parts = parts_of(chunk.count);
            let params = DotParams { n: chunk.count as u32, parts: parts as u32, first: first as u32, before };
            program.dispatch(kernel, &params, bindings, Grid::fold(parts));
            first += parts;
            // A count of 32 bits covers no element behind 2^32.
            before = before.saturating_add(chunk.count as u32);
        }
        if !is_final {
            let kernel = program.kernel(Kernel::of_file("primitives/dot_finish", spec));
            let params = DotFinishParams { parts: parts as u32 };
            program.dispatch(kernel, &params, vec![target, result], Grid::fold(1));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Dot, T {
        fn record(x: T, y: T, result: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Dot: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "dot",
    about: "the scalar product of two vectors",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    outputs: &[("result", "()")],
    types: &DTYPES,
    options: &[LENGTH, INCX, INCY],
    make: Some(make),
    variants: Dot::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let y = asked.like("y", &[n])?;
    let length = asked.length(1, vec![n])?.0;
    let op = Dot::new(n).variant(asked.variant()).when(length.is_some(), Dot::counted);
    let (dtype, result) = (x.dtype(), Role::Result(Vec::new()));
    let operands = [Role::Given(x), Role::Given(y)].into_iter().chain(length).chain([result]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for n in [1 << 20, 100, 1, 0] {
        let op = Dot::new(n).variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
        programs.push(Op::<i32>::lower(&op, profile)?);
        programs.push(Op::<u32>::lower(&op, profile)?);
        programs.push(Op::<f32>::lower(&op.counted(), profile)?);
    }
    let apart = Dot::new(7).incx(3).incy(-1).variant(variant);
    programs.extend([Op::<f32>::lower(&apart, profile)?, Op::<f16>::lower(&apart, profile)?]);
    Ok(programs)
}

#[cfg(test)]
mod tests;
