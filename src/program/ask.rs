//! Ops by name: arrays whose types are known only at run time, and options as words.

use super::extents::Extents;
use super::vectors_apart::{self, UnitCall};
use super::{DeviceProfile, Increments, LENGTH, Op, Operation, Program, lower};
use crate::array::{HostArray, shape_text};
use crate::element::{DType, Element};
use crate::error::{Error, Result, err};
use crate::program::settings::Settings;
use crate::shape::elements;
use std::any::Any;
use std::rc::Rc;

/// Supplies inputs that the caller of [`Operation::build`] left out: random ones for a measurement, or those of a file.
pub trait Supply {
    /// Makes an array for the input `name`. `shape` is set if earlier inputs determine it, and the type if the caller
    /// cannot choose it. Integers must be below `below`.
    ///
    /// # Errors
    /// The supplier's own: unknown shape, no memory, unsupported type.
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray, String>;

    /// Returns whether to supply an optional input.
    fn has_more(&self) -> bool {
        false
    }

    /// Chooses the extents of an input that are not all determined; `usual` are those that an example has.
    fn extents(&mut self, _name: &str, usual: &[usize]) -> Vec<usize> {
        usual.to_vec()
    }

    /// Makes the array of an option that is not set, or leaves the option out.
    fn option(&mut self, _name: &str, _shape: &[usize], _dtype: DType) -> Option<HostArray> {
        None
    }
}

/// A request for an op by name. [`Operation::build`] answers it.
///
/// ```
/// use tilework::HostArray;
/// use tilework::program::{Ask, DeviceProfile, Settings};
///
/// let softmax = tilework::operations().find(|op| op.name == "softmax").unwrap();
/// let settings = Settings::new(softmax);
/// let x = HostArray::zeros(&[3, 1000], tilework::DType::F32)?;
/// let call = softmax.build(Ask::new(&settings).input(x))?;
/// let program = call.lower(&DeviceProfile::h100())?;
/// assert_eq!((program.op, program.variant()), ("softmax", "whole"));
/// # Ok::<(), tilework::Error>(())
/// ```
pub struct Ask<'a> {
    pub(super) settings: &'a Settings,
    /// Inputs that are not taken yet, the last first.
    pub(super) inputs: Vec<HostArray>,
    pub(super) variant: &'a str,
    pub(super) supply: Option<&'a mut dyn Supply>,
    pub(super) matrix: Option<(Vec<HostArray>, &'a dyn Any)>,
}

impl<'a> Ask<'a> {
    /// Starts a request for an op with these options and no inputs.
    pub fn new(settings: &'a Settings) -> Self {
        Self { settings, inputs: Vec::new(), variant: "auto", supply: None, matrix: None }
    }

    /// Adds an input.
    #[must_use]
    pub fn input(self, array: HostArray) -> Self {
        self.inputs([array])
    }

    /// Adds inputs, in order.
    #[must_use]
    pub fn inputs(mut self, arrays: impl IntoIterator<Item = HostArray>) -> Self {
        let mut all: Vec<_> = arrays.into_iter().collect();
        all.reverse();
        all.append(&mut self.inputs);
        self.inputs = all;
        self
    }

    /// Sets the variant; `auto` by default.
    #[must_use]
    pub fn variant(mut self, name: &'a str) -> Self {
        self.variant = name;
        self
    }

    /// Sets the supplier of inputs that are left out.
    #[must_use]
    pub fn supplied_by(mut self, supply: &'a mut dyn Supply) -> Self {
        self.supply = Some(supply);
        self
    }

    /// Sets the sparse matrix of an op that takes one: its arrays, and its description, a
    /// [`sparse::Described`](crate::sparse::Described).
    #[must_use]
    pub fn matrix(mut self, lists: Vec<HostArray>, described: &'a dyn Any) -> Self {
        self.matrix = Some((lists, described));
        self
    }
}

/// The request as an op's own file sees it: the op takes the inputs one by one and checks them.
pub(crate) struct Asked<'a> {
    pub(crate) op: &'static Operation,
    ask: Ask<'a>,
    /// Type of the first input taken. Other inputs have it too unless they say otherwise.
    dtype: Option<DType>,
    extents: Extents,
    supplied: Vec<(&'static str, HostArray)>,
}

