use super::operator::{OP, Reducer, STATE, Sum, asked_keys, asked_values, by_operator, by_state};
use super::scan::{HIERARCHICAL, LOOKBACK, STATE_SAMPLE, ScanForm, ScanJob, Segments};
use super::{Affine, CustomOp, Max, MeanVariance, Min, MinMax, StateOp, WORDS};
use crate::program::prelude::*;
use std::marker::PhantomData;

/// Computes all prefixes of each run of equal keys: `output[i] = input[h] + ... + input[i]`, where `h <= i` is the
/// first element of the run of `i`, for any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, x) = (gpu.upload(&[7u32, 7, 3, 3, 3, 7])?, gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?);
/// let y = gpu.alloc::<f32>(6)?;
/// let scan = ScanByKey::new(Sum, 6).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// scan.record(&mut rec, &keys, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1.0, 3.0, 3.0, 7.0, 12.0, 6.0]);
/// // The number of earlier elements of the run.
/// let ones = gpu.upload(&[1u32; 6])?;
/// assert_eq!(gpu.exclusive_scan_by_key(&keys, &ones, Sum)?.read()?, [0, 1, 0, 1, 2, 0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys`, `input` and `output` have `n` elements each. Equal keys that are not neighbours form separate runs: sort
/// first ([`RadixSort`](crate::RadixSort)) to get one for each key. Runs may have any length from 1 to `n`, at the same
/// speed. `n` may be 0. `output` must be another wgpu buffer than the two inputs.
///
/// # Forms
/// [`exclusive`](ScanByKey::exclusive) leaves out the element itself: a run begins with the identity.
///
/// # Types, precision and determinism
/// As [`SegmentedScan`](crate::SegmentedScan): f32, f16, i32 and u32; any associative operator, also over a state.
/// Keys are u32; [`with_keys`](ScanByKey::with_keys) selects i32 or f32. Float keys are compared by value: -0 equals
/// +0, and NaN equals nothing. In the variant `lookback` the rounding of runs that span tiles may vary from run to run
/// of the program, which [`deterministic`](ScanByKey::deterministic) rules out.
///
/// # Cost
/// About `2 n` operations. `lookback` reads every key and element once, in two dispatches; `hierarchical` reads them
/// twice, in three; one dispatch if one tile holds everything. Scratch: two words for each tile of 2048 to 32768
/// elements; a state takes as many times its words.
///
/// # Variants
/// `hierarchical` and `lookback`; `auto` (the default) takes `lookback`, and `hierarchical` if bits must
/// repeat or on software drivers.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not scan, or a variant that the
///   operator or the device does not have.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`Shape`](ErrorKind::Shape), on recording: operands of another length.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`SegmentedScan`](crate::SegmentedScan), with keys in place of flags: `shaders/primitives/scan_tiles.wgsl` and
/// `scan_by_key.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanByKey<O = Sum, K = u32> {
    op: O,
    n: usize,
    form: ScanForm,
    keys: PhantomData<K>,
}

impl<O> ScanByKey<O> {
    /// Scans `n` elements, with keys of u32.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new(), keys: PhantomData }
    }

    /// Selects the type of keys: u32, i32 or f32.
    #[must_use]
    pub fn with_keys<K: Element>(self) -> ScanByKey<O, K> {
        let Self { op, n, form, keys: _ } = self;
        ScanByKey { op, n, form, keys: PhantomData }
    }
}

impl<O, K> ScanByKey<O, K> {
    /// Combines only the elements of the run before `i` into result `i`; the first result is the identity.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.form.exclusive = true;
        self
    }

    variants!(choose form.variant);

    deterministic!(form.deterministic);

    counted!(form.counted, "elements", "Behind as many elements, `output` may hold anything.");

    super::lookback::leave_out_posts!(form.leave_out);
}

const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];

impl ScanByKey {
    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, K: Element, O: Reducer<T, Output = T>,] ScanByKey<O, K>, T {
        fn record(keys: K, input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

macro_rules! op {
    ($($key:ty),*) => {$(
        impl<T: Element, O: Reducer<T, Output = T>> Op<T> for ScanByKey<O, $key> {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                let op = self.op.operator();
                let job = ScanJob {
                    name: "scan-by-key",
                    op: &op,
                    dtype: T::DTYPE,
                    segments: Segments::Keys(<$key>::DTYPE),
                    len: self.n,
                    form: &self.form,
                };
                job.lower(profile, VARIANTS)
            }
        }
    )*};
}
op!(u32, i32, f32);

pub(super) const INFO: Operation = Operation {
    name: "scan-by-key",
    about: "all prefixes combined, anew where a key changes",
    inputs: &[Input::new("keys", "(n)"), Input::new("input", "(n)")],
    outputs: &[("output", "(n, each)")],
    types: &WORDS,
    options: &[OP, STATE, Setting::flag("exclusive"), Setting::flag("deterministic"), LENGTH],
    make: Some(make),
    variants: ScanByKey::variants,
    samples,
    domains: &[("keys", Domain::Runs), ("input", Domain::Combined)],
    comparison: Some(Comparison::Prefixes),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, n) = asked_keys(asked)?;
    let elements = asked_values(asked, "input", n)?;
    let (length, output) = asked.length(1, elements.results(&[n]))?;
    let (of_keys, form) = (keys.dtype(), ScanForm { counted: length.is_some(), ..ScanForm::of(asked) });
    let (dtype, inputs) = (elements.input.dtype(), [keys, elements.input].map(Role::Given));
    let operands: Vec<_> = inputs.into_iter().chain(length).chain([output]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => by_type!(asked, of_keys, [u32, i32, f32], K => {
        Ok(OpCall::new::<T>(ScanByKey { op, n, form, keys: PhantomData::<K> }, operands))
    }), else by_operator!(asked, [Sum, Prod, Min, Max], op => by_type!(asked, of_keys, [u32, i32, f32], K => {
        let scan = ScanByKey { op, n, form, keys: PhantomData::<K> };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(scan, operands)))
    })))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    for (n, exclusive) in [(100_000, false), (3, true), (1 << 23, true)] {
        macro_rules! lower {
            ($($op:expr, $key:ty => $($t:ty),*;)*) => {$($({
                let scan = ScanByKey::new($op, n).with_keys::<$key>().variant(variant);
                programs.push(Op::<$t>::lower(&scan.when(exclusive, |op| op.exclusive()), profile)?);
            })*)*};
        }
        lower! { Sum, u32 => f32, f16; Max, f32 => i32, f16; Min, i32 => f32; custom.clone(), u32 => u32; }
        let counted = ScanByKey::new(Sum, n).variant(variant).counted();
        programs.push(Op::<f32>::lower(&counted, profile)?);
        if n <= 100_000 {
            lower! { Affine::recurrence(), u32 => f32; MeanVariance::sample(), i32 => f32; MinMax, f32 => f32; }
            lower! { StateOp::new(STATE_SAMPLE), u32 => u32; }
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
