use super::WORDS;
use super::state::{Affine, MeanVariance, Monoid, StateOp};
use crate::program::prelude::*;
use crate::shader::check_users;
use std::sync::Arc;

/// Adds elements, beginning with 0, in reductions and scans. Integers wrap modulo 2^32; bytes sum to 32 bits; f16 is
/// summed in f32 and rounded at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sum;
/// Multiplies elements, beginning with 1, in reductions and scans. Integers wrap modulo 2^32; bytes multiply to 32
/// bits; f16 is multiplied in f32 and rounded at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Prod;
/// Takes the minimum. The result is NaN if any element is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Min;
/// Takes the maximum. The result is NaN if any element is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Max;
/// Finds the first position of the minimum, or of the first NaN if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ArgMin;
/// Finds the first position of the maximum, or of the first NaN if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ArgMax;

/// Combines elements by your own associative operator, written in WGSL.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[3.0f32, -7.0, 5.0])?, gpu.alloc::<f32>(1)?);
/// let largest_magnitude = CustomOp::new(
///     "fn op_identity() -> T { return T(0); }
///      fn op_combine(a: T, b: T) -> T { return max(abs(a), abs(b)); }",
/// ).commutative();
/// let reduce = Reduce::new(largest_magnitude, 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// reduce.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [7.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// The text defines `fn op_identity() -> T` and `fn op_combine(a: T, b: T) -> T`, where `T` is `f32` (also for f16
/// elements), `i32` or `u32`. The operator need not commute. The text is validated when the op is planned. It runs
/// at full speed if it declares nothing else, has no loop, and indexes by literals only; otherwise the kernel runs with
/// all runtime checks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustomOp {
    wgsl: Arc<str>,
    commutative: bool,
}

impl CustomOp {
    /// Creates an operator whose operands keep their order.
    pub fn new(wgsl: &str) -> Self {
        check_users();
        Self { wgsl: wgsl.into(), commutative: false }
    }

    /// Promises that `op_combine(a, b)` equals `op_combine(b, a)`, which allows faster kernels.
    #[must_use]
    pub fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }
}

/// Names an operator by a value instead of a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operator {
    /// [`Sum`].
    Sum,
    /// [`Prod`].
    Prod,
    /// [`Min`].
    Min,
    /// [`Max`].
    Max,
    /// [`ArgMin`].
    ArgMin,
    /// [`ArgMax`].
    ArgMax,
    /// [`CustomOp`].
    Custom(CustomOp),
    /// [`MinMax`](super::MinMax).
    MinMax,
    /// [`Sum64`](super::Sum64).
    Sum64,
    /// [`MeanVariance`].
    MeanVariance(MeanVariance),
    /// [`LogSumExp`](super::LogSumExp).
    LogSumExp,
    /// [`Affine`].
    Affine(Affine),
    /// [`StateOp`].
    State(StateOp),
    /// That of [`Nrm2`](super::Nrm2).
    Norm,
    /// That of [`Asum`](super::Asum).
    SumAbs,
    /// That of [`Iamax`](super::Iamax).
    ArgMaxAbs,
    /// That of [`Iamin`](super::Iamin).
    ArgMinAbs,
}

/// Implemented by operators that reduce elements of type `T`; gives the type of the result.
pub trait Reducer<T: Element> {
    /// Element type of the result.
    type Output: Element;
    /// Returns the operator as a value.
    fn operator(&self) -> Operator;
}

macro_rules! reducer {
    ($op:ident: $($t:ty => $out:ty),*) => {$(
        impl Reducer<$t> for $op {
            type Output = $out;
            fn operator(&self) -> Operator {
                Operator::$op
            }
        }
    )*};
}
reducer!(Sum: f32 => f32, f16 => f16, i32 => i32, u32 => u32, u8 => u32, i8 => i32);
reducer!(Prod: f32 => f32, f16 => f16, i32 => i32, u32 => u32, u8 => u32, i8 => i32);
reducer!(Min: f32 => f32, f16 => f16, i32 => i32, u32 => u32, u8 => u8, i8 => i8);
reducer!(Max: f32 => f32, f16 => f16, i32 => i32, u32 => u32, u8 => u8, i8 => i8);
reducer!(ArgMin: f32 => u32, f16 => u32, i32 => u32, u32 => u32, u8 => u32, i8 => u32);
reducer!(ArgMax: f32 => u32, f16 => u32, i32 => u32, u32 => u32, u8 => u32, i8 => u32);

