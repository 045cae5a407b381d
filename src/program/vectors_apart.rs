//! Requests by name on vectors whose numbers lie apart: the options `incx` and `incy`.

use super::increments::Increments;
use super::{Ask, DeviceProfile, OpCall, Operation, Role, Setting, Settings, Supply};
use crate::array::{HostArray, HostData, with_data};
use crate::element::Element;
use crate::error::{Result, err};
use std::rc::Rc;

/// The options of ops with `increments`.
pub(crate) const INCX: Setting = Setting::number("incx", "1");
pub(crate) const INCY: Setting = Setting::number("incy", "1");

/// The same request on vectors whose numbers lie side by side.
pub(crate) struct UnitCall {
    pub(crate) call: OpCall,
    /// How far apart the numbers of each operand lie in the request.
    pub(crate) steps: Vec<isize>,
}

impl Increments {
    /// The increments that the options say; `None` if they are all 1.
    pub(super) fn asked(settings: &Settings) -> Result<Option<Self>> {
        let of = |option: Setting| Ok(settings.maybe(option.name)?.unwrap_or(1));
        let increments = Self { x: of(INCX)?, y: of(INCY)? };
        increments.check(settings.op().name)?;
        Ok((increments != Self::default()).then_some(increments))
    }
}

#[derive(Clone, Copy)]
struct NumberPlaces {
    n: usize,
    step: isize,
    width: usize,
}

impl NumberPlaces {
    /// Those of a vector of this shape; `None` if it ends between two numbers.
    fn of_far(shape: &[usize], step: isize) -> Option<Self> {
        let (len, by) = (*shape.first()?, step.unsigned_abs());
        let n = len.div_ceil(by);
        (len == 0 || (len - 1).is_multiple_of(by)).then(|| Self::of_close(n, shape, step))
    }

    fn of_close(n: usize, shape: &[usize], step: isize) -> Self {
        Self { n, step, width: shape.iter().skip(1).product() }
    }

    fn places(self) -> impl Iterator<Item = usize> {
        let Self { n, step, .. } = self;
        (0..n).map(move |i| (if step < 0 { n - 1 - i } else { i }) * step.unsigned_abs())
    }

    /// Copies the numbers from their places.
    fn gather<T: Copy>(self, far: &[T]) -> Vec<T> {
        self.places().flat_map(|at| &far[at * self.width..][..self.width]).copied().collect()
    }

    /// Copies the numbers to their places.
    fn scatter<T: Copy>(self, close: &[T], far: &mut [T]) {
        for (at, number) in self.places().zip(close.chunks(self.width.max(1))) {
            far[at * self.width..][..self.width].copy_from_slice(number);
        }
    }
}

/// The numbers of a vector side by side.
fn close(op: &str, name: &str, far: &HostArray, step: isize) -> Result<HostArray> {
    let Some(places) = NumberPlaces::of_far(far.shape(), step) else {
        return Err(err!(
            Shape,
            "{op}: {name} is {far}; with inc{name} {step} a vector of n numbers has (n - 1) * {} + 1",
            step.unsigned_abs()
        ));
    };
    let mut shape = far.shape().to_vec();
    shape[0] = places.n;
    let data: HostData = with_data!(far.data(), v => places.gather(v).into(), HostData::Unseen(dtype, _) => {
        return HostArray::unseen(&shape, *dtype);
    });
    HostArray::new(&shape, data)
}

/// Puts the numbers of `close` at their places in `far`.
pub(crate) fn spread(close: &HostArray, far: HostArray, step: isize) -> Result<HostArray> {
    fn put<T: Element>(places: NumberPlaces, close: &HostData, far: &mut [T]) {
        if let Some(close) = close.slice::<T>() {
            places.scatter(close, far);
        }
    }
    let (n, shape) = (close.shape().first().copied().unwrap_or(0), far.shape().to_vec());
    let (places, mut data) = (NumberPlaces::of_close(n, &shape, step), far.into_data());
    with_data!(&mut data, v => put(places, close.data(), v), HostData::Unseen(..) => ());
    HostArray::new(&shape, data)
}

