use super::{DeviceList, DeviceMatrix, allocated};
use crate::gpu::{Buffer, Gpu, RawSlice, Slice, Waiting};
use crate::plan::Plannable;
use crate::program::prelude::*;
use crate::sparse::{
    Format, MEASURES, MatrixLayout, Measured, Spconvert, Statistics, Target, find_runs, measure, measure_longest,
    order_slices, point_at_rest, sum_runs,
};

impl Gpu {
    /// Converts the matrix to another format, in new arrays: [`Spconvert`] says how entries are ordered.
    ///
    /// Arrays stay on the device. Some lengths are read back, which waits: one word where the longest row is not
    /// known yet (from any format but compressed rows, and to compressed columns), one for [`Target::Hybrid`] (8 more
    /// to choose its width) and one for [`Target::Sell`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::{Csr, HostMatrix, Target};
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let csr = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
    /// let ell = gpu.convert_matrix(&gpu.upload_matrix(&csr)?, Target::Ell)?;
    /// assert_eq!(ell.read()?, HostMatrix::Ell(csr.to_ell()?));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Spconvert`]; [`TooLarge`](ErrorKind::TooLarge) if the padded arrays exceed a binding or
    /// 32-bit indices, with their size.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn convert_matrix(&self, matrix: &DeviceMatrix, to: Target) -> Result<DeviceMatrix> {
        Waiting::block(|waiting| self.convert_by(waiting, matrix, to))
    }

    /// As [`convert_matrix`](Self::convert_matrix), without blocking the thread.
    ///
    /// # Errors
    /// As [`convert_matrix`](Self::convert_matrix).
    pub async fn convert_matrix_async(&self, matrix: &DeviceMatrix, to: Target) -> Result<DeviceMatrix> {
        self.convert_by(Waiting::Yielding, matrix, to).await
    }

    pub(in crate::api) async fn convert_by(
        &self, waiting: Waiting, matrix: &DeviceMatrix, to: Target,
    ) -> Result<DeviceMatrix> {
        let from = matrix.layout;
        let fill = |format| self.filled(matrix, &Spconvert::new(from, MatrixLayout { format, ..from }), Vec::new());
        let direct = match (from.format, to) {
            (Format::Coo { .. }, Target::Coo) => Some(Format::Coo { sorted: true }),
            (_, Target::Csr) => Some(Format::Csr),
            (Format::Coo { .. } | Format::Csr, Target::Csc) => Some(Format::Csc),
            _ => None,
        };
        if let Some(format) = direct {
            let mut made = fill(format)?;
            let pointed = format != (Format::Coo { sorted: true }) && from.format != format;
            if let (true, Some(DeviceList::Indices(ptrs))) = (pointed, made.lists.first()) {
                made.layout.longest = self.longest(waiting, ptrs).await?;
            }
            return Ok(made);
        }
        if from.format != Format::Csr {
            let csr = Box::pin(self.convert_by(waiting, matrix, Target::Csr)).await?;
            return Box::pin(self.convert_by(waiting, &csr, to)).await;
        }
        match to {
            Target::Ell => fill(Format::Ell { width: from.longest }),
            Target::Hybrid { width } => {
                let width = match width {
                    Some(width) => width,
                    None => self.analyse_by(waiting, matrix).await?.hybrid_width,
                };
                let list = self.rest(waiting, matrix, width).await?;
                fill(Format::Hybrid { width, list, sorted: true })
            }
            Target::Sell { slice, window } => self.to_sell(waiting, matrix, slice, window).await,
            Target::Jds => fill(Format::Jds),
            Target::Csc => fill(Format::Csc),
            Target::Csr => fill(Format::Csr),
            Target::Coo => fill(Format::Coo { sorted: true }),
        }
    }

    /// Transposes the matrix, in the same memory where possible. Compressed rows become compressed columns and the
    /// reverse; coordinates exchange their index arrays, and one word, the longest row, is read back. Other formats
    /// are converted to compressed rows first.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Csr;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let csr = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
    /// let transposed = gpu.transpose_matrix(gpu.upload_matrix(&csr)?)?;
    /// assert_eq!(transposed.layout().format.name(), "csc");
    /// assert_eq!(transposed.read()?.to_csr()?, csr.transposed()?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::convert_matrix`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn transpose_matrix(&self, matrix: DeviceMatrix) -> Result<DeviceMatrix> {
        Waiting::block(|waiting| self.transpose_by(waiting, matrix))
    }

    /// As [`transpose_matrix`](Self::transpose_matrix), without blocking the thread.
    ///
    /// # Errors
    /// As [`transpose_matrix`](Self::transpose_matrix).
    pub async fn transpose_matrix_async(&self, matrix: DeviceMatrix) -> Result<DeviceMatrix> {
        self.transpose_by(Waiting::Yielding, matrix).await
    }

    async fn transpose_by(&self, waiting: Waiting, matrix: DeviceMatrix) -> Result<DeviceMatrix> {
        let turned = |matrix: DeviceMatrix, format| {
            let MatrixLayout { rows, cols, .. } = matrix.layout;
            let layout = MatrixLayout { rows: cols, cols: rows, format, ..matrix.layout };
            DeviceMatrix::new(layout, matrix.lists)
        };
        match matrix.layout.format {
            Format::Csr => Ok(turned(matrix, Format::Csc)),
            Format::Csc => Ok(turned(matrix, Format::Csr)),
            Format::Coo { .. } => {
                let mut matrix = turned(matrix, Format::Coo { sorted: false });
                matrix.lists.swap(0, 1);
                matrix.layout.longest = self.convert_by(waiting, &matrix, Target::Csr).await?.layout.longest;
                Ok(matrix)
            }
            _ => Ok(turned(self.convert_by(waiting, &matrix, Target::Csr).await?, Format::Csc)),
        }
    }

    /// Converts to compressed rows sorted by column, and sums entries at the same position in their order, as
    /// [`Csr::from_triplets`](crate::sparse::Csr::from_triplets) does. Values are of f32. Two words are read back,
    /// which waits, and one more for the longest row.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0, 0, 0], vec![1, 0, 1], vec![1.0, 2.0, 4.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 1, cols: 2, row_idxs, col_idxs, values })?;
    /// let csr = gpu.sum_duplicates(&a)?.read()?.to_csr()?;
    /// assert_eq!((csr.col_idxs, csr.values), (vec![0, 1], vec![2.0, 5.0]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::convert_matrix`]; [`Unsupported`](ErrorKind::Unsupported) for values of f16.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn sum_duplicates(&self, matrix: &DeviceMatrix) -> Result<DeviceMatrix> {
        Waiting::block(|waiting| self.sum_by(waiting, matrix))
    }

    /// As [`sum_duplicates`](Self::sum_duplicates), without blocking the thread.
    ///
    /// # Errors
    /// As [`sum_duplicates`](Self::sum_duplicates).
    pub async fn sum_duplicates_async(&self, matrix: &DeviceMatrix) -> Result<DeviceMatrix> {
        self.sum_by(Waiting::Yielding, matrix).await
    }

    async fn sum_by(&self, waiting: Waiting, matrix: &DeviceMatrix) -> Result<DeviceMatrix> {
        let from = matrix.layout;
        if from.entries == 0 {
            return self.convert_by(waiting, matrix, Target::Csr).await;
        }
        if !matches!(from.format, Format::Csr | Format::Coo { .. }) {
            let csr = self.convert_by(waiting, matrix, Target::Csr).await?;
            return Box::pin(self.sum_by(waiting, &csr)).await;
        }
        let program = find_runs(&from, &self.planning_profile())?;
        let made = (program.operands.iter().skip(matrix.lists.len()))
            .map(|operand| allocated(self, operand))
            .collect::<Result<Vec<_>>>()?;
        let mut operands = matrix.slices()?;
        operands.extend(made.iter().map(DeviceList::slice));
        self.run_program(program, &operands)?;
        let mut made = made.into_iter();
        let (Some(keys), Some(sorted), Some(starts), Some(ptrs), Some(DeviceList::Indices(sizes))) =
            (made.next(), made.next(), made.next(), made.next(), made.next())
        else {
            return Err(err!(Shape, "spconvert: the arrays are missing"));
        };
        let sizes = Slice::from(&sizes).read_by(waiting).await?;
        let (runs, longest) = (sizes[0] as usize, sizes[1] as usize);
        let idxs = DeviceList::Indices(self.alloc(runs)?);
        let values = DeviceList::Values(self.alloc(runs)?);
        let program = sum_runs(&from, runs, longest, &self.planning_profile())?;
        let operands = [&starts, &keys, &sorted, &idxs, &values].map(DeviceList::slice);
        self.run_program(program, &operands)?;
        let longest = match &ptrs {
            DeviceList::Indices(ptrs) => self.longest(waiting, ptrs).await?,
            _ => 0,
        };
        let layout = MatrixLayout { entries: runs, longest, format: Format::Csr, ..from };
        Ok(DeviceMatrix::new(layout, vec![ptrs, idxs, values]))
    }

    /// Measures the rows of a matrix on the device: the same numbers as
    /// [`Csr::analyse`](crate::sparse::Csr::analyse). Reads 9 words back, which waits. Formats other than compressed
    /// rows are converted first.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Csr;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let csr = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
    /// assert_eq!(gpu.analyse_matrix(&gpu.upload_matrix(&csr)?)?, csr.analyse());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::convert_matrix`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn analyse_matrix(&self, matrix: &DeviceMatrix) -> Result<Statistics> {
        Waiting::block(|waiting| self.analyse_by(waiting, matrix))
    }

    /// As [`analyse_matrix`](Self::analyse_matrix), without blocking the thread.
    ///
    /// # Errors
    /// As [`analyse_matrix`](Self::analyse_matrix).
    pub async fn analyse_matrix_async(&self, matrix: &DeviceMatrix) -> Result<Statistics> {
        self.analyse_by(Waiting::Yielding, matrix).await
    }

    async fn analyse_by(&self, waiting: Waiting, matrix: &DeviceMatrix) -> Result<Statistics> {
        let layout = matrix.layout;
        if layout.format != Format::Csr {
            let csr = Box::pin(self.convert_by(waiting, matrix, Target::Csr)).await?;
            return Box::pin(self.analyse_by(waiting, &csr)).await;
        }
        let measures = self.alloc::<u32>(MEASURES)?;
        let mut operands = matrix.slices()?;
        operands.truncate(2);
        operands.push(Slice::from(&measures).untyped());
        self.run_program(measure(&layout, &self.planning_profile())?, &operands)?;
        let measured = Slice::from(&measures).read_by(waiting).await?;
        let statistics = Measured::new(&measured).statistics(&layout);
        let hybrid_list = self.rest(waiting, matrix, statistics.hybrid_width).await?;
        Ok(Statistics { hybrid_list, ..statistics })
    }

    /// Converts the matrix to the format with the shortest predicted time on this device, and returns it with its
    /// statistics: [`Gpu::analyse_matrix`], [`Statistics::format`], [`Gpu::convert_matrix`]. For a textbook's choice,
    /// convert to [`Statistics::textbook_format`]. Pass the statistics to
    /// [`Spmv::statistics`](crate::Spmv::statistics), and the report of a product shows them and why the format was
    /// chosen.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Csr;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_ptrs, col_idxs) = ((0..=64).collect(), (0..64).collect());
    /// let diagonal = Csr { rows: 64, cols: 64, row_ptrs, col_idxs, values: vec![2.0; 64] };
    /// let (a, statistics) = gpu.suit_matrix(&gpu.upload_matrix(&diagonal)?)?;
    /// assert_eq!(a.layout().format.name(), statistics.format(gpu.profile()).0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::convert_matrix`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn suit_matrix(&self, matrix: &DeviceMatrix) -> Result<(DeviceMatrix, Statistics)> {
        Waiting::block(|waiting| self.suit_by(waiting, matrix))
    }

    /// As [`suit_matrix`](Self::suit_matrix), without blocking the thread.
    ///
    /// # Errors
    /// As [`suit_matrix`](Self::suit_matrix).
    pub async fn suit_matrix_async(&self, matrix: &DeviceMatrix) -> Result<(DeviceMatrix, Statistics)> {
        self.suit_by(Waiting::Yielding, matrix).await
    }

    async fn suit_by(&self, waiting: Waiting, matrix: &DeviceMatrix) -> Result<(DeviceMatrix, Statistics)> {
        if matrix.layout.format != Format::Csr {
            let csr = self.convert_by(waiting, matrix, Target::Csr).await?;
            return Box::pin(self.suit_by(waiting, &csr)).await;
        }
        let statistics = self.analyse_by(waiting, matrix).await?;
        let suited = match Target::named(statistics.format(self.profile()).0) {
            Some(Target::Hybrid { .. }) => Target::Hybrid { width: Some(statistics.hybrid_width) },
            Some(target) => target,
            None => Target::Csr,
        };
        Ok((self.convert_by(waiting, matrix, suited).await?, statistics))
    }

    pub(super) fn run_program(&self, program: Program, operands: &[RawSlice<'_>]) -> Result<()> {
        let executable = self.prepare_lowered(program)?;
        let mut rec = self.recorder();
        executable.record(&mut rec, operands)?;
        rec.submit()
    }

    /// Converts into `lists` and new arrays.
    fn filled(&self, matrix: &DeviceMatrix, op: &Spconvert, mut lists: Vec<DeviceList>) -> Result<DeviceMatrix> {
        let plan = op.plan::<f32>(self)?;
        for operand in plan.program().operands.iter().skip(matrix.lists.len() + lists.len()) {
            lists.push(allocated(self, operand)?);
        }
        let made = DeviceMatrix::new(op.result(), lists);
        let mut rec = self.recorder();
        plan.record(&mut rec, matrix, &made)?;
        rec.submit()?;
        Ok(made)
    }

    /// The length of the longest segment between pointers.
    async fn longest(&self, waiting: Waiting, ptrs: &Buffer<u32>) -> Result<usize> {
        let measures = self.alloc::<u32>(MEASURES)?;
        let program = measure_longest(ptrs.len().saturating_sub(1), &self.planning_profile())?;
        self.run_program(program, &[Slice::from(ptrs).untyped(), Slice::from(&measures).untyped()])?;
        Ok(Measured::new(&measures.slice(..1)?.read_by(waiting).await?).longest())
    }

    /// The number of entries that do not fit into `width` slots of their rows.
    async fn rest(&self, waiting: Waiting, matrix: &DeviceMatrix, width: usize) -> Result<usize> {
        let MatrixLayout { rows, longest, .. } = matrix.layout;
        if longest <= width {
            return Ok(0);
        }
        let ptrs = self.alloc::<u32>(rows + 1)?;
        let program = point_at_rest(rows, width, &self.planning_profile())?;
        let operands = [matrix.slices()?[0], Slice::from(&ptrs).untyped()];
        self.run_program(program, &operands)?;
        Ok(ptrs.slice(rows..)?.read_by(waiting).await?.first().map_or(0, |&list| list as usize))
    }

    async fn to_sell(
        &self, waiting: Waiting, matrix: &DeviceMatrix, slice: usize, window: usize,
    ) -> Result<DeviceMatrix> {
        let from = matrix.layout;
        let program = order_slices(&from, slice, window, &self.planning_profile())?;
        let width = self.alloc::<u32>(1)?;
        let lists =
            (program.operands[1..3].iter()).map(|operand| allocated(self, operand)).collect::<Result<Vec<_>>>()?;
        let mut operands = vec![matrix.slices()?[0]];
        operands.extend(lists.iter().map(DeviceList::slice));
        operands.push(Slice::from(&width).untyped());
        self.run_program(program, &operands)?;
        let width = Slice::from(&width).read_by(waiting).await?.first().map_or(0, |&width| width as usize);
        let places = width.saturating_mul(slice);
        let to = MatrixLayout { format: Format::Sell { slice, places }, ..from };
        self.filled(matrix, &Spconvert::new(from, to).ordered(), lists)
    }
}