impl<'a> Asked<'a> {
    pub(crate) fn name(&self) -> &'static str {
        self.op.name
    }

    pub(crate) fn variant(&self) -> &'a str {
        self.ask.variant
    }

    pub(crate) fn settings(&self) -> &'a Settings {
        self.ask.settings
    }

    fn next(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray> {
        let array = match (self.ask.inputs.pop(), &mut self.ask.supply) {
            (Some(array), _) => array,
            (None, Some(supply)) => {
                let made = supply.supply(name, shape, dtype, below);
                made.map_err(|text| err!(InvalidArgument, "{}: {text}", self.op.name))?
            }
            (None, None) => {
                let op = self.name();
                return Err(err!(InvalidArgument, "{op}: the input {name} is missing"));
            }
        };
        self.dtype.get_or_insert(array.dtype());
        let declared = self.op.inputs.iter().find(|input| input.name == name);
        if let Some(input) = declared {
            self.extents.learn(self.ask.settings, (name, input.shape), array.shape());
        }
        Ok(array)
    }

    /// Sets an extent, or one for each axis, that shapes of outputs name and no input has.
    pub(crate) fn set(&mut self, name: &str, extents: &[usize]) {
        self.extents.set(name, extents);
    }

    /// The next input, of any shape.
    pub(crate) fn any(&mut self, name: &str) -> Result<HostArray> {
        self.next(name, None, self.dtype, None)
    }

    /// The next input, which must have `N` axes.
    pub(crate) fn array<const N: usize>(&mut self, name: &str) -> Result<(HostArray, [usize; N])> {
        let array = self.any(name)?;
        let dims = self.dims(name, &array)?;
        Ok((array, dims))
    }

    /// The next input, which has `N` axes of any extents; `usual` if it is supplied.
    pub(crate) fn free<const N: usize>(&mut self, name: &str, usual: [usize; N]) -> Result<(HostArray, [usize; N])> {
        let usual = self.usual(name, &usual);
        let array = self.next(name, Some(&usual), self.dtype, None)?;
        let dims = self.dims(name, &array)?;
        Ok((array, dims))
    }

    /// The extents of an input that will be supplied.
    fn usual(&mut self, name: &str, usual: &[usize]) -> Vec<usize> {
        let supply = self.ask.supply.as_mut().filter(|_| self.ask.inputs.is_empty());
        supply.map_or(usual.to_vec(), |supply| supply.extents(name, usual))
    }

    pub(crate) fn free_of<const N: usize>(
        &mut self, name: &str, usual: [usize; N], dtype: DType,
    ) -> Result<(HostArray, [usize; N])> {
        let usual = self.usual(name, &usual);
        let array = self.next(name, Some(&usual), Some(dtype), None)?;
        let dims = self.dims(name, &array)?;
        self.check(name, &array, array.shape(), dtype)?;
        Ok((array, dims))
    }

    /// The next input, of this shape and of the first input's type.
    pub(crate) fn like(&mut self, name: &str, shape: &[usize]) -> Result<HostArray> {
        let dtype = self.dtype;
        let array = self.next(name, Some(shape), dtype, None)?;
        self.check(name, &array, shape, dtype.unwrap_or(array.dtype()))?;
        Ok(array)
    }

    pub(crate) fn of(&mut self, name: &str, shape: &[usize], dtype: DType) -> Result<HostArray> {
        let array = self.next(name, Some(shape), Some(dtype), None)?;
        self.check(name, &array, shape, dtype)?;
        Ok(array)
    }

    /// The next input, of this shape and of u32, each element below `below`.
    pub(crate) fn indices(&mut self, name: &str, shape: &[usize], below: usize) -> Result<HostArray> {
        let array = self.next(name, Some(shape), Some(DType::U32), Some(below))?;
        self.check(name, &array, shape, DType::U32)?;
        Ok(array)
    }

    /// The next input, of any shape and of u32, each element below `below`; of shape `usual` if it is supplied.
    pub(crate) fn any_indices(&mut self, name: &str, usual: &[usize], below: usize) -> Result<HostArray> {
        let array = self.next(name, Some(usual), Some(DType::U32), Some(below))?;
        self.check(name, &array, array.shape(), DType::U32)?;
        Ok(array)
    }

    /// Whether inputs are left, and so whether an optional one was passed.
    pub(crate) fn has_more(&self) -> bool {
        !self.ask.inputs.is_empty() || self.ask.supply.as_ref().is_some_and(|supply| supply.has_more())
    }

    /// The array of the option `name`, of this shape and of the first input's type.
    pub(crate) fn named(&mut self, name: &'static str, shape: &[usize]) -> Result<Option<HostArray>> {
        self.named_of(name, shape, self.dtype.unwrap_or(DType::F32))
    }

    pub(crate) fn sparse<D: 'static>(&mut self) -> Result<(Vec<HostArray>, &'a D)> {
        let op = self.name();
        let found = self.ask.matrix.take().and_then(|(lists, d)| Some((lists, d.downcast_ref::<D>()?)));
        found.ok_or_else(|| err!(InvalidArgument, "{op}: the sparse matrix is missing"))
    }

    pub(crate) fn check(&self, name: &str, array: &HostArray, shape: &[usize], dtype: DType) -> Result<()> {
        if array.shape() == shape && array.dtype() == dtype {
            return Ok(());
        }
        let (op, wanted) = (self.name(), shape_text(shape));
        Err(err!(Shape, "{op}: {name} is {array}; it must be {wanted} of {dtype}"))
    }

    pub(crate) fn dims<const N: usize>(&self, name: &str, array: &HostArray) -> Result<[usize; N]> {
        <[usize; N]>::try_from(array.shape()).map_err(|_| {
            let (op, s) = (self.name(), if N == 1 { "" } else { "s" });
            err!(Shape, "{op}: {name} is {array}; it must have {N} dimension{s}")
        })
    }

    /// The number of rows and the length of the last axis.
    pub(crate) fn rows(&self, name: &str, array: &HostArray) -> Result<(usize, usize)> {
        let Some((&n, rest)) = array.shape().split_last() else {
            return Err(err!(Shape, "{}: {name} is {array}; it has no last axis", self.name()));
        };
        Ok((elements(self.name(), name, rest)?, n))
    }

    pub(crate) fn no_type(&self, dtype: DType) -> Error {
        let names: Vec<_> = self.op.types.iter().map(|t| t.name()).collect();
        let names = match &names[..] {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            names => names.join(", "),
        };
        err!(Unsupported, "{}: the input is of {dtype}; the op takes {names}", self.name())
    }

    /// Rejects an element type that the op does not take, before other inputs are compared with it.
    pub(crate) fn check_type(&self, array: &HostArray) -> Result<()> {
        let dtype = array.dtype();
        if self.op.types.contains(&dtype) { Ok(()) } else { Err(self.no_type(dtype)) }
    }

    /// The array of the option `name`, of this shape and type.
    pub(crate) fn named_of(&mut self, name: &'static str, shape: &[usize], dtype: DType) -> Result<Option<HostArray>> {
        let given = self.settings().array(name).cloned();
        let supply = self.ask.supply.as_mut().filter(|_| given.is_none());
        if let Some(made) = supply.and_then(|supply| supply.option(name, shape, dtype)) {
            self.supplied.push((name, made));
        }
        let supplied = self.supplied.iter().find(|(of, _)| *of == name).map(|(_, array)| array.clone());
        let Some(array) = given.or(supplied) else { return Ok(None) };
        self.check(name, &array, shape, dtype)?;
        Ok(Some(array))
    }

    /// The number of elements, which the option `length` holds, of inputs of so many axes, and the role of an output of
    /// this shape then: it counts entries along the first axis.
    pub(crate) fn length(&mut self, axes: usize, shape: Vec<usize>) -> Result<(Option<Role>, Role)> {
        if axes != 1 {
            return match self.settings().array(LENGTH.name) {
                None => Ok((None, Role::Result(shape))),
                Some(_) => {
                    Err(err!(Shape, "{}: a length counts the elements of one row; reshape the input", self.name()))
                }
            };
        }
        let Some(length) = self.named_of(LENGTH.name, &[1], DType::U32)? else {
            return Ok((None, Role::Result(shape)));
        };
        let there = length.data().slice::<u32>().and_then(|length| length.first());
        let n = shape.first().copied().unwrap_or(1);
        let there = there.map_or(n, |there| n.min(*there as usize));
        Ok((Some(Role::Given(length)), Role::Front(shape, there)))
    }

    /// The next input, of any shape and of this type; of shape `usual` if it is supplied.
    pub(crate) fn any_of(&mut self, name: &str, usual: &[usize], dtype: DType) -> Result<HostArray> {
        let array = self.next(name, Some(usual), Some(dtype), None)?;
        self.check(name, &array, array.shape(), dtype)?;
        Ok(array)
    }

    /// The next input, of any shape and of one of these types; of shape `usual` and of the first if it is supplied.
    pub(crate) fn of_types(&mut self, name: &str, usual: &[usize], types: &[DType]) -> Result<HostArray> {
        let array = self.next(name, Some(usual), types.first().copied(), None)?;
        if types.contains(&array.dtype()) {
            return Ok(array);
        }
        let names: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
        Err(err!(Shape, "{}: {name} is {array}; it must be of {}", self.name(), names.join(", ")))
    }

    pub(crate) fn of_own_type(&mut self, name: &str, shape: &[usize]) -> Result<HostArray> {
        let array = self.next(name, Some(shape), None, None)?;
        self.check(name, &array, shape, array.dtype())?;
        Ok(array)
    }
}

