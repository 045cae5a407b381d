use super::codes::{Code, KIND, Scales, Spans, fragment};
use super::quantize::workgroups;
use crate::program::prelude::*;
use std::marker::PhantomData;

/// Decodes bytes with scales: `output = scale * number of x`, with one scale for each row, each group, or all.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::quantize::Dequantize;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1i8, -2, 127, 64])?; // 2 rows of 2
/// let (scale, output) = (gpu.upload(&[0.5f32, 2.0])?, gpu.alloc::<f32>(4)?);
/// let decode = Dequantize::<i8>::new(2, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// decode.record(&mut rec, &x, &scale, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [0.5, -1.0, 254.0, 128.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::dequantize`](crate::Gpu::dequantize).
///
/// # Shapes
/// `x` and `output` have `rows * n` elements, row-major. Operands are `x`, `scale`, `output`, in this order: `x`
/// and `scale` are the results of [`Quantize`](super::Quantize) with the same [`Scales`]. Either extent may be 0.
/// `output` must be a wgpu buffer of its own.
///
/// `Dequantize<i8>` reads signed bytes, all 256 of them; `Dequantize<u8>` reads floats of 8 bits, E4M3. The output
/// is f32, or f16, which overflows to infinity.
///
/// # Precision and determinism
/// One product of f32, rounded once more for f16. Both codes that are NaN become NaN. The same device gives the
/// same bits.
///
/// # Cost
/// One dispatch, no scratch. Every byte is read once, every element written once.
///
/// # Variants
/// `words` only: a word of four bytes becomes a vec4 of four elements.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a group that is not 32 to 128 or does not divide n; an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer; more scales than a binding
///   holds.
///
/// # Algorithm
/// `shaders/quantize/dequantize_words.wgsl`, with `int8.wgsl` or `fp8.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dequantize<Q> {
    spans: Spans,
    variant: String,
    code: PhantomData<Q>,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("words", "a word of four bytes for a vec4 of elements: one read, one write")];

kernel_params! {
    struct DequantizeParams {
        len: u32,
        first: u32,
        n: u32,
    }
}

impl<Q: Code> Dequantize<Q> {
    /// Decodes `rows` rows of `n` bytes, with a scale for each row.
    pub fn new(rows: usize, n: usize) -> Self {
        let spans = Spans { op: "dequantize", rows, n, scales: Scales::Row };
        Self { spans, variant: "auto".into(), code: PhantomData }
    }

    /// Sets the elements that share a scale; [`Scales::Row`] by default.
    #[must_use]
    pub fn scales(mut self, scales: Scales) -> Self {
        self.spans.scales = scales;
        self
    }

    /// Returns the number of elements that share a scale, counted along `x`. Pass it to
    /// [`reference::dequantize`](crate::reference::dequantize()).
    pub fn span(&self) -> usize {
        self.spans.spans()[1]
    }

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let op = self.spans.op;
        let len = self.spans.len()?;
        let [spans, n] = self.spans.spans();
        let mut program = Program::of_only_variant(op, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![
            operand("x", Q::DTYPE, len, Access::Read),
            operand("scale", DType::F32, spans, Access::Read),
            operand("output", dtype, len, Access::Write),
        ];
        program.cost = Cost::of(len as f64, &program.operands);
        profile.check_bindings(op, &program.operands[1..2], "take fewer rows in a call")?;
        index_u32(op, "elements", len)?;
        profile.check_buffers(op, &program.operands, "take fewer rows in a call")?;
        if len == 0 {
            return Ok(program);
        }
        let spec = Spec::new()
            .slot("element", element_fragment(dtype))
            .slot("codes", fragment::<Q>())
            .flag("HALVES", dtype == DType::F16)
            .constant("OUTPUT", 3u32)
            .flag("VECTORS", len.is_multiple_of(4))
            .flag("SHARED", self.spans.shared());
        let kernel = program.kernel(Kernel::library("quantize/dequantize_words", "dequantize_words", spec));
        for chunk in profile.aligned_chunks(len as u64, dtype.size() as u64) {
            let bindings = vec![
                chunk.of(Resource::Operand(0), 1),
                Binding::operand(1, &program.operands),
                chunk.of(Resource::Operand(2), dtype.size() as u64),
            ];
            let params = DequantizeParams { len: chunk.count as u32, first: chunk.first as u32, n: n as u32 };
            program.dispatch(kernel, &params, bindings, Grid::fold(workgroups(chunk.count)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element, Q: Code,] Dequantize<Q>, T {
        fn record(x: Q, scale: f32, output: T);
    }
}

lowered_as!(<Q: Code> Dequantize<Q>: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "dequantize",
    about: "elements decoded from bytes and their scales",
    inputs: &[Input::new("x", "(..., n)"), Input::new("scale", "f32 (...), () or (..., groups)")],
    outputs: &[("output", "as x")],
    types: &[DType::I8, DType::U8],
    options: &[KIND],
    make: Some(make),
    variants: Dequantize::<i8>::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    match asked.settings().choice("kind")? {
        <u8 as Code>::NAME => call_of::<u8>(asked, x),
        _ => call_of::<i8>(asked, x),
    }
}

fn call_of<Q: Code>(asked: &mut Asked<'_>, x: HostArray) -> Result<OpCall> {
    if x.dtype() != Q::DTYPE {
        return Err(err!(
            Unsupported,
            "dequantize: x is {x}, but --kind {} needs {}; give the --kind of x",
            Q::NAME,
            Q::DTYPE
        ));
    }
    let (rows, n) = asked.rows("x", &x)?;
    let before = &x.shape()[..x.shape().len() - 1];
    let scale = asked.any_of("scale", before, DType::F32)?;
    let scales = match scale.shape().split_last() {
        _ if scale.shape() == before => Scales::Row,
        None => Scales::Tensor,
        Some((&groups, rest)) if rest == before && groups > 0 && n % groups == 0 => Scales::Group(n / groups),
        _ => {
            let before = shape_text(before);
            return Err(err!(
                Shape,
                "dequantize: x is {x}, scale is {scale}; scale must be {before} for rows, () for all, or {before} \
                 and the number of groups of a row"
            ));
        }
    };
    let op = Dequantize::<Q>::new(rows, n).scales(scales).variant(asked.variant());
    let output = Role::Result(x.shape().to_vec());
    Ok(OpCall::new::<f32>(op, vec![Role::Given(x), Role::Given(scale), output]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (rows, n) in [(3, 5), (2, 6), (4, 8)] {
        let (int8, fp8) = (Dequantize::<i8>::new(rows, n), Dequantize::<u8>::new(rows, n));
        for scales in [Scales::Row, Scales::Tensor] {
            let (int8, fp8) = (int8.clone().scales(scales), fp8.clone().scales(scales));
            let (int8, fp8) = (int8.variant(variant), fp8.variant(variant));
            programs.extend([Op::<f32>::lower(&int8, profile)?, Op::<f16>::lower(&int8, profile)?]);
            programs.extend([Op::<f32>::lower(&fp8, profile)?, Op::<f16>::lower(&fp8, profile)?]);
        }
    }
    Ok(programs)
}
