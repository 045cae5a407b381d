//! Insertion of entries into a matrix on a device.

use super::{DeviceList, DeviceMatrix};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::gpu::{Buffer, Gpu, Recorder, Slice};
use crate::sparse::{Format, MatrixLayout, insert_places};

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
    /// Inserts the entries of `new`, coordinates on the device, into a matrix of [`Format::Coo`] or [`Format::Ell`].
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
    /// let entry = |row, col, value| Coo { rows: 2, cols: 2, row_idxs: vec![row], col_idxs: vec![col], values:
    /// vec![value] }; let gpu = Gpu::new()?; let mut a = gpu.upload_matrix(&entry(1, 1, 2.0))?; gpu.insert_entries(&mut
    /// a, &gpu.upload_matrix(&entry(0, 1, 3.0))?)?; assert_eq!(a.layout().entries, 2);
    /// assert_eq!(a.read()?.to_csr()?.values, [3.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Shape`](crate::ErrorKind::Shape): `new` is not stored as coordinates, or has other extents.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the matrix has another format, or too few free
    ///   slots.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): values of f16.
    /// - [`TooLarge`](crate::ErrorKind::TooLarge): more entries than a buffer or binding holds. The matrix is
    ///   unchanged.
    pub fn insert_entries(&self, matrix: &mut DeviceMatrix, new: &DeviceMatrix) -> Result<()> {
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
        if to.values != DType::F32 || from.values != DType::F32 {
            return Err(err!(
                Unsupported,
                "insert: entries of {} into a matrix of {}; both must be of f32: insert before they are rounded",
                from.values,
                to.values
            ));
        }
        match to.format {
            _ if from.entries == 0 => Ok(()),
            Format::Coo { .. } => self.append(matrix, new),
            Format::Ell { width } => self.insert_into_places(matrix, new, width),
            _ => Err(err!(
                InvalidArgument,
                "insert: a matrix of {} has no room for new entries; convert it to coo or ell",
                to.format.name()
            )),
        }
    }

    /// Appends entries to coordinates.
    fn append(&self, matrix: &mut DeviceMatrix, new: &DeviceMatrix) -> Result<()> {
        let (old, more) = (matrix.layout.entries, new.layout.entries);
        let entries = old.saturating_add(more);
        let layout = MatrixLayout {
            entries,
            longest: matrix.layout.longest.saturating_add(new.layout.longest),
            format: Format::Coo { sorted: false },
            ..matrix.layout
        };
        let operands = layout.operands("insert")?;
        self.planning_profile().check_bindings(
            "insert",
            &operands,
            "split the matrix by rows and insert into each part",
        )?;
        let mut rec = self.recorder();
        let grown = entries > matrix.capacity();
        // Doubling costs each entry about one copy.
        let capacity = if grown { entries.max(2 * old) } else { 0 };
        let mut moved = Vec::new();
        for (list, added) in matrix.lists.iter().zip(&new.lists) {
            moved.push(match (list, added) {
                (DeviceList::Indices(list), DeviceList::Indices(added)) => {
                    DeviceList::Indices(self.extended(&mut rec, (list, old), (added, more), capacity)?)
                }
                (DeviceList::Values(list), DeviceList::Values(added)) => {
                    DeviceList::Values(self.extended(&mut rec, (list, old), (added, more), capacity)?)
                }
                _ => return Err(err!(Shape, "insert: lists of two types")),
            });
        }
        rec.submit()?;
        *matrix = DeviceMatrix { layout, lists: moved };
        Ok(())
    }

    /// The array, or a longer copy of it, with more elements appended.
    fn extended<T: Element>(
        &self,
        rec: &mut Recorder,
        (list, old): (&Buffer<T>, usize),
        (added, more): (&Buffer<T>, usize),
        capacity: usize,
    ) -> Result<Buffer<T>> {
        let to = if capacity > 0 { self.alloc(capacity)? } else { list.clone() };
        if capacity > 0 {
            rec.copy(list.slice(..old)?, to.slice(..old)?)?;
        }
        rec.copy(added.slice(..more)?, to.slice(old..old + more)?)?;
        Ok(to)
    }

    fn insert_into_places(&self, matrix: &mut DeviceMatrix, new: &DeviceMatrix, width: usize) -> Result<()> {
        let more = new.layout.entries;
        let program = insert_places(&matrix.layout, more, &self.planning_profile())?;
        let missing = self.alloc::<u32>(1)?;
        let mut operands = [new.slices()?, matrix.slices()?].concat();
        operands.push(Slice::from(&missing).untyped());
        self.run_program(program, &operands)?;
        match missing.read()?.first() {
            Some(0) => {
                matrix.layout.entries += more;
                Ok(())
            }
            missing => Err(err!(
                InvalidArgument,
                "insert: {more} entries into rows of {width} slots each, which lack {} slots; nothing was inserted: \
                 convert the matrix to coo, insert, and convert it back",
                missing.unwrap_or(&0)
            )),
        }
    }
}
