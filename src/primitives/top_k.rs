mod convert;
mod lowering;
mod payload;

use super::DTYPES;
use super::select_columns::PositionsOf;
use crate::program::prelude::*;
use lowering::TopKLowering;
pub(super) use lowering::{PlaceParams, kth_number, word_parts};
pub(super) use payload::{asked_payload, with_payload};

/// Finds the `k` largest (or smallest) of `n` elements, in order: `values[i]` is the `i`-th largest element, and
/// `indices[i]` its position in the input.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, 9.0, -1.0, 7.0])?;
/// let (values, indices) = (gpu.alloc::<f32>(2)?, gpu.alloc::<u32>(2)?);
/// let top = TopK::new(4, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// top.record(&mut rec, &x, &values, &indices)?;
/// rec.submit()?;
/// assert_eq!((values.read()?, indices.read()?), (vec![9.0, 7.0], vec![1, 3]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements; `values` and `indices` (u32) have `k`, from 1 to `n`. The outputs must be other wgpu
/// buffers than the input and each other. With [`counted`](TopK::counted) an operand `length` of one u32 holds the
/// number of elements, at most `n`. [`with_payload`](TopK::with_payload) copies rows of another array along.
///
/// # Types and order
/// f32, f16, i32, u32 and u64; largest first, or [`smallest`](TopK::smallest) first. The order is that of
/// [`RadixSort`](crate::RadixSort): -inf ... -0, +0 ... +inf. NaN is the worst either way, so NaN appears only if
/// there are fewer than `k` numbers. Of equal elements, and of NaNs, the one with the lower index comes first.
///
/// # Precision and determinism
/// Elements are moved, never computed with: NaN keeps its bits. The same input gives the same bits on every device.
///
/// # Cost
/// `filter` and `subgroup` read the input once. For `k` up to 1024 they take 2 dispatches and scratch of n / c
/// words, where c, from 64 to 4096, is about sqrt(3 n / k); above, about 30 dispatches and k c words more. `radix`
/// reads the input 4 to 5 times and sorts `k` pairs. `sort` sorts all pairs. `single` is one dispatch of one
/// workgroup.
///
/// # Variants
/// See [`TopK::variants`]. `auto` (the default) takes `single` for few elements, `subgroup` or `filter` while `k`
/// is small beside `n`, then `radix`, and `sort` if `k` is at least half of `n`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): `k` is 0 or above `n`, or an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type, or a variant that the device cannot
///   run or that does not take this `k` or `n`.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, or scratch above the largest
///   binding.
///
/// # Algorithm
/// The k best elements lie in the k chunks with the best maxima (of equal ones, the first). `filter` and `subgroup`
/// find the best of each chunk, the k best chunks, and the k best of their elements. For k up to 1024 one workgroup
/// does all but the first step (`shaders/primitives/top_k_finish.wgsl`). For more, a radix select finds the k-th
/// best, everything at least as good is collected in order of position, and a stable sort puts it in order. `radix`
/// does that with all elements. f16 is compared as f32; u64 only by `sort`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopK {
    n: usize,
    k: usize,
    smallest: bool,
    counted: bool,
    payload: Option<(DType, usize)>,
    variant: String,
    chunk: Option<u32>,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("single", "one workgroup, for few elements and k up to 1024"),
    Variant::portable("filter", "reads once for the best of each chunk, then the best chunks only"),
    Variant::subgroups("subgroup", "as filter, with the best of a chunk by subgroup shuffles"),
    Variant::portable("radix", "radix select of the k-th best, then a sort of the k"),
    Variant::portable("sort", "sorts all elements with their positions"),
];

impl TopK {
    /// Finds the `k` largest of `n` elements.
    pub fn new(n: usize, k: usize) -> Self {
        Self { n, k, smallest: false, counted: false, payload: None, variant: "auto".into(), chunk: None }
    }

    /// Finds the smallest elements. The default is the largest.
    #[must_use]
    pub fn smallest(mut self) -> Self {
        self.smallest = true;
        self
    }

    counted!(
        counted,
        "elements",
        "Elements behind it are ignored. If it is below `k`, outputs behind it may hold anything."
    );

