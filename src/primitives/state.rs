//! Operators over a state of 1 to 4 words, ready-made and the user's own.

use super::operator::{Accumulator, Operator, Reducer};
use crate::program::prelude::*;
use crate::shader::{check_users, state_text};
use std::sync::Arc;

/// Finds minimum and maximum in one pass: each result is 2 elements, `min, max`. Both are NaN if any element is NaN;
/// -0 is below +0. Exact.
///
/// Reductions take f32, f16, i32, u32, u8 and i8; all other ops take f32, i32 and u32.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, MinMax};
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, -7.0, 5.0, 4.0])?;
/// assert_eq!(gpu.reduce(&x, MinMax)?.read()?, [-7.0, 5.0]);
/// assert_eq!(gpu.reduce_rows(&x, MinMax, 2)?.read()?, [-7.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MinMax;

/// Adds integers of 32 bits in 64: each result is 2 elements, the low word of the sum and the high word, which together
/// are an i64 or a u64 in the order of bytes that all devices have. Sums wrap modulo 2^64. Elements are i32 and u32.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, Sum64};
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[u32::MAX, u32::MAX, 7])?;
/// let words = gpu.reduce(&x, Sum64)?.read()?;
/// assert_eq!(u64::from(words[1]) << 32 | u64::from(words[0]), 2 * u64::from(u32::MAX) + 7);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sum64;

/// Computes mean and variance in one pass: each result is 2 elements, `mean = sum(x) / n` and `variance = sum((x -
/// mean)^2) / n`, or divided by `n - 1` for a [`sample`](Self::sample). Elements are f32.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, MeanVariance};
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(gpu.reduce(&x, MeanVariance::population())?.read()?, [2.5, 1.25]);
/// // A scan gives the statistics of all elements up to each.
/// assert_eq!(gpu.inclusive_scan(&x, MeanVariance::population())?.read()?[..4], [1.0, 0.0, 1.5, 0.25]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// The variance stays accurate where the mean is far larger than the deviation: B. P. Welford (1962), with the parts
/// joined as T. F. Chan, G. H. Golub and R. J. LeVeque do (1979). The mean of 0 elements and the variance of 0
/// elements (1 for a sample) are NaN. If an element is NaN or infinite, both results are NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeanVariance {
    sample: bool,
}

impl MeanVariance {
    /// Divides the sum of squares by `n`: the variance of these elements.
    pub const fn population() -> Self {
        Self { sample: false }
    }

    /// Divides the sum of squares by `n - 1`: an estimate of the variance of what the elements were drawn from.
    pub const fn sample() -> Self {
        Self { sample: true }
    }
}

/// Computes `log(sum(exp(x)))` without overflow. Elements are f32. The result of 0 elements is minus infinity; an
/// element of minus infinity adds nothing; plus infinity and NaN give themselves.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, LogSumExp};
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1000.0f32, 1000.0])?;
/// assert!((gpu.reduce(&x, LogSumExp)?.read()?[0] - 1000.6931).abs() < 1e-3);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LogSumExp;

/// Composes affine maps `x -> a x + b` in order. An element is 2 numbers of f32, `a, b`; so is a result, unless
/// [`recurrence`](Self::recurrence) asks for one. Both are rounded once a map. The result of no maps is `1, 0`. From an
/// infinite or NaN number on, results may be any non-finite numbers.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Affine, Gpu};
///
/// let gpu = Gpu::new()?;
/// // y = 2 y + 1, then y = 3 y, then y = y + 5.
/// let maps = gpu.upload(&[2.0f32, 1.0, 3.0, 0.0, 1.0, 5.0])?;
/// assert_eq!(gpu.reduce(&maps, Affine::maps())?.read()?, [6.0, 8.0]);
/// assert_eq!(gpu.inclusive_scan(&maps, Affine::recurrence())?.read()?, [1.0, 3.0, 8.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Affine {
    values: bool,
}

impl Affine {
    /// Returns maps: result `i` is the pair `a, b` of all maps up to `i`, the first of which is applied first.
    pub const fn maps() -> Self {
        Self { values: false }
    }

    /// Returns values: a scan computes the linear recurrence `y[i] = a[i] y[i - 1] + b[i]` with `y[-1] = 0`. For
    /// another start, add `a[0] y[-1]` to `b[0]`.
    pub const fn recurrence() -> Self {
        Self { values: true }
    }
}

