use super::Operand;
use crate::element::Element;
use crate::error::{Result, err};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a program on one kind of device, through wgpu or CUDA.
pub trait Executor {
    /// The program, as plain data.
    type Program;
    /// Part of a buffer on this kind of device.
    type Slice<'a, T: Element>;
    /// The same without its element type.
    type RawSlice<'a>: Copy;

    /// Returns the program.
    fn program(&self) -> &Self::Program;

    /// Returns the op's name, for errors.
    fn op(&self) -> &'static str;

    /// Returns the program's operands, in order.
    fn operands(&self) -> &[Operand];

    /// Removes the type from a slice.
    fn untyped<'a, T: Element>(slice: Self::Slice<'a, T>) -> Self::RawSlice<'a>;
}

/// Takes an [`Executor`]'s work: wgpu's recorder or a CUDA stream.
pub trait Sink<X: Executor> {
    /// Checks the operands, which are in the program's order, and adds the work.
    ///
    /// # Errors
    /// Those of the executor: sizes, types, aliasing, devices.
    fn put(&mut self, executor: &X, operands: &[X::RawSlice<'_>]) -> Result<()>;
}

/// An op that is ready to be recorded any number of times, with any buffers of the right sizes.
///
/// `D` is the descriptor, `T` the element type, `X` the executor. [`Plan`](crate::Plan) is a plan on wgpu. With the
/// feature `cuda`, `CudaPlan` is a plan on CUDA. [`Plannable::plan`](crate::Plannable::plan) makes one.
///
/// Each op declares its operands. `record` takes those that every plan of the op has. Optional operands that the
/// descriptor asked for come before it, by name:
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
/// Nothing is recorded when an error is returned.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an optional operand is missing, or one is passed that
///   the descriptor did not ask for.
/// - [`Shape`](crate::ErrorKind::Shape): an operand has another length or element type than planned.
/// - [`Buffer`](crate::ErrorKind::Buffer): an operand lives on another device, or is an input in memory that was never
///   written (perhaps inputs and outputs are swapped), or is bound as a uniform or a count of workgroups, or is above
///   the largest binding, and starts at an offset that the device cannot bind.
/// - [`Aliasing`](crate::ErrorKind::Aliasing): an operand that is written overlaps another.
/// - [`DeviceLost`](crate::ErrorKind::DeviceLost), [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub struct PlanOn<D, T, X> {
    pub(crate) executor: X,
    /// Address of the names that were last found to be the program's, in order; 0 before.
    in_order: AtomicUsize,
    of: PhantomData<fn() -> (D, T)>,
}

impl<D, T, X: fmt::Debug> fmt::Debug for PlanOn<D, T, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plan").field(&self.executor).finish()
    }
}

impl<D, T, X: Executor> PlanOn<D, T, X> {
    pub(crate) fn new(executor: X) -> Self {
        Self { executor, in_order: AtomicUsize::new(0), of: PhantomData }
    }

    /// Returns the program, as plain data.
    pub fn program(&self) -> &X::Program {
        self.executor.program()
    }

    /// Returns the plan without its types, for programs that learn their types at run time.
    pub fn into_executable(self) -> X {
        self.executor
    }

    /// Starts a call whose optional operands are added one by one, for programs that decide at run time.
    pub fn with<'a>(&self) -> With<'_, 'a, D, T, X> {
        With { plan: self, given: Vec::new() }
    }
}

type Named<'a, X> = (&'static str, <X as Executor>::RawSlice<'a>);

/// A plan and its optional operands, ready to be recorded with the rest.
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

    /// Adds the op to `target`, with its operands in the program's order.
    pub(crate) fn put<R: Sink<X>, const N: usize>(
        self, target: &mut R, names: &'static [&'static str; N], slices: [X::RawSlice<'a>; N],
    ) -> Result<()> {
        let PlanOn { executor, in_order, .. } = self.plan;
        let wanted = executor.operands();
        // Most plans have no optional operands. Recording those allocates nothing, and compares their names once.
        if self.given.is_empty() && wanted.len() == N {
            let address = names.as_ptr().addr();
            let known = in_order.load(Ordering::Relaxed) == address;
            if known || wanted.iter().zip(names).all(|(operand, name)| operand.name == *name) {
                if !known {
                    in_order.store(address, Ordering::Relaxed);
                }
                return target.put(executor, &slices);
            }
        }
        target.put(executor, &self.ordered(names.iter().copied().zip(slices))?)
    }

    /// As [`put`](Self::put), with operands whose number is known only when the program runs.
    pub(crate) fn put_named<R: Sink<X>>(
        self, target: &mut R, required: impl Iterator<Item = Named<'a, X>>,
    ) -> Result<()> {
        let executor = &self.plan.executor;
        target.put(executor, &self.ordered(required)?)
    }

    pub(crate) fn executor(&self) -> &X {
        &self.plan.executor
    }

    /// Puts the optional and required operands in the program's order.
    fn ordered(mut self, required: impl Iterator<Item = Named<'a, X>>) -> Result<Vec<X::RawSlice<'a>>> {
        self.given.extend(required);
        let executor = &self.plan.executor;
        let (op, wanted) = (executor.op(), executor.operands());
        let ordered = wanted.iter().map(|operand| {
            let found = self.given.iter().find(|(name, _)| *name == operand.name);
            found.map(|(_, slice)| *slice).ok_or_else(|| {
                let name = operand.name;
                err!(InvalidArgument, "{op}: the plan wants the operand {name}; pass it with `with_{name}`")
            })
        });
        let ordered = ordered.collect::<Result<Vec<_>>>()?;
        if ordered.len() < self.given.len() {
            let twice = |at: usize| self.given[..at].iter().any(|(name, _)| *name == self.given[at].0);
            for (at, (name, _)) in self.given.iter().enumerate() {
                if twice(at) {
                    return Err(err!(InvalidArgument, "{op}: the operand {name} is passed twice; pass it once"));
                }
                if wanted.iter().all(|operand| operand.name != *name) {
                    return Err(err!(
                        InvalidArgument,
                        "{op}: the plan has no operand {name}; leave it out, or plan a descriptor that asks for it"
                    ));
                }
            }
        }
        Ok(ordered)
    }
}

/// Declares the operands of an op and generates the typed calls of its plans.
///
/// `fn record(..)` lists the operands of every plan; `optional with_x(..)` lists one that the descriptor asks for.
/// Names are those of the program's operands. `[cuda]` adds `run`, for an op that CUDA has too.
macro_rules! operands {
    (@run [] $($rest:tt)*) => {};
    (@run [cuda] [$($generics:tt)*] $op:ty, $t:ty; [$($free:ident)*] ($($name:ident: $ty:ty),+)) => {
        #[cfg(feature = "cuda")]
        impl<$($generics)* X: $crate::program::Executor> $crate::program::PlanOn<$op, $t, X> {
            /// Runs the op on a CUDA stream. Returns at once.
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
            /// Runs the op on a CUDA stream. Returns at once.
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
                self.put(&mut stream, &[$(stringify!($name)),+], [$(X::untyped($name.into())),+])
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
                    self.put(rec, &[$(stringify!($name)),+], [$(X::untyped($name.into())),+])
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
