//! New entries in a matrix on a device.

use super::{DeviceMatrix, Uploaded};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::gpu::{Buffer, Gpu, Recorder, Slice};
use crate::sparse::{Format, MatrixLayout, insert_places};

impl DeviceMatrix {
    /// Entries that there is memory for. Coordinates have room for more than they hold once
    /// [`Gpu::insert_entries`] has made it; every other format is as large as it must be.
    pub fn capacity(&self) -> usize {
        match self.layout.format {
            Format::Coo { .. } => self.lists.iter().map(Uploaded::len).min().unwrap_or(0),
            _ => self.layout.places(),
        }
    }
}

impl Gpu {
    /// Adds the entries of `new`, coordinates on the device, to a matrix of [`Format::Coo`] or [`Format::Ell`].
    ///
    /// Coordinates get them behind those that are there, in their order; what was sorted counts as such no longer. Where
    /// memory is full, lists move to ones that are twice as long ([`DeviceMatrix::capacity`]), so that many small
    /// insertions cost little each. In places of rows, entries go into the free ones behind those of their row, in their order,
    /// all of them or, if a row has too few, none; one word is read back, which waits.
    ///
    /// A position that is there already gets another entry: both count as their sum
    /// ([`Gpu::sum_duplicates`] makes it one).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let entry = |row, col, value| Coo { rows: 2, cols: 2, row_idxs: vec![row], col_idxs: vec![col], values: vec![value] };
    /// let gpu = Gpu::new()?;
    /// let mut a = gpu.upload_matrix(&entry(1, 1, 2.0))?;
    /// gpu.insert_entries(&mut a, &gpu.upload_matrix(&entry(0, 1, 3.0))?)?;
    /// assert_eq!(a.layout().entries, 2);
    /// assert_eq!(a.read()?.to_csr()?.values, [3.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape): `new` is not stored as coordinates, or has other extents.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the matrix has another format, or too few free places.
    /// [`Unsupported`](crate::ErrorKind::Unsupported): values of f16.
    /// [`TooLarge`](crate::ErrorKind::TooLarge): more entries than a buffer or binding holds. The matrix is then as it was.
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

    /// Behind what is there.
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
            "insert into bands of rows, a call each",
        )?;
        let mut rec = self.recorder();
        let grown = entries > matrix.capacity();
        // Twice as long, so that moving costs each entry about one copy.
        let capacity = if grown { entries.max(2 * old) } else { 0 };
        let mut moved = Vec::new();
        for (list, added) in matrix.lists.iter().zip(&new.lists) {
            moved.push(match (list, added) {
                (Uploaded::Indices(list), Uploaded::Indices(added)) => {
                    Uploaded::Indices(self.extended(&mut rec, (list, old), (added, more), capacity)?)
                }
                (Uploaded::Values(list), Uploaded::Values(added)) => {
                    Uploaded::Values(self.extended(&mut rec, (list, old), (added, more), capacity)?)
                }
                _ => return Err(err!(Shape, "insert: lists of two types")),
            });
        }
        rec.submit()?;
        *matrix = DeviceMatrix { layout, lists: moved };
        Ok(())
    }

    /// The list, or a longer one with what it holds, with more behind it.
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
                "insert: {more} entries into rows of {width} places each, which lack {} places; nothing was inserted: \
                 convert the matrix to coo, insert, and convert it back",
                missing.unwrap_or(&0)
            )),
        }
    }
}
