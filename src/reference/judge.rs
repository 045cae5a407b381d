//! The expected outputs of an op that was built by name.

use super::Number;
use crate::array::{HostArray, HostData};
use crate::element::{DType, Element};
#[cfg(feature = "primitives")]
use crate::error::Error;
use crate::error::{ErrorKind, Result, err};
#[cfg(feature = "primitives")]
use crate::primitives::Operator;
use crate::program::{DeviceProfile, OpCall, Operation, Settings, spread, spread_bounds};
use half::f16;
use std::fmt::Display;
use std::str::FromStr;

/// An expected output.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The expected elements.
    pub array: HostArray,
    /// The error bound of each element, NaN where NaN is expected; `None` if bits must be equal.
    pub bound: Option<Vec<f64>>,
}

impl Wanted {
    pub(super) fn exact<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Self>
    where
        HostData: From<Vec<T>>,
    {
        Ok(Self { array: HostArray::new(shape, elements)?, bound: None })
    }

    pub(super) fn near<T: Element>(shape: &[usize], elements: Vec<T>, bound: Vec<f64>) -> Result<Self>
    where
        HostData: From<Vec<T>>,
    {
        Ok(Self { array: HostArray::new(shape, elements)?, bound: Some(bound) })
    }

    /// Expects elements computed in f64 and not rounded, each within its bound.
    pub(super) fn rounded(dtype: DType, shape: &[usize], exact: &[f64], bound: &[f64]) -> Result<Self> {
        let of = match dtype {
            DType::F32 => Self::rounded_to::<f32>,
            DType::F16 => Self::rounded_to::<f16>,
            DType::I32 => Self::rounded_to::<i32>,
            DType::U32 => Self::rounded_to::<u32>,
            DType::U8 => Self::rounded_to::<u8>,
            DType::I8 => Self::rounded_to::<i8>,
            other => {
                return Err(err!(
                    Unsupported,
                    "reference: there is none for an output of {other}; use f32, f16 or an integer type"
                ));
            }
        };
        of(shape, exact, bound)
    }

    fn rounded_to<T: Number>(shape: &[usize], exact: &[f64], bound: &[f64]) -> Result<Self>
    where
        HostData: From<Vec<T>>,
    {
        let round = |x: f64| T::from_f64(x).to_f64();
        let far = |(exact, bound): (&f64, &f64)| {
            if bound.is_infinite() {
                return f64::INFINITY;
            }
            // Rounding is monotone, so the ends of the interval give the ends of the results.
            let (want, ends) = (round(*exact), [exact - bound, exact + bound].map(round));
            let distance = |end: f64| if end == want { 0.0 } else { (end - want).abs() };
            ends.into_iter().map(distance).fold(0.0, f64::max)
        };
        let bound = exact.iter().zip(bound).map(far).collect();
        Self::near(shape, exact.iter().map(|x| T::from_f64(*x)).collect(), bound)
    }

    /// Describes the first wrong element, if any.
    pub fn difference(&self, got: &HostArray) -> Option<String> {
        let Self { array: want, bound } = self;
        if (want.shape(), want.dtype()) != (got.shape(), got.dtype()) {
            return Some(format!("the shape is {got}, expected {want}"));
        }
        let (wants, gots) = (want.data().to_f64(), got.data().to_f64());
        let size = want.dtype().size();
        let bits = |x: &HostArray, i: usize| x.data().bytes()[i * size..][..size].to_vec();
        let wrong = |i: &usize| match bound {
            None => bits(want, *i) != bits(got, *i),
            Some(bound) => {
                let (want, got) = (wants[*i], gots[*i]);
                // An infinite bound allows anything.
                let near = (want - got).abs() <= bound[*i] || want == got || bound[*i] == f64::INFINITY;
                !(near || want.is_nan() && got.is_nan())
            }
        };
        (0..wants.len()).find(wrong).map(|i| {
            let within = bound.as_ref().map(|b| format!(", which differs by more than {:e}", b[i])).unwrap_or_default();
            format!("element {i} is {:?}, expected {:?}{within}", gots[i], wants[i])
        })
    }
}

pub(super) fn input<T: Element>(call: &OpCall, at: usize) -> Result<&[T]> {
    let array = call.inputs().nth(at);
    let found = array.and_then(|array| array.data().slice::<T>());
    found.ok_or_else(|| err!(InvalidArgument, "reference: input {at} is missing or not of {}", T::DTYPE))
}

pub(super) fn descriptor<D: 'static>(call: &OpCall) -> Result<&D> {
    let found = call.descriptor::<D>();
    found.ok_or_else(|| err!(InvalidArgument, "reference: the call belongs to another op"))
}

pub(super) fn settings(call: &OpCall) -> Result<&Settings> {
    call.settings().ok_or_else(|| err!(InvalidArgument, "reference: the op was not built by name"))
}

/// Returns a numeric option, or its default.
pub(super) fn option<T: FromStr<Err: Display>>(call: &OpCall, name: &str) -> Result<T> {
    settings(call)?.number(name)
}

pub(super) fn named<'a, T: Element>(call: &'a OpCall, name: &str) -> Result<Option<&'a [T]>> {
    let Some(array) = settings(call)?.array(name) else { return Ok(None) };
    let found = array.data().slice::<T>();
    found.map(Some).ok_or_else(|| err!(InvalidArgument, "reference: {name} is not of {}", T::DTYPE))
}

