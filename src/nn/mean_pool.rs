//! Sequences to the means of their tokens.

use super::form::FLOATS;
use super::rows::check_steps;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::rows::{check_rows, reduction};
use crate::program::{
    Access, Asked, Cost, DeviceProfile, Example, Form, Grid, Input, Kernel, Op, Operand, Operation, Program,
    Resource, Role, Setting, Variant, by_type, choose, element_fragment, kernel_params, operands,
};
use crate::shape::{elements, index_u32};
use half::f16;

/// The mean of the tokens of each sequence, without what only fills it up:
/// `output[b, i] = (x[b, 0, i] + ... + x[b, lengths[b] - 1, i]) / lengths[b]`, the embedding of a sentence by an encoder;
/// on request divided by the norm of `output[b, :]`.
///
/// # Shapes
/// `x` is B x T x D, row-major, `lengths` has B elements, `output` is B x D. Operands are `x`, `lengths`, `output`, in this
/// order. Any extent may be 0. A length above T is taken for T; the mean of no tokens is 0. `output` must be a
/// wgpu buffer of its own.
///
/// # Types
/// `x` of f32 or f16; `lengths` u32; `output` f32.
///
/// # Precision and determinism
/// Sums and squares in f32. [`normalized`](Self::normalized) divides by the norm, or by 1e-12 if that is larger, as
/// PyTorch's `normalize` does: zeros stay zeros. What is behind a length is not read, be it NaN. Same
/// device, same bits. [`reference::mean_pool_bound`](crate::reference::mean_pool_bound) is the bound of the error.
/// NaN in a mean makes NaN of all that it is normalised with.
///
/// # Cost
/// One addition an element, each read once. One dispatch (one for each part of `x` that a binding holds), no scratch.
///
/// # Variants
/// `sequences`: a workgroup a sequence.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a sequence above the largest binding, or
/// of more elements than a workgroup may walk in one loop on every driver;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/mean_pool.wgsl`; the pooling of N. Reimers and I. Gurevych, *Sentence-BERT*, 2019.
///
/// # Example
/// ```
/// use tilework::nn::MeanPool;
/// use tilework::program::{DeviceProfile, Op};
///
/// let program = Op::<f32>::lower(&MeanPool::new([64, 128, 384]).normalized(), &DeviceProfile::h100())?;
/// assert_eq!((program.operands[1].len, program.operands[2].len), (64, 64 * 384));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeanPool {
    batch: usize,
    tokens: usize,
    width: usize,
    normalized: bool,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("sequences", "a workgroup adds up the tokens of a sequence")];

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
    /// Averages over the tokens of `x` of shape (batch, tokens, width).
    pub fn new([batch, tokens, width]: [usize; 3]) -> Self {
        Self { batch, tokens, width, normalized: false, variant: "auto".into() }
    }

    /// Means of norm 1, whose products are cosines.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        self.normalized = true;
        self
    }

    crate::program::variants!(variant);

    /// Tokens, width, and whether means get a norm of 1.
    pub(crate) fn parts(&self) -> (usize, usize, bool) {
        (self.tokens, self.width, self.normalized)
    }

    fn lower_for(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { batch, tokens, width, .. } = *self;
        let len = elements("mean-pool", "x", &[batch, tokens, width])?;
        let output = elements("mean-pool", "output", &[batch, width])?;
        let (_, decision) = choose("mean-pool", &self.variant, VARIANTS, profile, || {
            ("sequences", "the one way there is".to_owned())
        })?;
        let mut program = Program::new("mean-pool", decision);
        program.operands = vec![
            Operand { name: "x", dtype, len, access: Access::Read },
            Operand { name: "lengths", dtype: DType::U32, len: batch, access: Access::Read },
            Operand { name: "output", dtype: DType::F32, len: output, access: Access::Write },
        ];
        program.cost =
            Cost { flop: len as f64, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
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
        // What a chunk writes, and its lengths, must fit a binding too.
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

crate::program::lowers! {
    impl[] MeanPool as [f32, f16], |op, dtype, profile| op.lower_for(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "mean-pool",
    about: "the mean of the first tokens of each sequence, as many as its length says",
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

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (x, [batch, tokens, width]) = asked.array("x")?;
    let lengths = asked.indices("lengths", &[batch], tokens)?;
    let mut op = MeanPool::new([batch, tokens, width]).variant(asked.variant());
    if asked.settings().has("normalized") {
        op = op.normalized();
    }
    let (dtype, output) = (x.dtype(), Role::Result(vec![batch, width]));
    let operands = vec![Role::Given(x), Role::Given(lengths), output];
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op, operands)))
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