/// Runs `$body` with `$T` set to the array's type, one of those in brackets.
macro_rules! by_type {
    ($asked:expr, $dtype:expr, [$($t:ty),+], $T:ident => $body:expr) => {
        match $dtype {
            $(<$t as $crate::element::Element>::DTYPE => {
                type $T = $t;
                $body
            })+
            other => return Err($asked.no_type(other)),
        }
    };
}
pub(crate) use by_type;

/// How an operand is filled and whether it is an output.
#[derive(Debug, Clone)]
pub enum Role {
    /// An input.
    Given(HostArray),
    /// An input that is overwritten with an output.
    Updated(HostArray),
    /// An output of this shape.
    Result(Vec<usize>),
    /// An output of which only the first elements count. [`Count`](Self::Count) holds their number.
    Counted,
    /// As [`Counted`](Self::Counted), in rows of this many elements.
    CountedRows(usize),
    /// An output of this shape, of which only the first entries along the first axis count: this many, as the operand
    /// `length` says.
    Front(Vec<usize>, usize),
    /// The number of elements, or rows, of a [`Counted`](Self::Counted) output. It is no output itself.
    Count,
    /// How many indices are out of range, which the op counts on request. It is no output; results are refused unless
    /// it is 0.
    Invalid {
        /// Name of the op.
        op: &'static str,
        /// The number that indices must be below.
        below: usize,
    },
}

