//! One-line calls: each plans the op, allocates its outputs, records and submits.

#[cfg(feature = "attention")]
mod attention;
#[cfg(feature = "conv")]
mod conv;
#[cfg(feature = "dense")]
mod dense;
mod elementwise;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "nn")]
mod nn;
#[cfg(feature = "primitives")]
mod order;
#[cfg(feature = "primitives")]
mod primitives;
#[cfg(feature = "quantize")]
mod quantize;
#[cfg(feature = "sparse")]
mod sparse;
#[cfg(feature = "nn")]
mod training;
#[cfg(feature = "primitives")]
mod vectors;

use crate::gpu::{Buffer, Executable, Gpu, RawSlice, Slice};
use crate::program::prelude::*;

/// An operand and its name in the program.
type Given<'a> = (&'static str, RawSlice<'a>);

/// A planned op and the operands that the caller passed.
struct OneLineCall<'a> {
    executable: Executable,
    given: Vec<Given<'a>>,
}

impl Gpu {
    /// Plans an op for the caller's operands.
    fn call<'a, T: Element, D: Op<T>>(&self, op: &D, given: &[Given<'a>]) -> Result<OneLineCall<'a>> {
        self.call_program(self.lower::<T, _>(op)?, given)
    }

    /// Plans an op on rows of `width` elements. The length of the first operand gives the number of rows.
    fn call_rows<'a, T: Element, D: Op<T>>(
        &self, width: usize, op: impl FnOnce(usize) -> D, given: &[Given<'a>],
    ) -> Result<OneLineCall<'a>> {
        let len = given.first().map_or(0, |(_, slice)| slice.len());
        // An incomplete row counts, so that an op never gets 0 rows of a non-empty operand.
        let rows = if width == 0 { 0 } else { len.div_ceil(width) };
        let program = self.lower::<T, _>(&op(rows))?;
        if !len.is_multiple_of(width) {
            return Err(err!(
                Shape,
                "{}: {width} does not divide {len} elements; `width` is the length of every row",
                program.op
            ));
        }
        self.call_program(program, given)
    }

    fn call_program<'a>(&self, program: Program, given: &[Given<'a>]) -> Result<OneLineCall<'a>> {
        for operand in &program.operands {
            match given.iter().find(|(name, _)| *name == operand.name) {
                Some((_, slice)) => check(program.op, operand, slice)?,
                None if operand.access != Access::Read => {}
                None => return Err(not_taken(program.op, operand.name)),
            }
        }
        Ok(OneLineCall { executable: self.prepare_lowered(program)?, given: given.to_vec() })
    }
}

/// Fails unless an operand has the type and the length that the op takes.
fn check(op: &str, operand: &Operand, given: &RawSlice<'_>) -> Result<()> {
    let &Operand { name, dtype, len, .. } = operand;
    if given.dtype() != dtype {
        return Err(err!(Shape, "{op}: {name} is of {}; it must be of {dtype}", given.dtype()));
    }
    if given.len() != len {
        return Err(err!(Shape, "{op}: {name} has {} elements; the other arguments ask for {len}", given.len()));
    }
    Ok(())
}

/// The error for a descriptor with an operand that one-line calls do not take.
fn not_taken(op: &str, name: &str) -> crate::Error {
    err!(
        InvalidArgument,
        "{op}: the one-line call takes no {name}, which the descriptor asks for; plan the op and pass it with \
         `with_{name}`"
    )
}

impl OneLineCall<'_> {
    fn alloc<U: Element>(&self, name: &'static str) -> Result<Buffer<U>> {
        let Program { op, operands, .. } = self.executable.program();
        let Some(operand) = operands.iter().find(|operand| operand.name == name) else {
            return Err(not_taken(op, name));
        };
        if operand.dtype != U::DTYPE {
            return Err(err!(Shape, "{op}: {name} is of {}, not of {}", operand.dtype, U::DTYPE));
        }
        self.executable.gpu().alloc(operand.len)
    }

    fn run(&self, outputs: &[Given<'_>]) -> Result<()> {
        let program = self.executable.program();
        let operands = program.operands.iter().map(|operand| {
            let found = self.given.iter().chain(outputs).find(|(name, _)| *name == operand.name);
            found.map(|(_, slice)| *slice).ok_or_else(|| not_taken(program.op, operand.name))
        });
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let mut rec = self.executable.gpu().recorder();
        self.executable.record(&mut rec, &operands)?;
        rec.submit()
    }

    fn output<U: Element>(&self, name: &'static str) -> Result<Buffer<U>> {
        let made = self.alloc(name)?;
        self.run(&[(name, Slice::from(&made).untyped())])?;
        Ok(made)
    }

    fn outputs<U: Element, V: Element>(&self, names: [&'static str; 2]) -> Result<(Buffer<U>, Buffer<V>)> {
        let made = (self.alloc(names[0])?, self.alloc(names[1])?);
        let [first, second] = [Slice::from(&made.0).untyped(), Slice::from(&made.1).untyped()];
        self.run(&[(names[0], first), (names[1], second)])?;
        Ok(made)
    }

    fn three_outputs<U: Element, V: Element, W: Element>(
        &self, names: [&'static str; 3],
    ) -> Result<(Buffer<U>, Buffer<V>, Buffer<W>)> {
        let made = (self.alloc(names[0])?, self.alloc(names[1])?, self.alloc(names[2])?);
        let slices = [Slice::from(&made.0).untyped(), Slice::from(&made.1).untyped(), Slice::from(&made.2).untyped()];
        self.run(&[(names[0], slices[0]), (names[1], slices[1]), (names[2], slices[2])])?;
        Ok(made)
    }
}
