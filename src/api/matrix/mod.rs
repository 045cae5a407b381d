mod convert;
mod insert;

use crate::gpu::{Buffer, Encoder, Executable, Gpu, RawSlice, Recorder, Slice, Waiting};
use crate::plan::Plan;
use crate::primitives::Max;
use crate::program::prelude::*;
use crate::sparse::{
    BY_ROW, Coo, Csc, Csr, Ell, Format, HostMatrix, Hybrid, Jds, List, MatrixLayout, Sell, SparseMatrix, Spconvert,
    Spmm, Spmv, Target, order_by_row,
};
use std::sync::OnceLock;

/// An array of a [`DeviceMatrix`].
#[derive(Debug, Clone)]
pub enum DeviceList {
    /// Row or column indices, offsets, or the order of rows.
    Indices(Buffer<u32>),
    /// Values of f32.
    Values(Buffer<f32>),
    /// Values of f16.
    Halves(Buffer<f16>),
}

impl From<Buffer<u32>> for DeviceList {
    fn from(indices: Buffer<u32>) -> Self {
        Self::Indices(indices)
    }
}

impl From<Buffer<f32>> for DeviceList {
    fn from(values: Buffer<f32>) -> Self {
        Self::Values(values)
    }
}

impl From<Buffer<f16>> for DeviceList {
    fn from(values: Buffer<f16>) -> Self {
        Self::Halves(values)
    }
}

impl DeviceList {
    fn slice(&self) -> RawSlice<'_> {
        match self {
            Self::Indices(buffer) => Slice::from(buffer).untyped(),
            Self::Values(buffer) => Slice::from(buffer).untyped(),
            Self::Halves(buffer) => Slice::from(buffer).untyped(),
        }
    }

    fn front(&self, n: usize) -> Result<RawSlice<'_>> {
        Ok(match self {
            Self::Indices(buffer) => buffer.slice(..n)?.untyped(),
            Self::Values(buffer) => buffer.slice(..n)?.untyped(),
            Self::Halves(buffer) => buffer.slice(..n)?.untyped(),
        })
    }

    /// Elements that its memory holds.
    fn len(&self) -> usize {
        self.slice().len()
    }
}

/// A sparse matrix on a device, in any format. [`Gpu::upload_matrix`] and [`Gpu::convert_matrix`] make one, and
/// [`DeviceMatrix::from_lists`] takes buffers that a program filled on the device.
#[derive(Debug)]
pub struct DeviceMatrix {
    layout: MatrixLayout,
    lists: Vec<DeviceList>,
    /// The order by row that products of some formats take.
    by_row: OnceLock<[Buffer<u32>; 3]>,
}

impl DeviceMatrix {
    fn new(layout: MatrixLayout, lists: Vec<DeviceList>) -> Self {
        Self { layout, lists, by_row: OnceLock::new() }
    }