/// The shape with this many entries along the first axis.
pub(crate) fn front(shape: &[usize], there: usize) -> Vec<usize> {
    [there].into_iter().chain(shape.iter().skip(1).copied()).collect()
}

impl Role {
    /// Returns whether the operand is an output.
    pub fn is_output(&self) -> bool {
        !matches!(self, Self::Given(_) | Self::Count | Self::Invalid { .. })
    }

    /// Returns the contents before the op runs.
    pub fn input(&self) -> Option<&HostArray> {
        match self {
            Self::Given(array) | Self::Updated(array) => Some(array),
            _ => None,
        }
    }
}

/// Lowers an op whose types are erased.
pub(super) type Lower = dyn Fn(&DeviceProfile) -> Result<Program>;

/// An op with its inputs and options, its types erased.
pub struct OpCall {
    pub(super) lower: Box<Lower>,
    pub(super) descriptor: Rc<dyn Any>,
    pub(super) dtype: DType,
    pub(super) settings: Option<Settings>,
    pub(super) declared: Vec<Option<Vec<usize>>>,
    /// The request without increments that this one stands for, if it has any.
    pub(crate) unit: Option<Rc<UnitCall>>,
    /// The role of each operand of the program, in order.
    pub operands: Vec<Role>,
}

impl OpCall {
    pub(crate) fn new<T: Element>(op: impl Op<T> + 'static, operands: Vec<Role>) -> Self {
        let descriptor = Rc::new(op);
        let op = Rc::clone(&descriptor);
        let lower = Box::new(move |profile: &_| lower(&*op, profile));
        Self { lower, descriptor, dtype: T::DTYPE, settings: None, declared: Vec::new(), unit: None, operands }
    }