/// Puts a number for each element of `close` at its place among zeros, as [`spread`] does.
pub(crate) fn spread_bounds(bound: &[f64], close: &HostArray, far: &HostArray, step: isize) -> Vec<f64> {
    let n = close.shape().first().copied().unwrap_or(0);
    let mut all = vec![0.0; far.len()];
    NumberPlaces::of_close(n, far.shape(), step).scatter(bound, &mut all);
    all
}

/// Builds a request with increments: that of vectors whose numbers lie side by side, through [`Increments::lower`].
pub(super) fn build(op: &'static Operation, mut ask: Ask<'_>, increments: Increments) -> Result<OpCall> {
    let asked = ask.settings;
    let unit_settings = asked.without(&[INCX.name, INCY.name]);
    let mut given = Vec::new();
    for (input, array) in op.inputs.iter().zip(ask.inputs.iter_mut().rev()) {
        let step = increments.of(input.name);
        if step != 1 {
            let near = close(op.name, input.name, array, step)?;
            given.push((input.name, std::mem::replace(array, near)));
        }
    }
    let unit_ask = Ask {
        settings: &unit_settings,
        inputs: ask.inputs,
        variant: ask.variant,
        supply: ask.supply.map(|supply| supply as &mut dyn Supply),
        matrix: ask.matrix,
    };
    let call = op.build(unit_ask)?;
    let profile = DeviceProfile::h100();
    let names: Vec<_> = call.lower(&profile)?.operands.iter().map(|operand| operand.name).collect();
    let steps: Vec<_> = names.iter().map(|name| increments.of(name)).collect();
    let shape = |role: &Role| match role {
        Role::Given(array) | Role::Updated(array) => array.shape().to_vec(),
        Role::Result(shape) => shape.clone(),
        _ => Vec::new(),
    };
    let vector = call.operands.iter().zip(&names).find(|(_, name)| ["x", "y"].contains(name));
    let width = vector.map_or(1, |(role, _)| shape(role).iter().skip(1).product());
    // Large distances are rejected before arrays are made for them.
    let apart = increments.lower(op.name, width, &profile, || call.lower(&profile))?;
    let mut operands = call.operands.clone();
    for ((role, step), operand) in operands.iter_mut().zip(&steps).zip(&apart.operands) {
        if *step == 1 {
            continue;
        }
        let mut far = shape(role);
        if let Some(len) = far.first_mut() {
            *len = operand.len / width.max(1);
        }
        let there = given.iter().position(|(name, _)| *name == operand.name);
        let whole = |close: &HostArray| match there {
            Some(at) => Ok(given[at].1.clone()),
            None if !close.data().is_seen() => HostArray::unseen(&far, close.dtype()),
            None => spread(close, HostArray::zeros(&far, close.dtype())?, *step),
        };
        *role = match &*role {
            Role::Given(close) => Role::Given(whole(close)?),
            Role::Updated(close) => Role::Updated(whole(close)?),
            // What lies between is not written.
            Role::Result(_) if step.unsigned_abs() > 1 => Role::Updated(HostArray::zeros(&far, operand.dtype)?),
            other => other.clone(),
        };
    }
    // With what was supplied.
    let mut settings = call.settings.clone().unwrap_or(unit_settings);
    for name in [INCX.name, INCY.name] {
        if let (true, Some(text)) = (asked.has(name), asked.word(name)) {
            settings.text(name, text)?;
        }
    }
    let (descriptor, dtype) = (Rc::clone(&call.descriptor), call.dtype);
    let unit = Rc::new(UnitCall { call, steps });
    let of_lower = Rc::clone(&unit);
    let lower = move |profile: &_| increments.lower(op.name, width, profile, || of_lower.call.lower(profile));
    let mut all = OpCall {
        lower: Box::new(lower),
        descriptor,
        dtype,
        settings: Some(settings),
        declared: Vec::new(),
        unit: Some(unit),
        operands,
    };
    all.declared = all.outputs().map(Some).collect();
    Ok(all)
}
