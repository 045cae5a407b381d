use super::operator::{Reducer, Sum, asked_keys, asked_values, by_operator, by_state, counted_results};
use super::runs::{Labels, OPTIONS, RunsJob, VARIANTS, tile};
use super::scan::{STATE_SAMPLE, ScanForm};
use super::{Affine, CustomOp, Max, Min, MinMax, Prod, StateOp, WORDS};
use crate::program::prelude::*;
use std::marker::PhantomData;

/// Reduces the values of each run of equal keys: `results[r] = values[h] + ... + values[e]`, where `h..=e` is run
/// `r` of equal neighbours among the keys, for any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, values) = (gpu.upload(&[7u32, 7, 3, 3, 3, 7])?, gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?);
/// let (keys_out, sums, count) = (gpu.alloc::<u32>(6)?, gpu.alloc::<f32>(6)?, gpu.alloc::<u32>(1)?);
/// let plan = ReduceByKey::new(Sum, 6).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &keys, &values, &keys_out, &sums, &count)?;
/// rec.submit()?;
/// let runs = count.read()?[0] as usize;
/// assert_eq!(keys_out.slice(..runs)?.read()?, [7, 3, 7]);
/// assert_eq!(sums.slice(..runs)?.read()?, [3.0, 12.0, 6.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys`, `values`, `keys_out` and `results` have `n` elements; `count` has one `u32`, the number of runs, which
/// stays on the device. Only the first `count` elements of `keys_out` and `results` are written. Equal keys that
/// are not neighbours form separate runs: sort first ([`RadixSort`](crate::RadixSort)) to get one result for each
/// key. Runs may have any length from 1 to `n`, at the same speed. `n` may be 0. Each output must be another wgpu
/// buffer than every other operand. With
/// [`counted`](ReduceByKey::counted) an operand `length` of one u32 holds the number of elements, at most `n`.
///
/// # Types
/// Values of f32, i32 and u32, with [`Sum`], [`Prod`], [`Min`], [`Max`] and
/// [`CustomOp`], which need not commute: operands keep their order. Operators over a state, too: [`MinMax`] and
/// [`StateOp`] of the same types, others of f32; their values and results may have several numbers each. Keys are u32;
/// [`with_keys`](ReduceByKey::with_keys) selects i32 or f32. Float keys are compared by value: -0 equals +0, and
/// NaN equals nothing. A run has the bits of its first key.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, MinMax};
///
/// let gpu = Gpu::new()?;
/// let (keys, prices) = (gpu.upload(&[7u32, 7, 7, 3])?, gpu.upload(&[2.5f32, 1.0, 4.0, 6.0])?);
/// let (keys, ranges, count) = gpu.reduce_by_key(&keys, &prices, MinMax)?;
/// assert_eq!(count.read()?, [2]);
/// assert_eq!(keys.slice(..2)?.read()?, [7, 3]);
/// assert_eq!(ranges.slice(..2 * 2)?.read()?, [1.0, 4.0, 6.0, 6.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Precision and determinism
/// As [`Scan`](crate::Scan) of each run by itself. `auto` and `hierarchical` give the same bits in every run on the
/// same device. In the variant `lookback` the rounding of runs that span tiles may vary (floating sums and
/// products, and custom operators on floats); [`deterministic`](ReduceByKey::deterministic) rules that out.
///
/// # Cost
/// About `2 n` operations. `lookback` reads every key and value once, in two dispatches. `hierarchical` takes
/// three: it reads keys twice, and the values of the last run of each tile once more. One dispatch if one tile
/// holds everything. A length from the device takes one more dispatch. Scratch: two words for each tile of 512 to 8192
/// elements, four for `lookback`; more for a state.
///
/// # Variants
/// `hierarchical` and `lookback`; `auto` (the default) takes `hierarchical` if a sum rounds, and for 2^18 values or
/// more if a state has several words or on a processor, else `lookback`.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not reduce.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`Shape`](ErrorKind::Shape), on recording: operands of another length.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// A scan of triples (number of heads, value since the last one), G. Blelloch (1990), single-pass with decoupled
/// look-back and fallback as in [`Scan`](crate::Scan), or in three kernels. The thread that meets a head writes the
/// result of the run that ends there. `shaders/primitives/runs_tiles.wgsl` and `reduce_by_key.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReduceByKey<O = Sum, K = u32> {
    op: O,
    n: usize,
    form: ScanForm,
    tile: Option<(u32, u32)>,
    keys: PhantomData<K>,
}

