//! Typed calls: a plan, and the operands that an op declares for it.

use super::Operand;
use crate::element::Element;
use crate::error::{Result, err};
use std::fmt;
use std::marker::PhantomData;

/// What runs a program on one kind of device: wgpu's or CUDA's.
pub trait Executor {
    /// What is run, as plain data.
    type Program;
    /// Part of a buffer of this kind of device.
    type Slice<'a, T: Element>;
    /// The same, with the element type as a value.
    type RawSlice<'a>: Copy;

    /// What is run.
    fn program(&self) -> &Self::Program;

    /// Name of the op, for errors.
    fn op(&self) -> &'static str;

    /// The operands that the program wants, in its order.
    fn operands(&self) -> &[Operand];

    /// Takes the type off a slice.
    fn untyped<'a, T: Element>(slice: Self::Slice<'a, T>) -> Self::RawSlice<'a>;
}

/// Where an [`Executor`] puts its work: a recorder of wgpu's, a stream of CUDA's.
pub trait Sink<X: Executor> {
    /// Checks the operands, which are in the program's order, and puts the work there.
    ///
    /// # Errors
    /// Those of the executor: sizes, types, aliasing, owners.
    fn put(&mut self, executor: &X, operands: &[X::RawSlice<'_>]) -> Result<()>;
}

/// An op that is ready to be recorded, as often as wanted, with any buffers of the right sizes.
///
/// `D` is the descriptor, `T` the element type, `X` the executor. [`Plan`](crate::Plan) is a plan on wgpu; with the
/// feature `cuda`, `CudaPlan` is a plan on CUDA. [`Plannable::plan`](crate::Plannable::plan) makes one.
///
/// Each op declares its operands. `record` takes those that every plan of the op has. What was asked for when the op
/// was described comes before it, by the operand's name:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b, c) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?, gpu.alloc::<f32>(1)?);
/// let bias = gpu.upload(&[100.0f32])?;
/// let plain = Gemm::new(1, 1, 2).plan::<f32>(&gpu)?;
/// let biased = Gemm::new(1, 1, 2).with_bias().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plain.record(&mut rec, &a, &b, &c)?;
/// biased.with_bias(&bias).record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [111.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// A program keeps a plan by its type:
///
/// ```
/// use tilework::{Plan, Scan, Sum};
/// struct Offsets {
///     scan: Plan<Scan<Sum>, u32>,
/// }
/// ```
///
/// # Errors of `record`
/// Nothing is recorded when it errs.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an operand that was asked for is missing, or one is given
///   that was not asked for.
/// - [`Shape`](crate::ErrorKind::Shape): an operand has another number or type of elements than planned.
/// - [`Buffer`](crate::ErrorKind::Buffer): an operand lives on another device, starts at an offset that
///   the device cannot bind, or is an input and lies in memory that was allocated and never written: inputs and outputs
///   may be swapped.
/// - [`Aliasing`](crate::ErrorKind::Aliasing): an operand that is written shares its memory with another.
/// - [`DeviceLost`](crate::ErrorKind::DeviceLost), [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub struct PlanOn<D, T, X> {
    pub(crate) executor: X,
    of: PhantomData<fn() -> (D, T)>,
}

impl<D, T, X: fmt::Debug> fmt::Debug for PlanOn<D, T, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plan").field(&self.executor).finish()
    }
}

impl<D, T, X: Executor> PlanOn<D, T, X> {
    pub(crate) fn new(executor: X) -> Self {
        Self { executor, of: PhantomData }
    }

    /// What will run, as plain data.
    pub fn program(&self) -> &X::Program {
        self.executor.program()
    }

    /// The plan without the types of its operands, for programs that know them only when they run.
    pub fn into_executable(self) -> X {
        self.executor
    }

    /// The plan, to be given operands that it was asked to take, one by one, where that depends on conditions.
    pub fn with<'a>(&self) -> With<'_, 'a, D, T, X> {
        With { plan: self, given: Vec::new() }
    }
}

/// An operand by its name.
type Named<'a, X> = (&'static str, <X as Executor>::RawSlice<'a>);

/// A plan with operands that it was asked to take, to be recorded with the rest.
pub struct With<'p, 'a, D, T, X: Executor> {
    plan: &'p PlanOn<D, T, X>,
    given: Vec<Named<'a, X>>,
}

impl<D, T, X: Executor> fmt::Debug for With<'_, '_, D, T, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.given.iter().map(|(name, _)| *name).collect();
        f.debug_struct("With").field("op", &self.plan.executor.op()).field("given", &names).finish()
    }
}