    /// Takes the arrays of a matrix that are on the device already, in the order of [`Format`]. The buffers are shared,
    /// not copied: what is written to them later is in the matrix.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    /// use tilework::sparse::{Format, MatrixLayout, Target};
    /// use tilework::{DType, DeviceMatrix};
    ///
    /// let gpu = Gpu::new()?;
    /// let rows = gpu.upload(&[0u32, 1])?; // or what kernels wrote
    /// let cols = gpu.upload(&[1u32, 0])?;
    /// let values = gpu.upload(&[2.0f32, 3.0])?;
    /// let format = Format::Coo { sorted: true };
    /// let layout = MatrixLayout { rows: 2, cols: 2, entries: 2, longest: 1, format, values: DType::F32 };
    /// let a = DeviceMatrix::from_lists(layout, [rows.into(), cols.into(), values.into()])?;
    /// let a = gpu.convert_matrix(&a, Target::Csr)?;
    /// assert_eq!(gpu.spmv(&a, &gpu.upload(&[1.0f32, 10.0])?)?.read()?, [20.0, 3.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// Only lengths and types are checked. Kernels treat an index out of range as padding; lists that break the rules
    /// of their format otherwise, such as unsorted rows where the layout says that they are sorted, give wrong results.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape): another number of arrays than the format has, or an array of another length
    /// or type than the layout says; arrays of coordinates may be longer.
    pub fn from_lists(layout: MatrixLayout, lists: impl IntoIterator<Item = DeviceList>) -> Result<Self> {
        let (matrix, wanted) = (Self::new(layout, lists.into_iter().collect()), layout.operands("matrix")?);
        let name = layout.format.name();
        if matrix.lists.len() != wanted.len() {
            let names: Vec<_> = wanted.iter().map(|operand| operand.name).collect();
            let (given, names) = (matrix.lists.len(), names.join(", "));
            return Err(err!(Shape, "matrix: {given} arrays were given; {name} has {names}"));
        }
        for (list, Operand { name: array, dtype, len, .. }) in matrix.lists.iter().zip(wanted) {
            let (has, of) = (list.len(), list.slice().dtype());
            if of != dtype || matrix.used(has) != len {
                return Err(err!(
                    Shape,
                    "matrix: `{array}` of {name} has {has} elements of {of}; the layout asks for {len} of {dtype}"
                ));
            }
        }
        Ok(matrix)
    }