macro_rules! custom_reducer {
    ($($t:ty),*) => {$(
        impl Reducer<$t> for CustomOp {
            type Output = $t;
            fn operator(&self) -> Operator {
                Operator::Custom(self.clone())
            }
        }
    )*};
}
custom_reducer!(f32, f16, i32, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accumulator {
    /// One 32-bit word: a number or an ordered key.
    Word,
    /// A key and an index.
    Pair,
    /// A state of one to four words.
    State,
}

/// The option `op` of scans and reductions of runs: operators that return no position.
pub(super) const OP: Setting = Setting::word("op", || {
    Operator::BUILT_IN.into_iter().filter(|op| op.accumulator() != Accumulator::Pair).map(|op| op.name()).collect()
});

/// Evaluates `$body` with `$op` bound to the operator that the option `op` names, one of those in brackets.
macro_rules! by_operator {
    ($asked:expr, [$($kind:ident),+], $op:ident => $body:expr) => {
        match $asked.settings().choice("op")? {
            $(name if name == $crate::primitives::Operator::$kind.name() => {
                let $op = $crate::primitives::$kind;
                $body
            })+
            other => Err($crate::error::err!(InvalidArgument, "{}: the operator {other} is unknown", $asked.name())),
        }
    };
}
pub(super) use by_operator;

/// As [`by_operator`] for the operators over a state, also with `$T` as the type of elements: one of those in brackets
/// for minimum and maximum, i32 and u32 for sums of 64 bits, else f32. Evaluates `$other` if the option names no such
/// operator.
macro_rules! by_state {
    ($asked:expr, $dtype:expr, [$($t:ty),+], ($op:ident, $T:ident) => $body:expr, else $other:expr) => {{
        use $crate::primitives::{LogSumExp, MinMax, Operator, Sum64};
        macro_rules! only_f32 {
            ($value:expr) => {{
                let $op = $value;
                $crate::program::by_type!($asked, $dtype, [f32], $T => $body)
            }};
        }
        let name = $asked.settings().choice("op")?;
        if let Some(wgsl) = $crate::primitives::operator::asked_state($asked)? {
            let $op = $crate::primitives::StateOp::new(wgsl);
            return $crate::program::by_type!($asked, $dtype, [f32, i32, u32], $T => $body);
        }
        match Operator::named(name) {
            Some(Operator::MinMax) => {
                let $op = MinMax;
                $crate::program::by_type!($asked, $dtype, [$($t),+], $T => $body)
            }
            Some(Operator::Sum64) => {
                let $op = Sum64;
                $crate::program::by_type!($asked, $dtype, [i32, u32], $T => $body)
            }
            Some(Operator::MeanVariance(op)) => only_f32!(op),
            Some(Operator::LogSumExp) => only_f32!(LogSumExp),
            Some(Operator::Affine(op)) => only_f32!(op),
            _ => $other,
        }
    }};
}
pub(super) use by_state;

/// The option that takes the text of a [`StateOp`] in place of `op`.
pub(super) const STATE: Setting = Setting::wgsl("state");

pub(super) fn asked_state<'a>(asked: &Asked<'a>) -> Result<Option<&'a str>> {
    let settings = asked.settings();
    match settings.word(STATE.name) {
        Some(_) if settings.has("op") => {
            Err(err!(InvalidArgument, "{}: both --op and --state are given; give one of them", asked.name()))
        }
        wgsl => Ok(wgsl),
    }
}

/// Numbers of an element and of a result of the operator that the option `op` names.
fn asked_numbers(asked: &Asked<'_>) -> Result<(usize, usize)> {
    if let Some(wgsl) = asked_state(asked)? {
        let operator = Operator::State(StateOp::new(wgsl));
        let monoid = Monoid::new(&operator, DType::F32)?;
        return Ok((monoid.inputs(), monoid.outputs()));
    }
    let Some(operator) = Operator::named(asked.settings().choice("op")?) else { return Ok((1, 1)) };
    let monoid = Monoid::new(&operator, DType::F32)?;
    Ok((monoid.inputs(), monoid.outputs()))
}

/// Elements that were asked for, and what the operator makes of them.
pub(super) struct AskedElements {
    pub(super) input: HostArray,
    /// The extents of the array, without those of an element.
    pub(super) shape: Vec<usize>,
    /// The extent of a result: none for one number.
    pub(super) each: Vec<usize>,
}

impl AskedElements {
    pub(super) fn results(&self, shape: &[usize]) -> Vec<usize> {
        [shape, &self.each].concat()
    }
}

