use super::by_name::FLOATS;
use super::rows::check_steps;
use crate::program::prelude::*;
use crate::program::rows::{check_rows, reduction};

/// Averages the tokens of each sequence, without padding:
/// `output[b, i] = (x[b, 0, i] + ... + x[b, lengths[b] - 1, i]) / lengths[b]`, normalised on request.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::MeanPool;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 99.0, 99.0])?; // 3 tokens of width 2, the last one padding
/// let (lengths, output) = (gpu.upload(&[2u32])?, gpu.alloc::<f32>(2)?);
/// let plan = MeanPool::new([1, 3, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &lengths, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [2.0, 3.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` is B x T x D, row-major, `lengths` (u32) has B elements, `output` is B x D. Any extent may be 0. A length
/// above T counts as T; the mean of no tokens is 0. `output` must not share a wgpu buffer with the others.
///
/// # Types
/// `x` is f32 or f16, `output` f32.
///
/// # Precision and determinism
/// Sums are f32; [`reference::mean_pool_bound`](crate::reference::mean_pool_bound) bounds the error.
/// [`normalized`](Self::normalized) divides a row by its Euclidean norm, or by 1e-12 if that is larger, as PyTorch's
/// `normalize` does: zeros stay zeros, and a NaN makes the row NaN. Tokens after a length are not read. The same device
/// and inputs give the same bits.
///
/// # Cost
/// One flop for each element, which is read once. One dispatch for each chunk of `x` that fits a binding; no scratch.
///
/// # Variants
/// `sequences`, the only one.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, a sequence above the largest
///   binding or longer than a workgroup can walk on every driver.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// The pooling of N. Reimers and I. Gurevych, *Sentence-BERT*, 2019: `shaders/nn/mean_pool.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeanPool {
    batch: usize,
    tokens: usize,
    width: usize,
    normalized: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("sequences", "a workgroup averages the tokens of a sequence")];

kernel_params! {
    struct MeanPoolParams {
        count: u32,
        tokens: u32,
        width: u32,
        input_origin: u32,
        length_origin: u32,
        output_origin: u32,
    }
}

impl MeanPool {
    /// Takes the shape of `x` (batch, tokens, width).
    pub fn new([batch, tokens, width]: [usize; 3]) -> Self {
        Self { batch, tokens, width, normalized: false, variant: "auto".into() }
    }

    /// Divides each mean by its norm, so that products of means are cosines.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        self.normalized = true;
        self
    }

    variants!(variant);

    /// Returns tokens, width, and whether means are normalised.
    pub(crate) fn parts(&self) -> (usize, usize, bool) {
        (self.tokens, self.width, self.normalized)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { batch, tokens, width, .. } = *self;
        let len = elements("mean-pool", "x", &[batch, tokens, width])?;
        let output = elements("mean-pool", "output", &[batch, width])?;
        let mut program = Program::of_only_variant("mean-pool", &self.variant, VARIANTS, profile)?;
        program.operands = vec![
            Operand { name: "x", dtype, len, access: Access::Read },
            Operand { name: "lengths", dtype: DType::U32, len: batch, access: Access::Read },
            Operand { name: "output", dtype: DType::F32, len: output, access: Access::Write },
        ];
        program.cost = Cost::of(len as f64, &program.operands);
        for (operand, n) in [(0, tokens * width), (1, 1), (2, width)] {
            check_rows("mean-pool", &program.operands[operand], n, profile)?;
        }
        index_u32("mean-pool", "sequences", batch)?;
        if output == 0 {
            return Ok(program);
        }
        let vectors = width.is_multiple_of(4) && tokens > 0;
        let workgroup = u64::from(profile.limits.max_invocations.min(256));
        let items = (width / if vectors { 4 } else { 1 }) as u64;
        let columns = items.next_power_of_two().min(workgroup);
        let steps = items.div_ceil(columns) * (tokens as u64).div_ceil(workgroup / columns);
        check_steps("mean-pool", tokens * width, steps, 1, profile)?;
        let spec = reduction(workgroup, workgroup, profile)
            .slot("element", element_fragment(dtype))
            .constant("COLUMNS", columns as u32)
            .flag("VECTORS", vectors)
            .flag("HALVES", dtype == DType::F16)
            .flag("NORMALIZED", self.normalized);
        let kernel = program.kernel(Kernel::library("nn/mean_pool", "mean_pool", spec));
        let size = dtype.size() as u64;
        let (input_bytes, output_bytes) = ((tokens * width) as u64 * size, 4 * width as u64);
        // The lengths and the output of a chunk must fit a binding too.
        for chunk in profile.chunks(batch as u64, input_bytes.max(output_bytes.next_multiple_of(size))) {
            let [input, lengths, output] = [input_bytes, 4, output_bytes].map(|bytes| chunk.span(bytes));
            let params = MeanPoolParams {
                count: chunk.count as u32,
                tokens: tokens as u32,
                width: width as u32,
                input_origin: (input.before / size) as u32,
                length_origin: (lengths.before / 4) as u32,
                output_origin: (output.before / 4) as u32,
            };
            let bindings = [input, lengths, output].into_iter().enumerate();
            let bindings = bindings.map(|(i, span)| span.of(Resource::Operand(i))).collect();
            program.dispatch(kernel, &params, bindings, Grid::fold(chunk.count));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] MeanPool, T {
        fn record(x: T, lengths: u32, output: f32);
    }
}

lowered_as!(MeanPool: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "mean-pool",
    about: "the mean of the tokens of each sequence, without padding",
    inputs: &[Input::new("x", "(B, T, D)"), Input::new("lengths", "u32 (B)")],
    outputs: &[("output", "(B, D)")],
    types: &FLOATS,
    options: &[Setting::flag("normalized")],
    make: Some(make),
    variants: MeanPool::variants,
    samples,
    example: Example { shape: &[2, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [batch, tokens, width]) = asked.array("x")?;
    let lengths = asked.indices("lengths", &[batch], tokens)?;
    let mut op = MeanPool::new([batch, tokens, width]).variant(asked.variant());
    if asked.settings().has("normalized") {
        op = op.normalized();
    }
    let (dtype, output) = (x.dtype(), Role::Result(vec![batch, width]));
    let operands = vec![Role::Given(x), Role::Given(lengths), output];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut all = Vec::new();
    for width in [8, 7, 2048] {
        let op = MeanPool::new([3, 5, width]).variant(variant);
        all.push(Op::<f32>::lower(&op, profile)?);
        all.push(Op::<f16>::lower(&op.normalized(), profile)?);
    }
    Ok(all)
}
