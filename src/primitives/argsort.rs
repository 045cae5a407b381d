use super::sort::RadixSort;
use crate::elementwise::{MAPPED, MapFn, asked_map};
use crate::program::prelude::*;
use std::ops::Range;

/// Finds the order of keys, stably: `indices[i]` is the position of the `i`-th key in order, so that
/// `keys[indices[0]] <= keys[indices[1]] <= ...`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, indices) = (gpu.upload(&[3.0f32, -1.0, 2.0])?, gpu.alloc::<u32>(3)?);
/// let order = Argsort::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// order.record(&mut rec, &keys, &indices)?;
/// rec.submit()?;
/// assert_eq!(indices.read()?, [1, 2, 0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys` has `n` elements, `indices` (u32) as many. Any length from 0 to the largest buffer. They must be different
/// wgpu buffers. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of keys, at most `n`.
///
/// # Types and order
/// Keys of u8, i8, f16, u32, i32, f32 and u64, in the order of [`RadixSort`]: equal keys keep their order, ascending
/// and [`descending`](Self::descending), and every NaN comes last either way.
///
/// # Precision and determinism
/// Exact, and the same on every device.
///
/// # Cost
/// That of [`RadixSort`] with values, less 8 bytes a key: the first pass makes the positions as it goes, and the input
/// holds none. Scratch: two copies of the keys and one of the indices, and what the variant needs.
///
/// # Variants
/// Those of [`RadixSort`], chosen as there.
///
/// # Errors
/// Those of [`RadixSort`].
///
/// # Algorithm
/// As [`RadixSort`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argsort {
    n: usize,
    descending: bool,
    bits: Option<Range<u32>>,
    function: Option<MapFn>,
    counted: bool,
    variant: String,
}

impl Argsort {
    /// Finds the order of `n` keys.
    pub fn new(n: usize) -> Self {
        Self { n, descending: false, bits: None, function: None, counted: false, variant: "auto".into() }
    }

    /// Finds the descending order. The default is ascending.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Compares these bits only: as [`RadixSort::bits`].
    #[must_use]
    pub fn bits(mut self, bits: Range<u32>) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Orders by `function` of the keys: as [`RadixSort::mapped`].
    #[must_use]
    pub fn mapped(mut self, function: MapFn) -> Self {
        self.function = Some(function);
        self
    }

    counted!(counted, "keys", "Behind as many elements, `indices` may hold anything.");

    variants!(variant);

    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let sort = RadixSort::new(self.n).when(self.descending, RadixSort::descending).variant(&self.variant);
        let sort = sort.when(self.counted, RadixSort::counted);
        let sort = self.bits.iter().fold(sort, |sort, bits| sort.bits(bits.clone()));
        let sort = self.function.iter().fold(sort, |sort, function| sort.mapped(function.clone()));
        sort.positions(dtype, profile)
    }
}

const VARIANTS: &[Variant] = super::sort::VARIANTS;

operands! {
    impl[T: Element,] Argsort, T {
        fn record(keys: T, indices: u32);
        /// Takes the number of keys from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Argsort: f32, i32, u32, u64, f16, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "argsort",
    about: "positions of the keys in order, stable",
    inputs: &[Input::new("keys", "(n)")],
    outputs: &[("indices", "u32 (n)")],
    types: &HostData::TYPES,
    options: &[Setting::flag("descending"), super::sort::BITS, MAPPED, LENGTH],
    domains: &[("keys", Domain::Runs)],
    make: Some(make),
    variants: Argsort::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, [n]) = asked.array("keys")?;
    let settings = asked.settings();
    let mut op = Argsort::new(n).when(settings.has("descending"), Argsort::descending).variant(asked.variant());
    if let Some([begin, end]) = settings.given_numbers(&super::sort::BITS)? {
        op = op.bits(begin..end);
    }
    if let Some(function) = asked_map(asked) {
        op = op.mapped(function);
    }
    let dtype = keys.dtype();
    let (length, output) = asked.length(1, vec![n])?;
    op = op.when(length.is_some(), Argsort::counted);
    let operands = [Role::Given(keys)].into_iter().chain(length).chain([output]).collect();
    by_type!(asked, dtype, [f32, i32, u32, f16, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Argsort::new(10_001).variant(variant);
    Ok(vec![
        op.clone().descending().lower_as(DType::F32, profile)?,
        op.clone().bits(4..20).lower_as(DType::I32, profile)?,
        op.clone().lower_as(DType::U64, profile)?,
        op.clone().counted().lower_as(DType::U32, profile)?,
        op.lower_as(DType::F16, profile)?,
    ])
}