/// Reads an input of elements, of which operators over a state may have several numbers each, on the last axis. `each`
/// stands for the last axis of results in formulas.
pub(super) fn asked_elements(asked: &mut Asked<'_>, name: &str) -> Result<AskedElements> {
    let (inputs, outputs) = asked_numbers(asked)?;
    let input = asked.any(name)?;
    let each = if outputs > 1 { vec![outputs] } else { Vec::new() };
    asked.set("each", &each);
    let shape = match input.shape().split_last() {
        _ if inputs == 1 => input.shape().to_vec(),
        Some((last, shape)) if *last == inputs => shape.to_vec(),
        _ => {
            return Err(err!(
                Shape,
                "{}: {name} is {input}; an element of this operator has {inputs} numbers, so the last axis must have {inputs}",
                asked.name()
            ));
        }
    };
    Ok(AskedElements { input, shape, each })
}

/// As [`asked_elements`], of one axis, whose extent is `n`. Also returns that.
pub(super) fn asked_row(asked: &mut Asked<'_>, name: &str) -> Result<(AskedElements, usize)> {
    let elements = asked_elements(asked, name)?;
    let [n] = elements.shape[..] else {
        let input = &elements.input;
        return Err(err!(Shape, "{}: {name} is {input}; it must have one axis of elements; reshape it", asked.name()));
    };
    asked.set("n", &[n]);
    Ok((elements, n))
}

/// The output of as many results as the device counts.
pub(super) fn counted_results(each: &[usize]) -> Role {
    each.first().map_or(Role::Counted, |numbers| Role::CountedRows(*numbers))
}

/// Reads keys of u32, i32 or f32, and returns their number, too.
pub(super) fn asked_keys(asked: &mut Asked<'_>) -> Result<(HostArray, usize)> {
    let (keys, [n]) = asked.array("keys")?;
    if !WORDS.contains(&keys.dtype()) {
        let (name, dtype) = (asked.name(), keys.dtype());
        return Err(err!(Unsupported, "{name}: the keys are {dtype}; convert them to u32, i32 or f32"));
    }
    Ok((keys, n))
}

/// As [`asked_row`], for values of a type of their own, `n` of them.
pub(super) fn asked_values(asked: &mut Asked<'_>, name: &str, n: usize) -> Result<AskedElements> {
    let (inputs, outputs) = asked_numbers(asked)?;
    let shape = if inputs > 1 { vec![n, inputs] } else { vec![n] };
    let each = if outputs > 1 { vec![outputs] } else { Vec::new() };
    asked.set("each", &each);
    Ok(AskedElements { input: asked.of_own_type(name, &shape)?, shape: vec![n], each })
}

