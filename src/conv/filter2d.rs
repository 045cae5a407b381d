use super::stencil::{Boundary, Stencil, stencil_builders};
use crate::program::prelude::*;

/// Filters an image: `output[y, x] = sum over j, i of input[y + j - ry, x + i - rx] * filter[j, i]`, with
/// `t = (2 ry + 1) (2 rx + 1)` weights.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u8, 2, 3, 4, 5, 6, 7, 8, 9])?, gpu.alloc::<u8>(9)?);
/// let sharpen = [0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0];
/// let filter = Filter2d::new([3, 3], [3, 3], &sharpen).boundary(Boundary::Clamp).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// filter.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0, 0, 1, 3, 5, 7, 9, 11, 13]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::filter2d`](crate::Gpu::filter2d).
///
/// # Shapes
/// `input` and `output` are `h` x `w`, row-major without gaps. The filter has odd extents, and may be larger than the
/// input. An empty input gives an empty output. The operands must be different wgpu buffers.
///
/// # The filter as an operand
/// The weights of [`new`](Self::new) belong to the descriptor: for others plan again, which reuses the compiled
/// kernels. [`with_filter`](Self::with_filter) makes the filter an operand, `rows` x `columns` of f32, which may
/// change from call to call. `constant` binds it as a uniform, as [`Gpu::uniform`](crate::Gpu::uniform) makes one.
/// Its weights are not checked: NaN and infinities make results of floats NaN or infinite, and bytes undefined. A
/// filter with zeros outside is a layer of one channel padded by its radius, so that
/// [`Conv2dBackwardWeights`](super::Conv2dBackwardWeights) gives its gradient.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.alloc::<f32>(3)?);
/// let filter = gpu.uniform(&[0.0f32, 1.0, 0.0])?;
/// let plan = Filter2d::with_filter([1, 3], [1, 3]).variant("constant").plan::<f32>(&gpu)?;
/// for want in [[1.0, 2.0, 3.0], [1.0, 12.0, 23.0]] {
///     let mut rec = gpu.recorder();
///     plan.with_filter(&filter).record(&mut rec, &x, &y)?;
///     rec.submit()?;
///     assert_eq!(y.read()?, want);
///     filter.slice(..1)?.write(&[10.0])?;
/// }
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Boundary
/// Outside the input lies 0, or by [`boundary`](Self::boundary) the nearest element, or the input again, as often as
/// the filter reaches.
///
/// # Precision and determinism
/// Elements are f32, f16 or u8, the filter is always f32. A sum of `t` products is computed by fused multiply-adds in
/// an order that depends only on the variant: the same device gives the same bits. Elements of u8 and f16 are
/// multiplied and summed in f32 and rounded once, to nearest, ties to even; u8 saturates to 0 ... 255. If all
/// weights are multiples of one power of 2 and no sum exceeds 2^24 of it, every sum is exact, and all variants
/// agree bit by bit (`separable` if the filter is exactly a product of lines).
///
/// # Cost
/// `2 t` flop for each output. With `register` each input is read about once. One dispatch, no scratch; `separable`
/// may take more.
///
/// # Variants
/// `naive`, `constant`, `strategy1`, `strategy2`, `strategy3`, `register`, `separable`: see [the family](crate::conv).
/// `auto` (the default) takes `register` up to 256 weights, then `strategy1` while a tile with its halo fits workgroup
/// memory, then `constant` up to 16376 weights (WebGPU's 64 KiB), then `naive`; on processors `register` up to 64
/// weights (256 of three dimensions, for many outputs), then `constant`. For an operand it takes `naive` in place of
/// `constant`, since not every buffer can be a uniform. `separable` takes a filter that is a product of lines, one for
/// each axis: in f32, every weight is within 2^-20 of the largest of the product of the lines through that one. It sums
/// along one axis after the other, unrounded between them: in the registers of one kernel, by tiles, or for long lines
/// in a dispatch for each axis with 4 bytes of scratch for each element. The report says which. It rejects any other
/// filter.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an even extent of the filter; a weight that is not
///   finite; an unknown variant.
/// - [`Shape`](ErrorKind::Shape): a number of weights that does not match the filter's extents.
/// - [`TooLarge`](ErrorKind::TooLarge): an input above the largest binding or buffer; more weights than a
///   driver that ends long loops adds.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type; a variant that does not suit this filter
///   or device, such as `separable` for an operand.
///
/// # Algorithm
/// Tiles as in Kirk and Hwu, *Programming Massively Parallel Processors*: `shaders/conv/stencil_*.wgsl`. `register`
/// loads each row of inputs once by vec4s, with its neighbours, and adds it to every sum of the thread that it is
/// part of.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter2d {
    stencil: Stencil,
}