impl<'a, D, T, X: Executor> With<'_, 'a, D, T, X> {
    pub(crate) fn give(&mut self, name: &'static str, slice: X::RawSlice<'a>) {
        self.given.push((name, slice));
    }

    /// Puts the op there with the given operands, in the program's order.
    pub(crate) fn put<R: Sink<X>, const N: usize>(
        self,
        target: &mut R,
        required: [Named<'a, X>; N],
    ) -> Result<()> {
        let executor = &self.plan.executor;
        let wanted = executor.operands();
        // Most plans take what every plan of their op takes. Recording those allocates nothing.
        let in_order = wanted.iter().zip(&required).all(|(operand, (name, _))| operand.name == *name);
        if self.given.is_empty() && wanted.len() == N && in_order {
            return target.put(executor, &required.map(|(_, slice)| slice));
        }
        target.put(executor, &self.ordered(&required)?)
    }

    /// The operands, given and required, in the program's order.
    fn ordered(mut self, required: &[Named<'a, X>]) -> Result<Vec<X::RawSlice<'a>>> {
        self.given.extend_from_slice(required);
        let executor = &self.plan.executor;
        let (op, wanted) = (executor.op(), executor.operands());
        let ordered = wanted.iter().map(|operand| {
            let found = self.given.iter().find(|(name, _)| *name == operand.name);
            found.map(|(_, slice)| *slice).ok_or_else(|| {
                let name = operand.name;
                err!(InvalidArgument, "{op}: the plan wants an operand {name}; give it by `with_{name}`")
            })
        });
        let ordered = ordered.collect::<Result<Vec<_>>>()?;
        if ordered.len() < self.given.len() {
            let twice = |at: usize| self.given[..at].iter().any(|(name, _)| *name == self.given[at].0);
            for (at, (name, _)) in self.given.iter().enumerate() {
                if twice(at) {
                    return Err(err!(
                        InvalidArgument,
                        "{op}: the operand {name} is given twice; give it once"
                    ));
                }
                if wanted.iter().all(|operand| operand.name != *name) {
                    return Err(err!(
                        InvalidArgument,
                        "{op}: the plan does not take an operand {name}; leave it out, or ask for it when the op is \
                         described"
                    ));
                }
            }
        }
        Ok(ordered)
    }
}

/// Declares the operands of an op, and with them the typed calls of its plans.
///
/// `fn record(..)` lists what every plan has; `optional with_x(..)` what a plan has that was asked for it. Names are those
/// of the program's operands. `[cuda]` adds `run`, for an op that CUDA has too.
macro_rules! operands {
    (@run [] $($rest:tt)*) => {};
    (@run [cuda] [$($generics:tt)*] $op:ty, $t:ty; [$($free:ident)*] ($($name:ident: $ty:ty),+)) => {
        #[cfg(feature = "cuda")]
        impl<$($generics)* X: $crate::program::Executor> $crate::program::PlanOn<$op, $t, X> {
            /// Gives the op to a stream of CUDA's and returns at once.
            ///
            /// # Errors
            /// See [`PlanOn`]($crate::program::PlanOn).
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            pub fn run<'a, S, $($free: $crate::Element),*>(
                &self,
                stream: &S,
                $($name: impl Into<X::Slice<'a, $ty>>),+
            ) -> $crate::error::Result<()>
            where
                for<'s> &'s S: $crate::program::Sink<X>,
            {
                self.with().run(stream, $($name),+)
            }
        }

        #[cfg(feature = "cuda")]
        impl<'a, $($generics)* X: $crate::program::Executor> $crate::program::With<'_, 'a, $op, $t, X> {
            /// Gives the op to a stream of CUDA's and returns at once.
            ///
            /// # Errors
            /// See [`PlanOn`]($crate::program::PlanOn).
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            pub fn run<S, $($free: $crate::Element),*>(
                self,
                stream: &S,
                $($name: impl Into<X::Slice<'a, $ty>>),+
            ) -> $crate::error::Result<()>
            where
                for<'s> &'s S: $crate::program::Sink<X>,
            {
                let mut stream = stream;
                self.put(&mut stream, [$((stringify!($name), X::untyped($name.into()))),+])
            }
        }
    };
    ($(
        impl[$($generics:tt)*] $op:ty, $t:ty $([$cuda:ident])? {
            $(fn $call:ident $(<$($free:ident),+>)? ($($name:ident: $ty:ty),+ $(,)?);)+
            $($(#[$doc:meta])* optional $with:ident $(<$($with_free:ident),+>)? ($($with_name:ident: $with_ty:ty),+ $(,)?);)*
        }
    )+) => {$(
        impl<$($generics)* X: $crate::program::Executor> $crate::program::PlanOn<$op, $t, X> {
            $(
                /// Records the op.
                ///
                /// # Errors
                /// See [`PlanOn`]($crate::program::PlanOn).
                #[allow(clippy::too_many_arguments, reason = "one for each operand")]
                pub fn $call<'a, R: $crate::program::Sink<X> $($(, $free: $crate::Element)+)?>(
                    &self,
                    rec: &mut R,
                    $($name: impl Into<X::Slice<'a, $ty>>),+
                ) -> $crate::error::Result<()> {
                    self.with().$call(rec, $($name),+)
                }
            )+
            $(
                $(#[$doc])*
                pub fn $with<'a $($(, $with_free: $crate::Element)+)?>(
                    &self,
                    $($with_name: impl Into<X::Slice<'a, $with_ty>>),+
                ) -> $crate::program::With<'_, 'a, $op, $t, X> {
                    self.with().$with($($with_name),+)
                }
            )*
        }

        impl<'a, $($generics)* X: $crate::program::Executor> $crate::program::With<'_, 'a, $op, $t, X> {
            $(
                /// Records the op.
                ///
                /// # Errors
                /// See [`PlanOn`]($crate::program::PlanOn).
                #[allow(clippy::too_many_arguments, reason = "one for each operand")]
                pub fn $call<R: $crate::program::Sink<X> $($(, $free: $crate::Element)+)?>(
                    self,
                    rec: &mut R,
                    $($name: impl Into<X::Slice<'a, $ty>>),+
                ) -> $crate::error::Result<()> {
                    self.put(rec, [$((stringify!($name), X::untyped($name.into()))),+])
                }
            )+
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $with $(<$($with_free: $crate::Element),+>)? (
                    mut self,
                    $($with_name: impl Into<X::Slice<'a, $with_ty>>),+
                ) -> Self {
                    $(self.give(stringify!($with_name), X::untyped($with_name.into()));)+
                    self
                }
            )*
        }

        $crate::program::operands! {
            @run [$($cuda)?] [$($generics)*] $op, $t; $([$($($free)+)?] ($($name: $ty),+))+
        }
    )+};
}
pub(crate) use operands;