/// Combines elements by your own associative operator over a state of 1 to 4 words, written in WGSL.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, StateOp};
///
/// let gpu = Gpu::new()?;
/// // The mean: a sum and a count.
/// let mean = StateOp::new(
///     "struct State { sum: f32, count: u32 }
///      fn state_identity() -> State { return State(0.0, 0u); }
///      fn state_of(x: T) -> State { return State(x, 1u); }
///      fn state_combine(a: State, b: State) -> State { return State(a.sum + b.sum, a.count + b.count); }
///      fn state_result(s: State) -> T { return s.sum / f32(s.count); }",
/// ).commutative();
/// let x = gpu.upload(&[3.0f32, -7.0, 5.0, 3.0])?;
/// assert_eq!(gpu.reduce(&x, mean)?.read()?, [1.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// `T` is the type of elements: f32, i32 or u32. The text declares
///
/// - `struct State`, with 1 to 4 members of f32, i32 or u32;
/// - `fn state_identity() -> State`, which leaves every state as it is;
/// - `fn state_of(x: T) -> State`, the state of one element. With 2 to 4 arguments an element is as many numbers;
/// - `fn state_combine(a: State, b: State) -> State`, associative; it need not commute;
/// - `fn state_result(s: State) -> T`, or `vec2<T>` to `vec4<T>`: the numbers of a result. Without this function a
///   result is the members of `State`, which must then be of `T`.
///
/// An op of `n` elements takes `n` times the arguments of `state_of`, and gives as many numbers a result as
/// `state_result` returns. The text is validated when the op is planned; an error names its line. The kernel runs with
/// all runtime checks, unless the text is `struct State` and then these functions alone, without loops and indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateOp {
    wgsl: Arc<str>,
    commutative: bool,
}

impl StateOp {
    /// Creates an operator whose operands keep their order.
    pub fn new(wgsl: &str) -> Self {
        check_users();
        Self { wgsl: wgsl.into(), commutative: false }
    }

    /// Promises that `state_combine(a, b)` equals `state_combine(b, a)`, which allows faster kernels.
    #[must_use]
    pub fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }

    /// Returns true if [`commutative`](Self::commutative) promised so.
    pub(super) fn commutes(&self) -> bool {
        self.commutative
    }
}

macro_rules! state_reducer {
    ($op:ty: $($t:ty),*; $make:expr) => {$(
        impl Reducer<$t> for $op {
            type Output = $t;
            fn operator(&self) -> Operator {
                let make: fn(&$op) -> Operator = $make;
                make(self)
            }
        }
    )*};
}
state_reducer!(MinMax: f32, f16, i32, u32, u8, i8; |_| Operator::MinMax);
state_reducer!(Sum64: i32, u32; |_| Operator::Sum64);
state_reducer!(MeanVariance: f32; |op| Operator::MeanVariance(*op));
state_reducer!(LogSumExp: f32; |_| Operator::LogSumExp);
state_reducer!(Affine: f32; |op| Operator::Affine(*op));
state_reducer!(StateOp: f32, i32, u32; |op| Operator::State(op.clone()));

impl MeanVariance {
    pub(super) const fn name(self) -> &'static str {
        if self.sample { "samplevar" } else { "meanvar" }
    }

    /// What the divisor of the variance is less than the count.
    pub(crate) fn lost(self) -> u64 {
        u64::from(self.sample)
    }
}

impl Affine {
    pub(super) const fn name(self) -> &'static str {
        if self.values { "recurrence" } else { "affine" }
    }

    /// Returns true if a result is one number.
    pub(crate) fn is_recurrence(self) -> bool {
        self.values
    }
}

/// The words of a state, and the file or text that declares it.
struct StateForm {
    members: Vec<(String, &'static str)>,
    inputs: u32,
    results: Option<u32>,
    source: Fragment,
    flags: &'static [&'static str],
}

/// An operator for elements of one type.
pub(crate) struct Monoid<'a> {
    pub(crate) op: &'a Operator,
    pub(crate) dtype: DType,
    state: Option<StateForm>,
}