impl Filter2d {
    /// Filters an image of `h` rows of `w` pixels. `filter` has `rows` x `columns` weights, row by row.
    pub fn new([h, w]: [usize; 2], [rows, columns]: [usize; 2], filter: &[f32]) -> Self {
        Self { stencil: Stencil::new("filter2d", 2, [1, h, w], [1, rows, columns], Some(filter.to_vec())) }
    }

    /// Filters an image with a filter of this shape that is an operand: it may change from call to call, or be
    /// learnt. `plan.with_filter(&filter).record(..)`.
    pub fn with_filter([h, w]: [usize; 2], [rows, columns]: [usize; 2]) -> Self {
        Self { stencil: Stencil::new("filter2d", 2, [1, h, w], [1, rows, columns], None) }
    }
}

stencil_builders!(Filter2d, super::stencil::VARIANTS);

operands! {
    impl[T: Element,] Filter2d, T {
        fn record(input: T, output: T);
        /// Adds the filter that [`Filter2d::with_filter`] asks for.
        optional with_filter(filter: f32);
    }
}

lowers! {
    impl[T: Element] Filter2d as [T], |op, dtype, profile| op.stencil.lower(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "filter2d",
    aliases: &["conv2d"],
    about: "each element becomes a weighted sum of its neighbours over an image",
    inputs: &[Input::new("input", "(h, w)"), Input::new("filter", "f32 (fh, fw), odd extents")],
    outputs: &[("output", "as input")],
    types: &[DType::F32, DType::F16, DType::U8],
    options: super::stencil::OPTIONS,
    domains: &[("filter", Domain::Eighths)],
    make: Some(make),
    variants: Filter2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts: super::stencil::facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (dtype, operands, stencil) = super::stencil::asked::<2>(asked)?;
    let op = Filter2d { stencil };
    by_type!(asked, dtype, [f32, f16, u8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for boundary in Boundary::ALL {
        for (w, f) in [(64, [5, 5]), (63, [3, 7])] {
            let desc = Filter2d::new([50, w], f, &vec![1.0; f[0] * f[1]]).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
            programs.push(Op::<u8>::lower(&desc, profile)?);
            programs.push(Op::<f16>::lower(&desc, profile)?);
            if variant != "separable" {
                let desc = Filter2d::with_filter([50, w], f).boundary(boundary).variant(variant);
                programs.push(Op::<f32>::lower(&desc, profile)?);
                programs.push(Op::<u8>::lower(&desc, profile)?);
                programs.push(Op::<f16>::lower(&desc, profile)?);
            }
        }
        // A filter that is larger than the image.
        let desc = Filter2d::new([3, 8], [7, 11], &[1.0; 77]).boundary(boundary).variant(variant);
        programs.push(Op::<f32>::lower(&desc, profile)?);
        if variant == "separable" {
            // By tiles, and one dispatch for each axis.
            for (w, side) in [(120, 21), (119, 21), (120, 75), (119, 75)] {
                let desc =
                    Filter2d::new([100, w], [side; 2], &vec![1.0; side * side]).boundary(boundary).variant(variant);
                programs.push(Op::<f32>::lower(&desc, profile)?);
                programs.push(Op::<u8>::lower(&desc, profile)?);
                programs.push(Op::<f16>::lower(&desc, profile)?);
            }
        }
    }
    Ok(programs)
}
