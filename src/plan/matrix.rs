//! Sparse matrices on a device.

use super::Plan;
use crate::element::DType;
use crate::error::{Result, err};
use crate::gpu::{Buffer, Encoder, Gpu, RawSlice, Recorder, Slice};
use crate::program::{In, InOut, Sparse};
use crate::sparse::{List, SparseMatrix, Stored};
use half::f16;

/// A list on the device.
#[derive(Debug)]
enum Uploaded {
    Indices(Buffer<u32>),
    Values(Buffer<f32>),
    Halves(Buffer<f16>),
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

    /// Its lists, in the order of [`Format`](crate::sparse::Format).
    fn slices(&self) -> impl Iterator<Item = RawSlice<'_>> {
        self.lists.iter().map(|list| match list {
            Uploaded::Indices(buffer) => Slice::from(buffer).untyped(),
            Uploaded::Values(buffer) => Slice::from(buffer).untyped(),
            Uploaded::Halves(buffer) => Slice::from(buffer).untyped(),
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
        self.upload_lists(matrix, DType::F32)
    }

    /// As [`upload_matrix`](Self::upload_matrix), with values rounded to f16: half the memory for them, on any device.
    /// Those beyond the largest of f16, 65504, become infinite. Products are still summed in f32.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = tilework::Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0], vec![1], vec![1.0 + 1e-4]);
    /// let a = gpu.upload_matrix_f16(&Coo { rows: 1, cols: 2, row_idxs, col_idxs, values })?;
    /// assert_eq!(gpu.spmv(&a, &gpu.upload(&[5.0f32, 7.0])?)?.read()?, [7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`upload_matrix`](Self::upload_matrix).
    pub fn upload_matrix_f16(&self, matrix: &impl SparseMatrix) -> Result<DeviceMatrix> {
        self.upload_lists(matrix, DType::F16)
    }

    fn upload_lists(&self, matrix: &impl SparseMatrix, values: DType) -> Result<DeviceMatrix> {
        let stored = Stored { values, ..matrix.stored()? };
        let upload = |list: List<'_>| {
            Ok(match list {
                List::Indices(indices) => Uploaded::Indices(self.upload(indices)?),
                List::Values(list) if values == DType::F16 => {
                    let halves: Vec<f16> = list.iter().map(|&value| f16::from_f32(value)).collect();
                    Uploaded::Halves(self.upload(&halves)?)
                }
                List::Values(list) => Uploaded::Values(self.upload(list)?),
            })
        };
        let lists = matrix.lists().into_iter().map(upload).collect::<Result<_>>()?;
        Ok(DeviceMatrix { stored, lists })
    }
}

impl Plan<(Sparse, In<f32>, InOut<f32>)> {
    /// Records a product, [`Spmv`](crate::Spmv) or [`Spmm`](crate::Spmm), with vectors or dense matrices `x` and `y`; see
    /// the errors at [`Plan`].
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
        let (program, stored) = (self.program(), matrix.stored);
        let named = stored.operands(program.op)?.into_iter().map(|o| o.name);
        let planned = program.operands.iter().rev().skip(2).rev().map(|o| o.name);
        if !named.eq(planned) {
            return Err(err!(
                Shape,
                "{}: the matrix is stored as {}, and the plan is for another format; plan with `stored` of this one",
                program.op,
                stored.format.name()
            ));
        }
        let vectors = [x.into().untyped(), y.into().untyped()];
        let operands: Vec<_> = matrix.slices().chain(vectors).collect();
        self.executable.record(rec, &operands)
    }
}
