//! One result for each run of equal keys.

use super::operator::{Reducer, Sum, by_operator};
use super::runs::{Labels, OPTIONS, RunsJob, VARIANTS, tile};
use super::scan::ScanForm;
use super::{CustomOp, Max, Min, Prod, WORDS};
use crate::element::Element;
use crate::error::{Result, err};
use crate::program::{
    Asked, DeviceProfile, Example, Form, Input, Op, Operation, Program, Role, Variant, by_type,
    deterministic, operands,
};
use std::marker::PhantomData;

/// `results[r] = values[h] + ... + values[e]`, where `h..=e` is run `r` of equal neighbours among the keys, for any
/// associative operator.
///
/// # Shapes
/// `keys`, `values`, `keys_out` and `results` have `n` elements, `count` has one `u32`: the number of runs, which stays
/// on the device. `keys_out` and `results` are written up to there, and left as they are behind it. Equal keys that
/// are not neighbours are two runs: sort first ([`RadixSort`](crate::RadixSort)) where each key shall have one.
/// Runs may have any length from 1 to `n`, at the same speed. `n` may be 0. Each output must be another wgpu
/// buffer than every other operand.
///
/// # Types
/// Values of f32, i32 and u32, with [`Sum`], [`Prod`](crate::Prod), [`Min`](crate::Min), [`Max`](crate::Max) and
/// [`CustomOp`], which need not commute: its operands keep their order. Keys are u32, or what
/// [`with_keys`](ReduceByKey::with_keys) says: i32, or f32, which are compared by value: -0 equals +0, and NaN
/// equals nothing. A run has the bits of its first key.
///
/// # Precision and determinism
/// As [`Scan`](crate::Scan) of each run by itself. Same device, same bits, by `auto` and by `hierarchical`; what
/// rounds (floating sums, products and operators of one's own) may vary in the variant `lookback`, for runs that span
/// tiles, which [`deterministic`](ReduceByKey::deterministic) rules out.
///
/// # Cost
/// About `2 n` operations. `lookback` reads every key and value once, in two dispatches; `hierarchical` reads keys
/// twice, and once more those values that belong to the last run of each tile, in three dispatches. One dispatch
/// where a tile holds everything. Scratch: two words for each tile of 512 to 8192 elements, four for
/// `lookback`.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the device's largest binding.
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type that the operator does not have.
/// [`Shape`](crate::ErrorKind::Shape), on recording, for operands of another length.
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// A scan of triples (number of heads, value since the last one), G. Blelloch (1990), single-pass with decoupled
/// look-back and fallback as in [`Scan`](crate::Scan), or in three kernels; who meets a head writes what it ends.
/// `shaders/primitives/runs_tiles.wgsl` and `reduce_by_key.wgsl`.
///
/// # Example
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let keys = gpu.upload(&[7u32, 7, 3, 3, 3, 7])?;
/// let values = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let (keys_out, sums) = (gpu.alloc::<u32>(6)?, gpu.alloc::<f32>(6)?);
/// let count = gpu.alloc::<u32>(1)?;
/// let plan = ReduceByKey::new(Sum, 6).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &keys, &values, &keys_out, &sums, &count)?;
/// rec.submit()?;
/// let runs = count.read()?[0] as usize;
/// assert_eq!(keys_out.slice(..runs)?.read()?, [7, 3, 7]);
/// assert_eq!(sums.slice(..runs)?.read()?, [3.0, 12.0, 6.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReduceByKey<O = Sum, K = u32> {
    op: O,
    n: usize,
    form: ScanForm,
    tile: Option<(u32, u32)>,
    keys: PhantomData<K>,
}

impl<O> ReduceByKey<O> {
    /// Of `n` values, with keys of u32.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new(), tile: None, keys: PhantomData }
    }

    /// Takes keys of another type: u32, i32 or f32.
    #[must_use]
    pub fn with_keys<K: Element>(self) -> ReduceByKey<O, K> {
        let Self { op, n, form, tile, keys: _ } = self;
        ReduceByKey { op, n, form, tile, keys: PhantomData }
    }
}

impl<O, K> ReduceByKey<O, K> {
    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.variant);
        self
    }

    deterministic!(form.deterministic);

    /// Invocations of a workgroup and vec4 of an invocation, instead of what the device's policy has: for tuning.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, quads: u32) -> Self {
        self.tile = Some((workgroup_size, quads));
        self
    }

    /// For tests: as [`Scan::leave_out_posts`](crate::Scan::leave_out_posts).
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.form.leave_out = one_in;
        self
    }
}

