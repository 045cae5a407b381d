//! Orders, selections by row and rank, segments between offsets, points by bins.

use super::primitives::elements_of;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::primitives::{
    Argsort, Histogram2d, NthElement, ReduceOffsets, Reducer, ScanOffsets, SegmentedSort, Shuffle, TopKRows,
    WeightedHistogram,
};
use crate::program::prelude::*;

impl Gpu {
    /// Finds the positions of `keys` in ascending order, stably, in a new buffer: [`Argsort`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// assert_eq!(gpu.argsort(&gpu.upload(&[3i32, -1, 3, 0])?)?.read()?, [1, 3, 0, 2]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn argsort<'a, T: Element>(&self, keys: impl Into<Slice<'a, T>>) -> Result<Buffer<u32>>
    where
        Argsort: Op<T>,
    {
        let keys = keys.into();
        self.call::<T, _>(&Argsort::new(keys.len()), &[("keys", keys.untyped())])?.output("indices")
    }

    /// Sorts the keys of each segment between neighbours among `offsets`, stably, into a new buffer: [`SegmentedSort`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (keys, offsets) = (gpu.upload(&[3u32, 1, 2, 9, 8])?, gpu.upload(&[0u32, 3, 5])?);
    /// assert_eq!(gpu.segmented_sort(&keys, &offsets)?.read()?, [1, 2, 3, 8, 9]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `offsets` has no element.
    pub fn segmented_sort<'a, T: Element>(
        &self, keys: impl Into<Slice<'a, T>>, offsets: impl Into<Slice<'a, u32>>,
    ) -> Result<Buffer<T>>
    where
        SegmentedSort: Op<T>,
    {
        let (keys, offsets) = (keys.into(), offsets.into());
        let given = [("keys", keys.untyped()), ("offsets", offsets.untyped())];
        let op = SegmentedSort::new(keys.len(), offsets.len().saturating_sub(1));
        self.call::<T, _>(&op, &given)?.output("keys_out")
    }

    /// Finds the element at `rank` of the sorted input, from 0, in a new buffer of one element: [`NthElement`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// assert_eq!(gpu.nth_element(&gpu.upload(&[3u32, 9, 1, 7, 5])?, 2)?.read()?, [5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn nth_element<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, rank: usize) -> Result<Buffer<T>>
    where
        NthElement: Op<T>,
    {
        let input = input.into();
        let op = NthElement::new(input.len(), rank);
        self.call::<T, _>(&op, &[("input", input.untyped())])?.output("output")
    }

    /// Puts elements in a random order, that of `seed`, in a new buffer: [`Shuffle`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let mut found = gpu.shuffle(&gpu.upload(&[1u8, 2, 3])?, 42)?.read()?;
    /// found.sort();
    /// assert_eq!(found, [1, 2, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn shuffle<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, seed: u64) -> Result<Buffer<T>>
    where
        Shuffle: Op<T>,
    {
        let input = input.into();
        let op = Shuffle::new(input.len()).seed(seed);
        self.call::<T, _>(&op, &[("input", input.untyped())])?.output("output")
    }

    /// Combines the elements of each segment between neighbours among `offsets`, in a new buffer: [`ReduceOffsets`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, offsets) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[0u32, 2, 2, 3])?);
    /// assert_eq!(gpu.reduce_offsets(&x, &offsets, Sum)?.read()?, [3.0, 0.0, 3.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `offsets` has no element.
    pub fn reduce_offsets<'a, T: Element, O: Reducer<T>>(
        &self, input: impl Into<Slice<'a, T>>, offsets: impl Into<Slice<'a, u32>>, op: O,
    ) -> Result<Buffer<O::Output>> {
        let (input, offsets) = (input.into(), offsets.into());
        let n = elements_of::<T, O>(&op, input.len())?;
        let given = [("input", input.untyped()), ("offsets", offsets.untyped())];
        let reduce = ReduceOffsets::new(op, n, offsets.len().saturating_sub(1));
        self.call::<T, _>(&reduce, &given)?.output("results")
    }

    /// Scans the elements of each segment between neighbours among `offsets`, in a new buffer: [`ScanOffsets`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, offsets) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[0u32, 2, 3])?);
    /// assert_eq!(gpu.scan_offsets(&x, &offsets, Sum)?.read()?, [1.0, 3.0, 3.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `offsets` has no element.
    pub fn scan_offsets<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, input: impl Into<Slice<'a, T>>, offsets: impl Into<Slice<'a, u32>>, op: O,
    ) -> Result<Buffer<T>> {
        let (input, offsets) = (input.into(), offsets.into());
        let n = elements_of::<T, O>(&op, input.len())?;
        let given = [("input", input.untyped()), ("offsets", offsets.untyped())];
        let scan = ScanOffsets::new(op, n, offsets.len().saturating_sub(1));
        self.call::<T, _>(&scan, &given)?.output("output")
    }

    /// Adds up the weights of the elements in each of `bins` bins from `lo` to `hi`, in a new buffer:
    /// [`WeightedHistogram`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, weights) = (gpu.upload(&[0.1f32, 0.9, 0.2])?, gpu.upload(&[1.0f32, 2.0, 4.0])?);
    /// assert_eq!(gpu.weighted_histogram(&x, &weights, 2, 0.0, 1.0)?.read()?, [5.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn weighted_histogram<'a, T: Element>(
        &self, input: impl Into<Slice<'a, f32>>, weights: impl Into<Slice<'a, T>>, bins: usize, lo: f64, hi: f64,
    ) -> Result<Buffer<T>> {
        let (input, weights) = (input.into(), weights.into());
        let op = WeightedHistogram::new(input.len(), bins, lo, hi);
        let given = [("input", input.untyped()), ("weights", weights.untyped())];
        self.call::<T, _>(&op, &given)?.output("sums")
    }

    /// Counts points by bins of two axes, in a new buffer: [`Histogram2d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[0.1f32, 0.9, 0.2])?, gpu.upload(&[0.3f32, 0.6, 1.0])?);
    /// assert_eq!(gpu.histogram_2d(&x, &y, [2, 2], [0.0, 0.0], [1.0, 1.0])?.read()?, [1, 1, 0, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn histogram_2d<'a>(
        &self, x: impl Into<Slice<'a, f32>>, y: impl Into<Slice<'a, f32>>, bins: [usize; 2], lo: [f64; 2], hi: [f64; 2],
    ) -> Result<Buffer<u32>> {
        let (x, y) = (x.into(), y.into());
        let op = Histogram2d::new(x.len(), bins, lo, hi);
        self.call::<f32, _>(&op, &[("x", x.untyped()), ("y", y.untyped())])?.output("counts")
    }

    /// Finds the `k` largest elements of each row of `n`, the largest first, and their positions in the row, in new
    /// buffers: [`TopKRows`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.5f32, f32::NAN, 3.0, 2.0, 3.0, 4.0])?; // two rows
    /// let (values, indices) = gpu.top_k_rows(&x, 3, 2)?;
    /// assert_eq!(values.read()?, [3.0, 0.5, 4.0, 3.0]);
    /// assert_eq!(indices.read()?, [2, 0, 2, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `n` does not divide the length of `input`.
    pub fn top_k_rows<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, n: usize, k: usize,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        TopKRows: Op<T>,
    {
        let given = [("input", input.into().untyped())];
        self.call_rows::<T, _>(n, |rows| TopKRows::new([rows, n], k), &given)?.outputs(["values", "indices"])
    }
}