impl Operator {
    /// All but the user's own.
    pub(crate) const BUILT_IN: [Operator; 13] = [
        Self::Sum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::ArgMin,
        Self::ArgMax,
        Self::MinMax,
        Self::Sum64,
        Self::MeanVariance(MeanVariance::population()),
        Self::MeanVariance(MeanVariance::sample()),
        Self::LogSumExp,
        Self::Affine(Affine::maps()),
        Self::Affine(Affine::recurrence()),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|op| op.name() == name)
    }

    /// Returns the name, as in `op reduce --op NAME`.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Sum => "sum",
            Operator::Prod => "prod",
            Operator::Min => "min",
            Operator::Max => "max",
            Operator::ArgMin => "argmin",
            Operator::ArgMax => "argmax",
            Operator::Custom(_) => "custom",
            Operator::MinMax => "minmax",
            Operator::Sum64 => "sum64",
            Operator::MeanVariance(op) => op.name(),
            Operator::LogSumExp => "logsumexp",
            Operator::Affine(op) => op.name(),
            Operator::State(_) => "state",
            Operator::Norm => "norm",
            Operator::SumAbs => "sum of magnitudes",
            Operator::ArgMaxAbs => "largest magnitude",
            Operator::ArgMinAbs => "smallest magnitude",
        }
    }

    /// Returns true if operands may change places.
    pub fn commutes(&self) -> bool {
        match self {
            Operator::Custom(op) => op.commutative,
            Operator::State(op) => op.commutes(),
            Operator::Affine(_) => false,
            _ => true,
        }
    }

    /// Returns true if the reduction of no elements is defined.
    pub fn has_identity(&self) -> bool {
        use Operator::{ArgMax, ArgMaxAbs, ArgMin, ArgMinAbs, Max, Min, MinMax};
        !matches!(self, Min | Max | ArgMin | ArgMax | ArgMaxAbs | ArgMinAbs | MinMax)
    }

    /// Returns true if results combine by the same operator, as elements do.
    #[cfg(feature = "stream")]
    pub(crate) fn combines_results(&self) -> bool {
        use Operator::{Affine, MeanVariance, MinMax, Norm, State, Sum64};
        !matches!(self, MinMax | Sum64 | MeanVariance(_) | Affine(_) | State(_) | Norm)
    }

    /// Returns true if the order of combination may change the rounding.
    pub(crate) fn rounds(&self, input: DType) -> bool {
        use Operator::{Affine, Custom, LogSumExp, MeanVariance, Norm, Prod, State, Sum, SumAbs};
        match self {
            Custom(_) | State(_) | MeanVariance(_) | LogSumExp | Affine(_) | Norm | SumAbs => true,
            Sum | Prod => input.is_float(),
            _ => false,
        }
    }

    /// Returns the element type of the result of reducing elements of type `input`.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for a type that the operator does not take.
    pub fn output(&self, input: DType) -> Result<DType> {
        use DType::{F16, F32, I8, I32, U8, U32};
        match (self, input) {
            (Operator::ArgMin | Operator::ArgMax, F32 | F16 | I32 | U32 | U8 | I8)
            | (Operator::ArgMaxAbs | Operator::ArgMinAbs, F32 | F16) => Ok(U32),
            (Operator::Sum | Operator::Prod, U8) => Ok(U32),
            (Operator::Sum | Operator::Prod, I8) => Ok(I32),
            (Operator::Norm | Operator::SumAbs, F32 | F16)
            | (Operator::MeanVariance(_) | Operator::LogSumExp | Operator::Affine(_), F32)
            | (Operator::State(_), F32 | I32 | U32)
            | (Operator::MinMax, F32 | F16 | I32 | U32 | U8 | I8)
            | (Operator::Sum64, I32 | U32)
            | (Operator::Min | Operator::Max, U8 | I8) => Ok(input),
            (
                Operator::Sum | Operator::Prod | Operator::Min | Operator::Max | Operator::Custom(_),
                F32 | F16 | I32 | U32,
            ) => Ok(input),
            _ => Err(err!(
                Unsupported,
                "the operator {} does not take elements of {input}; convert them to f32, or for an operator on one \
                 element to f16, i32 or u32",
                self.name()
            )),
        }
    }

    pub(crate) fn accumulator(&self) -> Accumulator {
        match self {
            Operator::ArgMin | Operator::ArgMax | Operator::ArgMaxAbs | Operator::ArgMinAbs => Accumulator::Pair,
            Operator::MinMax
            | Operator::Sum64
            | Operator::MeanVariance(_)
            | Operator::LogSumExp
            | Operator::Affine(_)
            | Operator::Norm
            | Operator::State(_) => Accumulator::State,
            _ => Accumulator::Word,
        }
    }

    /// Fills the slots `element`, `lift` and `op` for elements of type `input`.
    pub(crate) fn specialise(&self, spec: Spec, input: DType) -> Spec {
        let spec = spec.slot("element", element_fragment(input));
        let signed = matches!(input, DType::I32 | DType::I8);
        let extreme = |spec: Spec, fragment, unsigned: &'static str, of_signed: &'static str| {
            let identity = if signed { of_signed } else { unsigned };
            let spec = spec.slot("op", Fragment::Library(fragment)).constant("IDENTITY", identity);
            if input.is_float() { spec.slot("lift", Fragment::Library("primitives/lift_ordered")) } else { spec }
        };
        let position = |spec: Spec| {
            spec.slot("op", Fragment::Library("op/first_min"))
                .slot("lift", Fragment::Library("primitives/lift_arg"))
                .flag("FLOAT", input.is_float())
                .flag("SIGNED", signed)
        };
        match self {
            Operator::Sum => spec,
            Operator::Prod => spec.slot("op", Fragment::Library("op/mul")),
            Operator::Min => extreme(spec, "op/min", "4294967295u", "2147483647"),
            Operator::Max if input.is_float() => extreme(spec, "op/max", "0u", "").constant("SHIFT", 0xff80_0001_u32),
            Operator::Max => extreme(spec, "op/max", "0u", "-2147483648"),
            Operator::ArgMin => position(spec),
            Operator::ArgMax => position(spec).constant("LARGEST", true),
            Operator::Custom(op) => spec.slot("op", Fragment::User(op.wgsl.clone())),
            Operator::SumAbs => spec.slot("lift", Fragment::Library("primitives/asum")),
            Operator::ArgMaxAbs | Operator::ArgMinAbs => {
                let smallest = matches!(self, Operator::ArgMinAbs);
                let lift = if smallest { "primitives/iamin" } else { "primitives/iamax" };
                let spec = spec.slot("op", Fragment::Library("op/first_min"));
                spec.slot("lift", Fragment::Library(lift))
            }
            // `Monoid::spec` has theirs.
            Operator::MinMax
            | Operator::Sum64
            | Operator::MeanVariance(_)
            | Operator::LogSumExp
            | Operator::Affine(_)
            | Operator::Norm
            | Operator::State(_) => spec,
        }
    }
}