/// Returns the elements of an input that belong to the first `n` of the entries along its first axis.
#[cfg(feature = "primitives")]
pub(super) fn front_of<T: Element>(call: &OpCall, index: usize, n: usize) -> Result<&[T]> {
    let (x, shape) = (input::<T>(call, index)?, call.inputs().nth(index).map(HostArray::shape));
    let all = shape.and_then(|shape| shape.first()).copied().unwrap_or(1).max(1);
    Ok(&x[..x.len() / all * n.min(all)])
}

/// Returns how many of `n` elements there are: as many as the option `length` says, if it is given.
pub(super) fn there(call: &OpCall, n: usize) -> Result<usize> {
    Ok(named::<u32>(call, "length")?.and_then(|length| length.first()).map_or(n, |there| n.min(*there as usize)))
}

#[cfg(feature = "primitives")]
pub(super) fn operator(call: &OpCall) -> Result<Operator> {
    let name = settings(call)?.choice("op")?;
    Operator::named(name).ok_or_else(|| err!(InvalidArgument, "reference: there is no operator {name}"))
}

#[cfg(feature = "primitives")]
pub(super) fn no_twin(op: &Operator) -> Error {
    err!(Unsupported, "reference: there is none for the operator {}", op.name())
}

/// Evaluates `$body` with `$T` as the type of an input, one of those in brackets.
macro_rules! by_input {
    ($call:expr, $at:expr, [$($t:ty),+], $T:ident => $body:expr) => {
        match $call.inputs().nth($at).map(|array| array.dtype()) {
            $(Some(<$t as $crate::element::Element>::DTYPE) => {
                type $T = $t;
                $body
            })+
            other => Err($crate::error::err!(InvalidArgument, "reference: there is none for an input of {other:?}")),
        }
    };
}
pub(super) use by_input;

pub(super) type Judges = &'static [(&'static str, fn(&OpCall) -> Result<Vec<Wanted>>)];

/// Names the judge of each op whose reference stands in the file.
macro_rules! judges {
    ($($op:ident => $judge:ident),*) => {
        pub(super) const JUDGES: Judges = &[$((stringify!($op), $judge)),*];
    };
}
pub(super) use judges;

/// Returns the expected outputs of a call, in order, from the reference of its op; `None` if no reference covers all of
/// them.
///
/// # Errors
/// Those of the op for sizes and options that it does not define, those of the reference, or an input of the wrong
/// type.
pub fn wanted(op: &Operation, call: &OpCall) -> Result<Option<Vec<Wanted>>> {
    // A reference may rely on what the op checks. What one device lacks does not matter here.
    if let Err(e) = call.lower(&DeviceProfile::h100())
        && matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Shape)
    {
        return Err(e);
    }
    let is_given = |name: &str| call.settings().is_some_and(|settings| settings.has(name));
    if let Some(option) = op.options.iter().find(|option| option.is_wgsl() && is_given(option.name)) {
        return Err(err!(Unsupported, "reference: there is none for a function in WGSL, {}", option.name));
    }
    let file = op.name.replace('-', "_");
    let Some((_, judge)) = super::JUDGES.iter().copied().flatten().find(|(name, _)| *name == file) else {
        return Ok(None);
    };
    let Some(unit) = &call.unit else { return judge(call).map(Some) };
    let mut wanted = judge(&unit.call)?;
    let outputs = call.operands.iter().zip(&unit.steps).filter(|(role, _)| role.is_output());
    for (want, (role, step)) in wanted.iter_mut().zip(outputs).filter(|(_, (_, step))| **step != 1) {
        let far = match role.input() {
            Some(before) => before.clone(),
            None => HostArray::zeros(want.array.shape(), want.array.dtype())?,
        };
        want.bound = want.bound.take().map(|bound| spread_bounds(&bound, &want.array, &far, *step));
        want.array = spread(&want.array, far, *step)?;
    }
    Ok(Some(wanted))
}

pub(super) fn output_shape(call: &OpCall, at: usize) -> Vec<usize> {
    call.outputs().nth(at).unwrap_or_default()
}

pub(super) fn optional_input<T: Element>(call: &OpCall, at: usize) -> Result<Option<&[T]>> {
    (call.inputs().count() > at).then(|| input(call, at)).transpose()
}

/// Returns the last extent of the first output.
pub(super) fn row_length(call: &OpCall) -> usize {
    output_shape(call, 0).last().copied().unwrap_or(0)
}

/// Expects the outputs of a call, all of one type; extra results are dropped.
pub(super) fn each_output<T: Element, const N: usize>(
    call: &OpCall, elements: [Vec<T>; N], bounds: [Vec<f64>; N],
) -> Result<Vec<Wanted>>
where
    HostData: From<Vec<T>>,
{
    let all = call.outputs().zip(elements).zip(bounds);
    all.map(|((shape, elements), bound)| Wanted::near(&shape, elements, bound)).collect()
}

/// Expects an output of f32 within `bound` of `exact`, which is not rounded.
pub(super) fn unrounded(shape: &[usize], exact: &[f64], bound: &[f64]) -> Result<Wanted> {
    let want: Vec<f32> = exact.iter().map(|x| *x as f32).collect();
    let from_want = |((exact, bound), want): ((&f64, &f64), &f32)| {
        let off = exact - f64::from(*want);
        if off.is_finite() { bound + off.abs() } else { *bound }
    };
    let bound = exact.iter().zip(bound).zip(&want).map(from_want).collect();
    Wanted::near(shape, want, bound)
}

#[cfg(test)]
#[path = "tests/judge.rs"]
mod tests;