    /// Returns the arrays, in the order of [`Format`]. They share memory with the matrix. Those of coordinates may be
    /// longer than its entries.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    /// use tilework::DeviceList;
    /// use tilework::sparse::Csr;
    ///
    /// let gpu = Gpu::new()?;
    /// let csr = Csr { rows: 1, cols: 2, row_ptrs: vec![0, 2], col_idxs: vec![0, 1], values: vec![3.0, 5.0] };
    /// let a = gpu.upload_matrix(&csr)?;
    /// let [.., DeviceList::Values(values)] = a.lists() else { unreachable!() };
    /// assert_eq!(gpu.reduce(values, Sum)?.read()?, [8.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn lists(&self) -> &[DeviceList] {
        &self.lists
    }

    /// Returns a view of the values. What is written to it is in the matrix: plans and orders stay valid.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    /// use tilework::sparse::Csc;
    ///
    /// let gpu = Gpu::new()?;
    /// let (col_ptrs, row_idxs, values) = (vec![0, 1, 2], vec![1, 0], vec![3.0, 5.0]);
    /// let a = gpu.upload_matrix(&Csc { rows: 2, cols: 2, col_ptrs, row_idxs, values })?;
    /// a.values()?.write(&[30.0, 50.0])?;
    /// assert_eq!(gpu.spmv(&a, &gpu.upload(&[1.0f32, 1.0])?)?.read()?, [50.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape): values of f16 ([`values_f16`](Self::values_f16)), or a hybrid, which has two
    /// lists of values ([`lists`](Self::lists)).
    pub fn values(&self) -> Result<Slice<'_, f32>> {
        match (self.layout.format, self.lists.last()) {
            (Format::Hybrid { .. }, _) => Err(self.no_values(DType::F32)),
            (_, Some(DeviceList::Values(values))) => values.slice(..self.used(values.len())),
            _ => Err(self.no_values(DType::F32)),
        }
    }

    /// As [`values`](Self::values), of f16.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape): values of f32, or a hybrid.
    pub fn values_f16(&self) -> Result<Slice<'_, f16>> {
        match (self.layout.format, self.lists.last()) {
            (Format::Hybrid { .. }, _) => Err(self.no_values(DType::F16)),
            (_, Some(DeviceList::Halves(values))) => values.slice(..self.used(values.len())),
            _ => Err(self.no_values(DType::F16)),
        }
    }

    fn no_values(&self, dtype: DType) -> crate::Error {
        let MatrixLayout { format, values, .. } = self.layout;
        let name = format.name();
        err!(Shape, "matrix: {name} with values of {values} has no single list of {dtype}; use `lists`")
    }

    /// Returns the extents and the format, for [`Spmv::new`](crate::Spmv::new).
    pub fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Fails unless a program, whose last `others` operands are no arrays of a matrix, is for this layout.
    pub(super) fn check_format(&self, program: &Program, others: usize) -> Result<()> {
        let lists = program.operands.len().saturating_sub(others);
        check_format(program, self.layout, program.operands[..lists].iter())
    }

    /// The arrays that a program takes: those of the format, and the order by row if it is among the operands. The
    /// first call that needs the order submits the work that makes it.
    pub(super) fn slices_for(&self, gpu: &Gpu, program: &Program) -> Result<Vec<RawSlice<'_>>> {
        let mut slices = self.slices()?;
        if program.operands.iter().any(|operand| operand.name == BY_ROW[0]) {
            slices.extend(self.by_row(gpu)?.iter().map(|list| Slice::from(list).untyped()));
        }
        Ok(slices)
    }

    fn by_row(&self, gpu: &Gpu) -> Result<&[Buffer<u32>; 3]> {
        if let Some(lists) = self.by_row.get() {
            return Ok(lists);
        }
        let program = order_by_row(&self.layout, &gpu.planning_profile())?;
        let n = self.layout.unordered().unwrap_or(0);
        let made = [gpu.alloc(n)?, gpu.alloc(n)?, gpu.alloc(n)?];
        let mut operands: Vec<_> = self.slices()?.drain(self.layout.unordered_lists()).collect();
        operands.extend(made.iter().map(|list| Slice::from(list).untyped()));
        gpu.run_program(program, &operands)?;
        Ok(self.by_row.get_or_init(|| made))
    }

    /// The arrays, in the order of [`Format`], each without its unused end.
    pub(super) fn slices(&self) -> Result<Vec<RawSlice<'_>>> {
        self.lists.iter().map(|list| list.front(self.used(list.len()))).collect()
    }

    /// Used elements of an array. Coordinates may have memory for more.
    fn used(&self, len: usize) -> usize {
        match self.layout.format {
            Format::Coo { .. } => self.layout.entries.min(len),
            _ => len,
        }
    }

    /// Reads the matrix back in its format, with values of f16 widened to f32. Waits until everything submitted is
    /// done.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::{Csr, HostMatrix};
    ///
    /// let csr = Csr { rows: 1, cols: 2, row_ptrs: vec![0, 1], col_idxs: vec![1], values: vec![3.0] };
    /// let a = Gpu::new()?.upload_matrix(&csr)?;
    /// assert_eq!(a.read()?, HostMatrix::Csr(csr));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<HostMatrix> {
        Waiting::block(|waiting| self.read_by(waiting))
    }

    /// As [`read`](Self::read), without blocking the thread.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_async(&self) -> Result<HostMatrix> {
        self.read_by(Waiting::Yielding).await
    }

    pub(in crate::api) async fn read_by(&self, waiting: Waiting) -> Result<HostMatrix> {
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for list in &self.lists {
            match list {
                DeviceList::Indices(buffer) => {
                    indices.push(buffer.slice(..self.used(buffer.len()))?.read_by(waiting).await?);
                }
                DeviceList::Values(buffer) => {
                    values.push(buffer.slice(..self.used(buffer.len()))?.read_by(waiting).await?);
                }
                DeviceList::Halves(buffer) => {
                    let halves = buffer.slice(..self.used(buffer.len()))?.read_by(waiting).await?;
                    let mut floats = with_room("read", halves.len())?;
                    floats.extend(halves.into_iter().map(f16::to_f32));
                    values.push(floats);
                }
            }
        }
        let (mut indices, mut values) = (indices.into_iter(), values.into_iter());
        let mut index = || indices.next().unwrap_or_default();
        let mut value = || values.next().unwrap_or_default();
        let MatrixLayout { rows, cols, format, .. } = self.layout;
        // Fields are evaluated in the order of these lines, which is that of the arrays.
        Ok(match format {
            Format::Coo { .. } => {
                HostMatrix::Coo(Coo { rows, cols, row_idxs: index(), col_idxs: index(), values: value() })
            }
            Format::Csr => HostMatrix::Csr(Csr { rows, cols, row_ptrs: index(), col_idxs: index(), values: value() }),
            Format::Csc => HostMatrix::Csc(Csc { rows, cols, col_ptrs: index(), row_idxs: index(), values: value() }),
            Format::Ell { width } => HostMatrix::Ell(Ell { rows, cols, width, col_idxs: index(), values: value() }),
            Format::Hybrid { width, .. } => {
                let ell = Ell { rows, cols, width, col_idxs: index(), values: value() };
                let coo = Coo { rows, cols, row_idxs: index(), col_idxs: index(), values: value() };
                HostMatrix::Hybrid(Hybrid { ell, coo })
            }
            Format::Jds => HostMatrix::Jds(Jds {
                rows,
                cols,
                row_order: index(),
                diagonal_ptrs: index(),
                col_idxs: index(),
                values: value(),
            }),
            Format::Sell { slice, .. } => HostMatrix::Sell(Sell {
                rows,
                cols,
                slice,
                row_order: index(),
                slice_ptrs: index(),
                col_idxs: index(),
                values: value(),
            }),
        })
    }
}

