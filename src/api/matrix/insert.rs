use super::{DeviceList, DeviceMatrix, allocated};
use crate::gpu::{Gpu, Slice, Waiting};
use crate::program::prelude::*;
use crate::sparse::{Format, MatrixLayout, Spinsert};

impl DeviceMatrix {
    /// Returns how many entries its memory holds. Coordinates have room for more after [`Gpu::insert_entries`] grew
    /// them; other formats are exactly as large as needed.
    pub fn capacity(&self) -> usize {
        match self.layout.format {
            Format::Coo { .. } => self.lists.iter().map(DeviceList::len).min().unwrap_or(0),
            _ => self.layout.places(),
        }
    }
}

impl Gpu {
    /// Inserts the entries of `new`, coordinates on the device, into a matrix of [`Format::Coo`] or [`Format::Ell`]
    /// with the same type of values: [`Spinsert`].
    ///
    /// Coordinates are appended in their order; a sorted matrix no longer counts as sorted. When memory is full, the
    /// arrays move to ones twice as long ([`DeviceMatrix::capacity`]), so that many small insertions cost little
    /// each. ELL puts each entry into the first free slot of its row. If a row lacks slots, nothing is inserted. ELL
    /// reads back one word, which waits.
    ///
    /// A position may get several entries; their sum counts ([`Gpu::sum_duplicates`] merges them).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let entry = |row, col, value| {
    ///     Coo { rows: 2, cols: 2, row_idxs: vec![row], col_idxs: vec![col], values: vec![value] }
    /// };
    /// let gpu = Gpu::new()?;
    /// let mut a = gpu.upload_matrix(&entry(1, 1, 2.0))?;
    /// gpu.insert_entries(&mut a, &gpu.upload_matrix(&entry(0, 1, 3.0))?)?;
    /// assert_eq!(a.layout().entries, 2);
    /// assert_eq!(a.read()?.to_csr()?.values, [3.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Shape`](ErrorKind::Shape): `new` is not stored as coordinates, or has other extents.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): the matrix has another format, or too few free
    ///   slots, or values of another type than `new`.
    /// - [`TooLarge`](ErrorKind::TooLarge): more entries than a buffer or binding holds. The matrix is
    ///   unchanged.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn insert_entries(&self, matrix: &mut DeviceMatrix, new: &DeviceMatrix) -> Result<()> {
        Waiting::block(|waiting| self.insert_by(waiting, matrix, new))
    }

    /// As [`insert_entries`](Self::insert_entries), without blocking the thread.
    ///
    /// # Errors
    /// As [`insert_entries`](Self::insert_entries).
    pub async fn insert_entries_async(&self, matrix: &mut DeviceMatrix, new: &DeviceMatrix) -> Result<()> {
        self.insert_by(Waiting::Yielding, matrix, new).await
    }

    pub(in crate::api) async fn insert_by(
        &self, waiting: Waiting, matrix: &mut DeviceMatrix, new: &DeviceMatrix,
    ) -> Result<()> {
        let (to, from) = (matrix.layout, new.layout);
        let coordinates = matches!(from.format, Format::Coo { .. });
        if !coordinates || (from.rows, from.cols) != (to.rows, to.cols) {
            return Err(err!(
                Shape,
                "insert: {} {} x {} into {} x {}; new entries are coordinates of a matrix with these extents",
                from.format.name(),
                from.rows,
                from.cols,
                to.rows,
                to.cols
            ));
        }
        if to.values != from.values {
            return Err(err!(
                InvalidArgument,
                "insert: entries of {} into a matrix of {}; both must have values of one type",
                from.values,
                to.values
            ));
        }
        let program = self.lower::<f32, _>(&Spinsert::new(to, from.entries))?;
        if from.entries == 0 {
            return Ok(());
        }
        let entries = to.entries + from.entries;
        let coordinates = matches!(to.format, Format::Coo { .. });
        let mut grown = None;
        if coordinates && entries > matrix.capacity() {
            // Doubling costs each entry about one copy.
            grown = Some(self.grown(matrix, entries.max(2 * to.entries))?);
        }
        let lists = grown.as_ref().unwrap_or(&matrix.lists);
        let missing = self.alloc::<u32>(1)?;
        let planned = program.operands.iter().map(|operand| operand.len);
        let mut operands: Vec<_> = lists.iter().zip(planned).map(|(list, n)| list.front(n)).collect::<Result<_>>()?;
        operands.extend(new.slices()?);
        operands.push(Slice::from(&missing).untyped());
        self.run_program(program, &operands)?;
        let lacking = match coordinates {
            true => 0,
            false => Slice::from(&missing).read_by(waiting).await?.first().copied().unwrap_or(0),
        };
        if lacking > 0 {
            return Err(err!(
                InvalidArgument,
                "insert: {} entries into rows that lack {lacking} slots; nothing was inserted: convert the matrix to \
                 coo, insert, and convert it back",
                from.entries
            ));
        }
        let layout = match to.format {
            Format::Coo { .. } => MatrixLayout {
                entries,
                longest: to.longest.saturating_add(from.longest),
                format: Format::Coo { sorted: false },
                ..to
            },
            _ => MatrixLayout { entries, ..to },
        };
        let lists = grown.unwrap_or_else(|| std::mem::take(&mut matrix.lists));
        *matrix = DeviceMatrix::new(layout, lists);
        Ok(())
    }

    /// Copies coordinates to arrays with room for `capacity` entries.
    fn grown(&self, matrix: &DeviceMatrix, capacity: usize) -> Result<Vec<DeviceList>> {
        let n = matrix.layout.entries;
        let program = self.lower::<f32, _>(&Spinsert::new(MatrixLayout { entries: 0, ..matrix.layout }, n))?;
        let lists = (program.operands[..3].iter())
            .map(|operand| allocated(self, &Operand { len: capacity, ..operand.clone() }))
            .collect::<Result<Vec<_>>>()?;
        let missing = self.alloc::<u32>(1)?;
        let mut operands: Vec<_> = lists.iter().map(|list| list.front(n)).collect::<Result<_>>()?;
        operands.extend(matrix.slices()?);
        operands.push(Slice::from(&missing).untyped());
        self.run_program(program, &operands)?;
        Ok(lists)
    }
}
