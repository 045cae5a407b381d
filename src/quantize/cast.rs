use super::quantize::workgroups;
use crate::program::prelude::*;

/// Casts f32 to f16, or f16 to f32: `output[i] = x[i]`, rounded to the other type.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use half::f16;
/// use tilework::prelude::*;
/// use tilework::quantize::Cast;
///
/// let gpu = Gpu::new()?;
/// let (x, output) = (gpu.upload(&[1.0f32, 0.1, 70000.0])?, gpu.alloc::<f16>(3)?);
/// let cast = Cast::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// cast.record(&mut rec, &x, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [f16::ONE, f16::from_f32(0.1), f16::INFINITY]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::cast`](crate::Gpu::cast).
///
/// # Shapes
/// Operands are `x` and `output`, in this order, of n elements each. Planned for f32 the op makes f16; planned for
/// f16 it makes f32. `n` may be 0. The operands must be different wgpu buffers.
///
/// # Precision and determinism
/// Rounds to the nearest f16, ties to even, subnormal numbers included. Numbers that round above 65504 become
/// infinite, NaN stays NaN. Integer arithmetic does the rounding, so all devices round alike and none needs
/// SHADER_F16. f16 to f32 is exact, but a device may read a subnormal f16 as 0. The root mean square error of f16
/// on normally distributed elements is 0.02 %. The same device gives the same bits.
///
/// # Cost
/// One dispatch, no scratch. Every element is read once and written once.
///
/// # Variants
/// `fours` only: each thread takes four elements at a time.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/quantize/cast_elements.wgsl`, with `shaders/element/f16.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast {
    n: usize,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("fours", "a thread takes four elements at a time: one read, one write")];

kernel_params! {
    struct CastParams {
        len: u32,
    }
}

impl Cast {
    /// Casts `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, variant: "auto".into() }
    }

    variants!(variant);

    fn lower_as(&self, from: DType, to: DType, profile: &DeviceProfile) -> Result<Program> {
        let (op, n) = ("cast", self.n);
        let mut program = Program::of_only_variant(op, &self.variant, VARIANTS, profile)?;
        program.operands = vec![
            Operand { name: "x", dtype: from, len: n, access: Access::Read },
            Operand { name: "output", dtype: to, len: n, access: Access::Write },
        ];
        profile.check_buffers(op, &program.operands, "take fewer elements at a time")?;
        index_u32(op, "elements", n)?;
        program.cost = Cost { flop: n as f64, bytes: 6.0 * n as f64 };
        let spec = Spec::new()
            .slot("element", element_fragment(DType::F16))
            .flag("HALVES", true)
            .flag("WIDEN", from == DType::F16)
            .flag("VECTORS", n.is_multiple_of(4));
        if n == 0 {
            return Ok(program);
        }
        let kernel = program.kernel(Kernel::library("quantize/cast_elements", "cast_elements", spec));
        for chunk in profile.aligned_chunks(n as u64, 4) {
            let bindings = vec![
                chunk.of(Resource::Operand(0), from.size() as u64),
                chunk.of(Resource::Operand(1), to.size() as u64),
            ];
            let params = CastParams { len: chunk.count as u32 };
            program.dispatch(kernel, &params, bindings, Grid::fold(workgroups(chunk.count)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Cast, T {
        fn record<U>(x: T, output: U);
    }
}

lowers! {
    impl[] Cast as [f32], |op, dtype, profile| op.lower_as(dtype, DType::F16, profile)
}
lowers! {
    impl[] Cast as [f16], |op, dtype, profile| op.lower_as(dtype, DType::F32, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "cast",
    about: "f32 as f16, or f16 as f32",
    inputs: &[Input::new("x", "any shape")],
    outputs: &[("output", "as x")],
    types: &[DType::F32, DType::F16],
    domains: &[("x", Domain::Bits)],
    make: Some(make),
    variants: Cast::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    let op = Cast::new(x.len()).variant(asked.variant());
    let output = Role::Result(x.shape().to_vec());
    by_type!(asked, x.dtype(), [f32, f16], T => Ok(OpCall::new::<T>(op, vec![Role::Given(x), output])))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for n in [5, 8] {
        let op = Cast::new(n).variant(variant);
        programs.extend([Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?]);
    }
    Ok(programs)
}