impl Gpu {
    /// Uploads a matrix of any format, after checking all of it.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = tilework::Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0], vec![1], vec![3.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 2, row_idxs, col_idxs, values })?;
    /// assert_eq!(a.layout().entries, 1);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape): arrays of lengths that disagree, an index out of range. Those of
    /// [`Gpu::upload`].
    pub fn upload_matrix(&self, matrix: &impl SparseMatrix) -> Result<DeviceMatrix> {
        self.upload_lists(matrix, DType::F32)
    }

    /// As [`upload_matrix`](Self::upload_matrix), with values rounded to f16, which halves their memory, on any
    /// device. Values above 65504, the largest of f16, become infinite. Products are summed in f32.
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

    /// Makes a matrix of coordinates, in any order, from buffers that a program filled on the device: the row, column
    /// and value of each entry. The buffers are shared, not copied. Three words are read back, which waits: the largest
    /// indices, which are checked, and the length of the longest row. [`DeviceMatrix::from_lists`] takes any format and
    /// reads nothing.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Target;
    ///
    /// let gpu = Gpu::new()?;
    /// let (rows, cols) = (gpu.upload(&[1u32, 0, 1])?, gpu.upload(&[0u32, 2, 1])?); // or what kernels wrote
    /// let a = gpu.matrix_of_entries([2, 3], &rows, &cols, gpu.upload(&[2.0f32, 3.0, 4.0])?)?;
    /// let csr = gpu.convert_matrix(&a, Target::Csr)?;
    /// assert_eq!(gpu.spmv(&csr, &gpu.upload(&[1.0f32, 10.0, 100.0])?)?.read()?, [300.0, 42.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape): lists of different lengths, or an index out of range. As
    /// [`Gpu::convert_matrix`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matrix_of_entries(
        &self, extents: [usize; 2], row_idxs: &Buffer<u32>, col_idxs: &Buffer<u32>, values: impl Into<DeviceList>,
    ) -> Result<DeviceMatrix> {
        Waiting::block(|waiting| self.entries_by(waiting, extents, row_idxs, col_idxs, values.into()))
    }

    /// As [`matrix_of_entries`](Self::matrix_of_entries), without blocking the thread.
    ///
    /// # Errors
    /// As [`matrix_of_entries`](Self::matrix_of_entries).
    pub async fn matrix_of_entries_async(
        &self, extents: [usize; 2], row_idxs: &Buffer<u32>, col_idxs: &Buffer<u32>, values: impl Into<DeviceList>,
    ) -> Result<DeviceMatrix> {
        self.entries_by(Waiting::Yielding, extents, row_idxs, col_idxs, values.into()).await
    }

    async fn entries_by(
        &self, waiting: Waiting, [rows, cols]: [usize; 2], row_idxs: &Buffer<u32>, col_idxs: &Buffer<u32>,
        values: DeviceList,
    ) -> Result<DeviceMatrix> {
        let (entries, format) = (row_idxs.len(), Format::Coo { sorted: false });
        for (name, extent, list) in [("row", rows, row_idxs), ("column", cols, col_idxs)] {
            let largest = match list.is_empty() {
                true => None,
                false => Slice::from(&self.reduce(list, Max)?).read_by(waiting).await?.first().copied(),
            };
            if let Some(largest) = largest.filter(|&index| index as usize >= extent) {
                return Err(err!(Shape, "matrix: an entry in {name} {largest} of a matrix of {rows} x {cols}"));
            }
        }
        let layout = MatrixLayout { rows, cols, entries, longest: 0, format, values: values.slice().dtype() };
        let lists = [row_idxs.clone().into(), col_idxs.clone().into(), values];
        let mut matrix = DeviceMatrix::from_lists(layout, lists)?;
        if entries > 0 {
            matrix.layout.longest = self.convert_by(waiting, &matrix, Target::Csr).await?.layout.longest;
        }
        Ok(matrix)
    }

    fn upload_lists(&self, matrix: &impl SparseMatrix, values: DType) -> Result<DeviceMatrix> {
        let layout = MatrixLayout { values, ..matrix.layout()? };
        let upload = |list: List<'_>| {
            Ok(match list {
                List::Indices(indices) => DeviceList::Indices(self.upload(indices)?),
                List::Values(list) if values == DType::F16 => {
                    let mut halves = with_room("upload_matrix_f16", list.len())?;
                    halves.extend(list.iter().map(|&value| f16::from_f32(value)));
                    DeviceList::Halves(self.upload(&halves)?)
                }
                List::Values(list) => DeviceList::Values(self.upload(list)?),
            })
        };
        let lists = matrix.lists().into_iter().map(upload).collect::<Result<_>>()?;
        Ok(DeviceMatrix::new(layout, lists))
    }

    /// Makes the order by row anew that products of compressed columns and of unsorted coordinates take: 12 bytes for
    /// each entry, and two sorts. The first product makes it otherwise. Call this where you have written other indices
    /// into the buffers of the matrix, or where the first product must not wait for the sorts. Other formats have no
    /// such order, and new values need none.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Csc;
    ///
    /// let gpu = Gpu::new()?;
    /// let (col_ptrs, row_idxs, values) = (vec![0, 1, 2], vec![1, 0], vec![3.0, 5.0]);
    /// let mut a = gpu.upload_matrix(&Csc { rows: 2, cols: 2, col_ptrs, row_idxs, values })?;
    /// gpu.order_matrix(&mut a)?; // the products below sort nothing
    /// assert_eq!(gpu.spmv(&a, &gpu.upload(&[1.0f32, 10.0])?)?.read()?, [50.0, 3.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TooLarge`](ErrorKind::TooLarge): a list above the device's largest binding. Those of [`Gpu::alloc`].
    pub fn order_matrix(&self, matrix: &mut DeviceMatrix) -> Result<()> {
        matrix.by_row.take();
        if matrix.layout.unordered().is_some() {
            matrix.by_row(self)?;
        }
        Ok(())
    }
}