    /// Gives the operands at these places another type of the same size.
    pub(crate) fn retyped(mut self, places: Vec<usize>, dtype: DType) -> Self {
        let lower = self.lower;
        self.lower = Box::new(move |profile| {
            let mut program = lower(profile)?;
            for &at in &places {
                program.operands[at].dtype = dtype;
            }
            Ok(program)
        });
        self
    }

    /// Returns the descriptor, if it is a `D`; none of a request with increments.
    pub fn descriptor<D: 'static>(&self) -> Option<&D> {
        self.descriptor.downcast_ref().filter(|_| self.unit.is_none())
    }

    /// Returns the element type of the plan.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the options.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// Returns the inputs, in the order of the operands.
    pub fn inputs(&self) -> impl Iterator<Item = &HostArray> {
        self.operands.iter().filter_map(Role::input)
    }

    /// Returns the shapes of the outputs, in the order of the operands, without those that the device counts.
    pub fn outputs(&self) -> impl Iterator<Item = Vec<usize>> {
        self.operands.iter().filter(|role| role.is_output()).map(|role| match role {
            Role::Updated(array) => array.shape().to_vec(),
            Role::Result(shape) => shape.clone(),
            Role::Front(shape, there) => front(shape, *there),
            _ => Vec::new(),
        })
    }

    /// Returns the shapes of the outputs by the formulas of [`Operation::outputs`]; `None` where a formula has no
    /// value.
    pub fn declared_outputs(&self) -> &[Option<Vec<usize>>] {
        &self.declared
    }

    /// Lowers the op: as [`Op::lower`].
    ///
    /// # Errors
    /// Those of the op: a limit of the device, a variant that the device cannot run.
    pub fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        (self.lower)(profile)
    }
}

impl std::fmt::Debug for OpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpCall").field("operands", &self.operands).finish_non_exhaustive()
    }
}

impl Operation {
    /// Builds the op for a request.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): too few or too many inputs, or an invalid value of
    ///   an option.
    /// - [`Shape`](crate::ErrorKind::Shape): an input of the wrong shape or type.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): an element type that the op does not take.
    pub fn build(&'static self, ask: Ask<'_>) -> Result<OpCall> {
        if let Some(increments) = Increments::asked(ask.settings)? {
            return vectors_apart::build(self, ask, increments);
        }
        let (given, op) = (ask.inputs.len(), self.name);
        let (max, min) = (self.inputs.len(), self.inputs.iter().filter(|i| !i.optional).count());
        if given > max || given < min && ask.supply.is_none() {
            let wanted = if min == max { min.to_string() } else { format!("{min} to {max}") };
            return Err(err!(InvalidArgument, "{op}: {given} inputs given; the op wants {wanted}"));
        }
        let Some(make) = self.make else {
            return Err(err!(
                Unsupported,
                "{op}: a solver runs until its result is good enough, so it has no single program"
            ));
        };
        let mut settings = ask.settings.clone();
        let mut asked = Asked { op: self, ask, dtype: None, extents: Extents::default(), supplied: Vec::new() };
        let call = make(&mut asked)?;
        if !asked.ask.inputs.is_empty() {
            let more = asked.ask.inputs.len();
            return Err(err!(InvalidArgument, "{op}: with these options {more} of {given} inputs are too many"));
        }
        for (name, array) in asked.supplied {
            settings.with_array(name, array)?;
        }
        let declared = self.declared_outputs(&settings, &asked.extents, &call)?;
        Ok(OpCall { settings: Some(settings), declared, ..call })
    }
}
