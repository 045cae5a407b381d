//! One-line forms: allocate the output, plan, record, submit. For programs that have no GPU code.

use super::Plannable;
use crate::element::Element;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::primitives::{Reduce, Reducer};

impl Gpu {
    /// All of `input` to one value: [`Reduce`].
    ///
    /// # Errors
    /// Those of [`Reduce`] and of [`Gpu::alloc`].
    pub fn reduce<'a, T: Element, O: Reducer<T>>(
        &self,
        input: impl Into<Slice<'a, T>>,
        op: O,
    ) -> Result<Buffer<O::Output>> {
        self.reduce_rows(input, op, 1)
    }

    /// Each of `rows` equal rows of `input` to one value: [`Reduce::rows`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `rows` does not divide the length; those of [`Reduce`] and of
    /// [`Gpu::alloc`].
    pub fn reduce_rows<'a, T: Element, O: Reducer<T>>(
        &self,
        input: impl Into<Slice<'a, T>>,
        op: O,
        rows: usize,
    ) -> Result<Buffer<O::Output>> {
        let input = input.into();
        let n = input.len().checked_div(rows).unwrap_or(0);
        if n * rows != input.len() {
            return Err(crate::error::err!(
                Shape,
                "reduce: {} elements are not {rows} equal rows; slice the input",
                input.len()
            ));
        }
        let output = self.alloc(rows)?;
        let plan = Reduce::rows(op, rows, n).plan::<T>(self)?;
        let mut rec = self.recorder();
        plan.record(&mut rec, input, &output)?;
        rec.submit()?;
        Ok(output)
    }
}