impl<O> ReduceByKey<O> {
    /// Reduces `n` values, with keys of u32.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new(), tile: None, keys: PhantomData }
    }

    /// Selects the type of keys: u32, i32 or f32.
    #[must_use]
    pub fn with_keys<K: Element>(self) -> ReduceByKey<O, K> {
        let Self { op, n, form, tile, keys: _ } = self;
        ReduceByKey { op, n, form, tile, keys: PhantomData }
    }
}

impl<O, K> ReduceByKey<O, K> {
    variants!(choose form.variant);

    deterministic!(form.deterministic);

    counted!(form.counted, "elements", "Elements behind it are ignored.");

    /// Sets the threads of a workgroup and the vec4 of a thread, for tuning. The default is that of the device's
    /// policy.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, vec4s: u32) -> Self {
        self.tile = Some((workgroup_size, vec4s));
        self
    }

    super::lookback::leave_out_posts!(form.leave_out);
}

impl ReduceByKey {
    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, K: Element, O: Reducer<T, Output = T>,] ReduceByKey<O, K>, T {
        fn record(keys: K, values: T, keys_out: K, results: T, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
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
    outputs: &[("keys", "(count)"), ("results", "(count, each)")],
    types: &WORDS,
    options: OPTIONS,
    domains: &[("keys", Domain::Runs), ("values", Domain::Combined)],
    make: Some(make),
    variants: ReduceByKey::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, n) = asked_keys(asked)?;
    let elements = asked_values(asked, "values", n)?;
    let (results, values) = (counted_results(&elements.each), elements.input);
    let (of_keys, dtype) = (keys.dtype(), values.dtype());
    let (mut form, tile) = (ScanForm::of(asked), tile(asked)?);
    let length = asked.length(1, vec![n])?.0;
    form.counted = length.is_some();
    let inputs = [keys, values].map(Role::Given).into_iter().chain(length);
    let operands: Vec<_> = inputs.chain([Role::Counted, results, Role::Count]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => by_type!(asked, of_keys, [u32, i32, f32], K => {
        Ok(OpCall::new::<T>(ReduceByKey { op, n, form, tile, keys: PhantomData::<K> }, operands))
    }), else by_operator!(asked, [Sum, Prod, Min, Max], op => by_type!(asked, of_keys, [u32, i32, f32], K => {
        let reduce = ReduceByKey { op, n, form, tile, keys: PhantomData::<K> };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(reduce, operands)))
    })))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    let mut programs = Vec::new();
    for n in [100_000, 3, 1 << 23] {
        macro_rules! lower {
            ($($op:expr, $key:ty => $($t:ty),*;)*) => {$($({
                let reduce = ReduceByKey::new($op, n).with_keys::<$key>().variant(variant);
                programs.push(Op::<$t>::lower(&reduce.clone().counted(), profile)?);
                programs.push(Op::<$t>::lower(&reduce, profile)?);
            })*)*};
        }
        if n <= 100_000 {
            lower! { Affine::maps(), u32 => f32; MinMax, i32 => i32; MinMax, f32 => f32; StateOp::new(STATE_SAMPLE), u32 => u32; }
        }
        lower! { Sum, u32 => f32, u32; Max, f32 => f32; Min, i32 => i32; Prod, f32 => i32; custom.clone(), u32 => f32; }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