/// Fails unless a matrix has the format and the extents of the `planned` operands.
fn check_format<'p>(program: &Program, layout: MatrixLayout, planned: impl Iterator<Item = &'p Operand>) -> Result<()> {
    // Operands that are written have names of their own with the same endings.
    let named = layout.operands(program.op)?;
    let same = |(planned, named): (&Operand, &Operand)| {
        planned.name == named.name || planned.name.strip_prefix("to.") == Some(named.name)
    };
    let planned: Vec<_> = planned.filter(|operand| !BY_ROW.contains(&operand.name)).collect();
    let other = if planned.len() != named.len() || !planned.iter().copied().zip(&named).all(same) {
        "another format"
    } else if planned.iter().zip(&named).any(|(planned, named)| planned.len != named.len) {
        "other extents or entries"
    } else {
        return Ok(());
    };
    Err(err!(
        Shape,
        "{}: the matrix is {} x {} with {} entries, stored as {}; the plan is for {other}; plan with this matrix's \
         `layout()`",
        program.op,
        layout.rows,
        layout.cols,
        layout.entries,
        layout.format.name()
    ))
}

/// Writes the typed calls of a product: `$x` and `$y` are its dense operands.
macro_rules! product_calls {
    ($op:ty, $x:ident, $y:ident) => {
        impl Plan<$op, f32> {
            #[doc = concat!("Records the product of `matrix` and `", stringify!($x), "`.")]
            ///
            /// # Errors
            /// As [`PlanOn`](crate::program::PlanOn); also [`Shape`](ErrorKind::Shape) if the matrix has another
            /// format than planned.
            pub fn record<'a, Enc: Encoder>(
                &self, rec: &mut Recorder<Enc>, matrix: &'a DeviceMatrix, $x: impl Into<Slice<'a, f32>>,
                $y: impl Into<Slice<'a, f32>>,
            ) -> Result<()> {
                self.with().record(rec, matrix, $x, $y)
            }

            /// Alpha and beta, two elements.
            pub fn with_scalars<'a>(&self, scalars: impl Into<Slice<'a, f32>>) -> With<'_, 'a, $op, f32, Executable> {
                let mut with = self.with();
                with.give("scalars", scalars.into().untyped());
                with
            }
        }

        impl<'a> With<'_, 'a, $op, f32, Executable> {
            #[doc = concat!("Records the product of `matrix` and `", stringify!($x), "`.")]
            ///
            /// # Errors
            /// As [`PlanOn`](crate::program::PlanOn); also [`Shape`](ErrorKind::Shape) if the matrix has another
            /// format than planned.
            pub fn record<Enc: Encoder>(
                self, rec: &mut Recorder<Enc>, matrix: &'a DeviceMatrix, $x: impl Into<Slice<'a, f32>>,
                $y: impl Into<Slice<'a, f32>>,
            ) -> Result<()> {
                let (gpu, program) = (self.executor().gpu(), self.executor().program());
                let others = program.operands.iter().rev().take_while(|o| OTHERS.contains(&o.name)).count();
                matrix.check_format(program, others)?;
                let lists = matrix.slices_for(gpu, program)?;
                let names: Vec<_> = program.operands.iter().map(|operand| operand.name).collect();
                let dense = [(stringify!($x), $x.into().untyped()), (stringify!($y), $y.into().untyped())];
                self.put_named(rec, names.into_iter().zip(lists).chain(dense))
            }
        }
    };
}