    /// Copies the rows of the best from an operand `payload`, of `n` rows of `width` elements of `dtype`, to
    /// `payload_out`, of `k`. Plans take both by `with_payload`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    /// use tilework::DType;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, names) = (gpu.upload(&[3.0f32, 9.0, -1.0, 7.0])?, gpu.upload(b"abcd")?);
    /// let (values, indices, best) = (gpu.alloc::<f32>(2)?, gpu.alloc::<u32>(2)?, gpu.alloc::<u8>(2)?);
    /// let top = TopK::new(4, 2).with_payload(DType::U8, 1).plan::<f32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// top.with_payload(&names, &best).record(&mut rec, &x, &values, &indices)?;
    /// rec.submit()?;
    /// assert_eq!(best.read()?, b"bd");
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn with_payload(mut self, dtype: DType, width: usize) -> Self {
        self.payload = Some((dtype, width));
        self
    }

    variants!(variant);

    fn lower_typed<T: Element>(&self, profile: &DeviceProfile) -> Result<Program> {
        if let Some(payload) = self.payload {
            let best = Self { payload: None, ..self.clone() }.lower_typed::<T>(profile)?;
            return with_payload(best, payload, self.n, PositionsOf::Column, profile);
        }
        match T::DTYPE {
            DType::F16 => self.lower_halves(profile),
            DType::U64 => self.lower_words(profile),
            dtype => TopKLowering::new(self, dtype, profile)?.run::<T>(self),
        }
    }

    /// Sets the elements of a chunk of `filter` and `subgroup`, for tuning and tests: a power of two from 64 to
    /// 4096. The default is that of the policy.
    #[doc(hidden)]
    #[must_use]
    pub fn chunk(mut self, elements: u32) -> Self {
        self.chunk = Some(elements);
        self
    }
}

operands! {
    impl[T: Element,] TopK, T {
        fn record(input: T, values: T, indices: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
        /// Takes rows of which those of the best are copied.
        optional with_payload<P>(payload: P, payload_out: P);
    }
}

lowers! {
    impl[T: Element] TopK as [T], |op, _dtype, profile| op.lower_typed::<T>(profile)
}

pub(super) const INFO: Operation = Operation {
    name: "top-k",
    about: "the k largest elements in order, and where they stood",
    inputs: &[Input::new("input", "(n)"), Input::optional("payload", "(n), any type")],
    outputs: &[("values", "(k)"), ("indices", "u32 (k)"), ("[payload]", "(k)")],
    types: &DTYPES,
    options: &[Setting::number("k", ""), Setting::flag("smallest"), LENGTH, Setting::number("chunk", "")],
    domains: &[("input", Domain::Runs), ("payload", Domain::Bits)],
    make: Some(make),
    variants: TopK::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[("k", "3")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let settings = asked.settings();
    let k = settings.maybe("k")?.ok_or_else(|| {
        err!(InvalidArgument, "top-k: --k is missing; give the number of elements to find, from 1 to {n}")
    })?;
    let mut op = TopK::new(n, k).when(settings.has("smallest"), |op| op.smallest()).variant(asked.variant());
    op.chunk = settings.maybe("chunk")?;
    let (length, output) = asked.length(1, vec![k])?;
    op.counted = length.is_some();
    let dtype = input.dtype();
    let inputs = [Role::Given(input)].into_iter().chain(length);
    let mut operands: Vec<_> = inputs.chain([output.clone(), output.clone()]).collect();
    op.payload = asked_payload(asked, &[n], output, &mut operands)?;
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let chunks = ["filter", "subgroup"].contains(&variant);
    let cases: &[(usize, usize)] = if chunks {
        &[(70_000, 1), (300_001, 100), (200_000, 1500)]
    } else if variant == "single" {
        &[(1, 1), (70_000, 1000)]
    } else {
        &[(70_001, 3000), (5000, 5000)]
    };
    for (i, &(n, k)) in cases.iter().enumerate() {
        let top = TopK::new(n, k).variant(variant);
        programs.push(Op::<f32>::lower(&top.clone().when(i % 2 == 0, |op| op.smallest()), profile)?);
        programs.push(Op::<f32>::lower(&top.clone().counted(), profile)?);
        programs.push(Op::<i32>::lower(&top, profile)?);
        if i == 0 {
            programs.push(Op::<u32>::lower(&top.clone().counted().with_payload(DType::F16, 3), profile)?);
        }
        programs.push(Op::<f16>::lower(&top, profile)?);
        if variant == "sort" {
            programs.push(Op::<u64>::lower(&top.clone().counted(), profile)?);
        }
        programs.push(Op::<u32>::lower(&top.clone().smallest(), profile)?);
        if chunks {
            for chunk in [128, 4096] {
                let top = TopK::new(1 << 20, 20).variant(variant).chunk(chunk);
                programs.push(Op::<f32>::lower(&top, profile)?);
            }
        }
    }
    Ok(programs)
}