impl ReduceByKey {
    /// Every way to run the op.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }
}

operands! {
    impl[T: Element, K: Element, O: Reducer<T, Output = T>,] ReduceByKey<O, K>, T {
        fn record(keys: K, values: T, keys_out: K, results: T, count: u32);
    }
}

macro_rules! op {
    ($($key:ty),*) => {$(
        impl<T: Element, O: Reducer<T, Output = T>> Op<T> for ReduceByKey<O, $key> {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                let op = self.op.operator();
                let job = RunsJob {
                    name: "reduce-by-key",
                    op: &op,
                    dtype: T::DTYPE,
                    labels: Labels::Keys(<$key>::DTYPE),
                    n: self.n,
                    form: &self.form,
                    tile: self.tile,
                };
                job.lower(profile)
            }
        }
    )*};
}
op!(u32, i32, f32);

pub(super) const INFO: Operation = Operation {
    name: "reduce-by-key",
    about: "the values of each run of equal keys combined",
    inputs: &[Input::new("keys", "(n)"), Input::new("values", "(n)")],
    types: &WORDS,
    options: OPTIONS,
    make: Some(make),
    variants: ReduceByKey::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (keys, [n]) = asked.array("keys")?;
    let values = asked.of_own_type("values", &[n])?;
    let (of_keys, dtype) = (keys.dtype(), values.dtype());
    if !WORDS.contains(&of_keys) {
        return Err(err!(
            Unsupported,
            "reduce-by-key: the keys are of {of_keys}; the op takes u32, i32 and f32"
        ));
    }
    let (form, tile) = (ScanForm::of(asked), tile(asked)?);
    let operands = vec![Role::Given(keys), Role::Given(values), Role::Counted, Role::Counted, Role::Count];
    by_operator!(asked, [Sum, Prod, Min, Max], op => by_type!(asked, of_keys, [u32, i32, f32], K => {
        let reduce = ReduceByKey { op, n, form, tile, keys: PhantomData::<K> };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(Form::new::<T>(reduce, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    let mut programs = Vec::new();
    for n in [100_000, 3, 1 << 23] {
        macro_rules! lower {
            ($($op:expr, $key:ty => $($t:ty),*;)*) => {$($({
                let reduce = ReduceByKey::new($op, n).with_keys::<$key>().variant(variant);
                programs.push(Op::<$t>::lower(&reduce, profile)?);
            })*)*};
        }
        lower! { Sum, u32 => f32, u32; Max, f32 => f32; Min, i32 => i32; Prod, f32 => i32; custom.clone(), u32 => f32; }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::primitives::ArgMin;
    use crate::program::Determinism;

    #[test]
    fn what_is_not_defined_is_refused() {
        let profile = DeviceProfile::webgpu_defaults();
        let kind = |r: Result<Program>| r.unwrap_err().kind();
        let sum = |n| ReduceByKey::new(Sum, n);
        assert_eq!(kind(Op::<u32>::lower(&ReduceByKey::new(ArgMin, 9), &profile)), ErrorKind::Unsupported);
        assert_eq!(kind(Op::<half::f16>::lower(&sum(9), &profile)), ErrorKind::Unsupported);
        assert_eq!(kind(Op::<f32>::lower(&sum(9).variant("magic"), &profile)), ErrorKind::InvalidArgument);
        assert_eq!(kind(Op::<f32>::lower(&sum(1 << 26), &profile)), ErrorKind::TooLarge);
        assert_eq!(kind(Op::<f32>::lower(&sum(usize::MAX), &profile)), ErrorKind::TooLarge);
    }

    #[test]
    fn bits_repeat_unless_lookback_is_asked_for() {
        let profile = DeviceProfile::h100();
        let sum = ReduceByKey::new(Sum, 1 << 24);
        let floats = Op::<f32>::lower(&sum, &profile).unwrap();
        assert_eq!((floats.variant(), floats.determinism), ("hierarchical", Determinism::SameBits));
        let integers = Op::<u32>::lower(&ReduceByKey::new(Sum, 1 << 16), &profile).unwrap();
        assert_eq!((integers.variant(), integers.determinism), ("lookback", Determinism::SameBits));
        let fast = Op::<f32>::lower(&sum.variant("lookback"), &profile).unwrap();
        assert_eq!(fast.determinism, Determinism::RoundingVaries);
    }
}