/// Operands of products that are no arrays of a matrix.
const OTHERS: [&str; 5] = ["x", "y", "b", "c", "scalars"];

product_calls!(Spmv, x, y);
product_calls!(Spmm, b, c);

impl Plan<Spconvert, f32> {
    /// Records the op.
    ///
    /// # Errors
    /// As [`Plan`]; also [`Shape`](ErrorKind::Shape) if the matrix has another format than planned.
    pub fn record<Enc: Encoder>(&self, rec: &mut Recorder<Enc>, from: &DeviceMatrix, to: &DeviceMatrix) -> Result<()> {
        let program = self.program();
        let lists = from.lists.len().min(program.operands.len());
        let (read, written) = program.operands.split_at(lists);
        check_format(program, from.layout, read.iter())?;
        check_format(program, to.layout, written.iter())?;
        let operands = [from.slices()?, to.slices()?].concat();
        self.executor.record(rec, &operands)
    }
}

fn allocated(gpu: &Gpu, operand: &Operand) -> Result<DeviceList> {
    Ok(match operand.dtype {
        DType::U32 => DeviceList::Indices(gpu.alloc(operand.len)?),
        DType::F16 => DeviceList::Halves(gpu.alloc(operand.len)?),
        _ => DeviceList::Values(gpu.alloc(operand.len)?),
    })
}