impl<'a> Monoid<'a> {
    /// Reads the text of a user's state.
    ///
    /// # Errors
    /// [`Shader`](ErrorKind::Shader) for an invalid text; [`Unsupported`](ErrorKind::Unsupported) for a
    /// type that the operator does not take.
    pub(crate) fn new(op: &'a Operator, dtype: DType) -> Result<Self> {
        let ready = |file, members: &[(&str, &'static str)], inputs, results, flags| StateForm {
            members: members.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect(),
            inputs,
            results: Some(results),
            source: Fragment::Library(file),
            flags,
        };
        let state = match op {
            Operator::MinMax => {
                let flags: &[_] = match dtype {
                    DType::F32 | DType::F16 => &["FLOAT"],
                    DType::I32 | DType::I8 => &["SIGNED"],
                    _ => &[],
                };
                Some(ready("op/min_max", &[("low", "u32"), ("high", "u32")], 1, 2, flags))
            }
            Operator::Sum64 => {
                let flags: &[_] = if dtype == DType::I32 { &["SIGNED"] } else { &[] };
                Some(ready("op/sum64", &[("low", "u32"), ("high", "u32")], 1, 2, flags))
            }
            Operator::MeanVariance(op) => {
                let members = &[("count", "u32"), ("mean", "f32"), ("squares", "f32")];
                Some(ready("op/mean_variance", members, 1, 2, if op.sample { &["SAMPLE"] } else { &[] }))
            }
            Operator::LogSumExp => Some(ready("op/log_sum_exp", &[("largest", "f32"), ("sum", "f32")], 1, 1, &[])),
            Operator::Norm => {
                let members = &[("small", "f32"), ("middle", "f32"), ("large", "f32")];
                Some(ready("primitives/nrm2", members, 1, 1, &[]))
            }
            Operator::Affine(op) => {
                let (results, flags): (_, &[_]) = if op.values { (1, &["VALUES"]) } else { (2, &[]) };
                Some(ready("op/affine", &[("scale", "f32"), ("shift", "f32")], 2, results, flags))
            }
            Operator::State(op) => {
                let element = match dtype {
                    DType::F32 => "f32",
                    DType::I32 => "i32",
                    DType::U32 => "u32",
                    other => {
                        return Err(err!(Unsupported, "a state of elements of {other}; it takes f32, i32 and u32"));
                    }
                };
                let text = state_text(&op.wgsl, element)?;
                let source = Fragment::User(op.wgsl.clone());
                let (members, inputs, results) = (text.members, text.inputs, text.results);
                Some(StateForm { members, inputs, results, source, flags: &[] })
            }
            _ => None,
        };
        Ok(Self { op, dtype, state })
    }

    /// Returns true for an operator over a state.
    pub(crate) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Numbers of an element.
    pub(crate) fn inputs(&self) -> usize {
        self.state.as_ref().map_or(1, |state| state.inputs as usize)
    }

    /// Numbers of a result.
    pub(crate) fn outputs(&self) -> usize {
        self.state.as_ref().map_or(1, |state| state.results.unwrap_or(state.members.len() as u32) as usize)
    }

    pub(crate) fn words(&self) -> u64 {
        match (&self.state, self.op.accumulator()) {
            (Some(state), _) => state.members.len() as u64,
            (None, Accumulator::Pair) => 2,
            (None, _) => 1,
        }
    }

    /// Bytes of an accumulator in an array.
    pub(crate) fn bytes(&self) -> u64 {
        if self.words() == 3 { 16 } else { 4 * self.words() }
    }

    /// Bytes of an accumulator with a flag or a count, in an array.
    pub(crate) fn item_bytes(&self) -> u64 {
        match self.words() {
            1 => 8,
            4 => 32,
            _ => 16,
        }
    }

    /// Returns the spec of kernels that combine elements.
    pub(crate) fn spec(&self) -> Spec {
        let Some(state) = &self.state else { return self.op.specialise(Spec::new(), self.dtype) };
        let of = |words: usize| ["u32", "vec2<u32>", "vec3<u32>", "vec4<u32>"][words - 1];
        let words = state.members.len();
        let result = if self.outputs() == 1 { "array<u32, 1>" } else { of(self.outputs()) };
        let names: Vec<_> = state.members.iter().map(|(name, _)| name.as_str()).collect();
        let spec = Spec::new()
            .slot("element", element_fragment(self.dtype))
            .slot("op", Fragment::Library("op/state"))
            .slot("lift", Fragment::Library("primitives/lift_state"))
            .slot("state", state.source.clone())
            .flag("STATE", true)
            .flag("RESULT", state.results.is_some())
            .constant("STATE_WORDS", words as u32)
            .constant("IN_WORDS", state.inputs)
            .constant("OUT_WORDS", self.outputs() as u32)
            .alias("Acc", of(words))
            .alias("Result", result)
            .list("STATE_FIELDS", names.join(",").into());
        let types = ["WORD_0", "WORD_1", "WORD_2", "WORD_3"].into_iter().zip(&state.members);
        let spec = types.fold(spec, |spec, (word, (_, ty))| spec.alias(word, ty));
        state.flags.iter().fold(spec, |spec, flag| spec.flag(flag, true))
    }
}
