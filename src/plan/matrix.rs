//! Sparse matrices on a device.

use super::Plan;
use crate::error::{Result, err};
use crate::gpu::{Buffer, Encoder, Gpu, RawSlice, Recorder, Slice};
use crate::program::{In, InOut, Program, Sparse};
use crate::sparse::{List, SparseMatrix, Stored};

/// A list on the device.
#[derive(Debug)]
enum Uploaded {
    Indices(Buffer<u32>),
    Values(Buffer<f32>),
}

/// A sparse matrix on a device, in any format: made by [`Gpu::upload_matrix`].
#[derive(Debug)]
pub struct DeviceMatrix {
    stored: Stored,
    lists: Vec<Uploaded>,
}

impl DeviceMatrix {
    /// Extents, and how it is stored: what [`Spmv::new`](crate::Spmv::new) takes.
    pub fn stored(&self) -> Stored {
        self.stored
    }

    /// That a program, whose last `others` operands are no lists, is for this format.
    pub(super) fn check_format(&self, program: &Program, others: usize) -> Result<()> {
        let named = self.stored.operands(program.op)?.into_iter().map(|o| o.name);
        let planned = program.operands.iter().rev().skip(others).rev().map(|o| o.name);
        if named.eq(planned) {
            return Ok(());
        }
        Err(err!(
            Shape,
            "{}: the matrix is stored as {}, and the plan is for another format; plan with `stored` of this one",
            program.op,
            self.stored.format.name()
        ))
    }

    /// Its lists, in the order of [`Format`](crate::sparse::Format).
    pub(super) fn slices(&self) -> impl Iterator<Item = RawSlice<'_>> {
        self.lists.iter().map(|list| match list {
            Uploaded::Indices(buffer) => Slice::from(buffer).untyped(),
            Uploaded::Values(buffer) => Slice::from(buffer).untyped(),
        })
    }
}

impl Gpu {
    /// Brings a matrix of any format to the device, after a check of all of it.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape): lists that do not fit each other, an index out of range. Those of
    /// [`Gpu::upload`].
    pub fn upload_matrix(&self, matrix: &impl SparseMatrix) -> Result<DeviceMatrix> {
        let stored = matrix.stored()?;
        let upload = |list: List<'_>| {
            Ok(match list {
                List::Indices(indices) => Uploaded::Indices(self.upload(indices)?),
                List::Values(values) => Uploaded::Values(self.upload(values)?),
            })
        };
        let lists = matrix.lists().into_iter().map(upload).collect::<Result<_>>()?;
        Ok(DeviceMatrix { stored, lists })
    }
}

impl Plan<(Sparse, In<f32>, InOut<f32>)> {
    /// Records the op; see the errors at [`Plan`].
    ///
    /// # Errors
    /// See [`Plan`]; [`Shape`](crate::ErrorKind::Shape) also for a matrix of another format than planned.
    pub fn record<'a, Enc: Encoder>(
        &self,
        rec: &mut Recorder<Enc>,
        matrix: &'a DeviceMatrix,
        x: impl Into<Slice<'a, f32>>,
        y: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        matrix.check_format(self.program(), 2)?;
        let vectors = [x.into().untyped(), y.into().untyped()];
        let operands: Vec<_> = matrix.slices().chain(vectors).collect();
        self.executable.record(rec, &operands)
    }
}
