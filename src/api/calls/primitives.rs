use crate::gpu::{Buffer, Gpu, Slice};
use crate::primitives::{
    Histogram, Monoid, Partition, Predicate, RadixSort, Reduce, ReduceByKey, Reducer, RunLength, Scan, ScanByKey,
    SegmentedReduce, SegmentedScan, Select, TopK, Unique, UniqueByKey,
};
use crate::program::prelude::*;

/// Elements of an operator among `len` numbers. A rest fails when the operands are compared with the program's.
pub(super) fn elements_of<T: Element, O: Reducer<T>>(op: &O, len: usize) -> Result<usize> {
    Ok(len / Monoid::new(&op.operator(), T::DTYPE)?.inputs())
}

impl Gpu {
    /// Reduces all of `input` to one value, in a new buffer: [`Reduce`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Max};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[3u32, 1, 4])?;
    /// assert_eq!(gpu.reduce(&x, Max)?.read()?, [4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn reduce<'a, T: Element, O: Reducer<T>>(
        &self, input: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<O::Output>> {
        self.reduce_rows(input, op, 1)
    }

    /// Reduces each of `rows` equal rows of `input` to one value, in a new buffer: [`Reduce::rows`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[3u32, 1, 4, 1])?;
    /// assert_eq!(gpu.reduce_rows(&x, Sum, 2)?.read()?, [4, 5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `rows` does not divide the length.
    pub fn reduce_rows<'a, T: Element, O: Reducer<T>>(
        &self, input: impl Into<Slice<'a, T>>, op: O, rows: usize,
    ) -> Result<Buffer<O::Output>> {
        let input = input.into();
        // An incomplete row counts, so that no row is taken to be empty.
        let numbers = Monoid::new(&op.operator(), T::DTYPE)?.inputs();
        let width = if rows == 0 { 0 } else { input.len().div_ceil(rows * numbers) };
        let program = self.lower::<T, _>(&Reduce::rows(op, rows, width))?;
        if !input.len().is_multiple_of(rows * numbers) {
            return Err(err!(
                Shape,
                "{}: {} elements are not {rows} equal rows of {numbers} numbers an element; slice the input",
                program.op,
                input.len()
            ));
        }
        self.call_program(program, &[("input", input.untyped())])?.output("output")
    }

    /// Computes all prefixes of `input`, each with its last element, into a new buffer: [`Scan`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[3u32, 1, 4, 1, 5])?;
    /// assert_eq!(gpu.inclusive_scan(&x, Sum)?.read()?, [3, 4, 8, 9, 14]);
    /// assert_eq!(gpu.exclusive_scan(&x, Sum)?.read()?, [0, 3, 4, 8, 9]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn inclusive_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, input: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let n = elements_of::<T, O>(&op, input.len())?;
        self.scan(input, &Scan::new(op, n))
    }

    /// Computes all prefixes of `input`, each without its last element, into a new buffer: [`Scan`]. The first is the
    /// identity. For an example see [`inclusive_scan`](Self::inclusive_scan).
    pub fn exclusive_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, input: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let n = elements_of::<T, O>(&op, input.len())?;
        self.scan(input, &Scan::new(op, n).exclusive())
    }

    fn scan<T: Element, O: Reducer<T, Output = T>>(&self, input: Slice<'_, T>, scan: &Scan<O>) -> Result<Buffer<T>> {
        self.call::<T, _>(scan, &[("input", input.untyped())])?.output("output")
    }

    /// Computes all prefixes of each segment of `input`, each with its last element, into a new buffer:
    /// [`SegmentedScan`]. A nonzero element of `heads` starts a segment.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, heads) = (gpu.upload(&[3u32, 1, 4, 1, 5])?, gpu.upload(&[0u32, 0, 1, 0, 0])?);
    /// assert_eq!(gpu.inclusive_segmented_scan(&x, &heads, Sum)?.read()?, [3, 4, 4, 5, 10]);
    /// assert_eq!(gpu.exclusive_segmented_scan(&x, &heads, Sum)?.read()?, [0, 3, 0, 4, 5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn inclusive_segmented_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, input: impl Into<Slice<'a, T>>, heads: impl Into<Slice<'a, u32>>, op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let n = elements_of::<T, O>(&op, input.len())?;
        self.segmented_scan(input, heads.into(), &SegmentedScan::new(op, n))
    }

    /// Computes all prefixes of each segment of `input`, each without its last element, into a new buffer:
    /// [`SegmentedScan`]. A nonzero element of `heads` starts a segment, whose first prefix is the identity. For an
    /// example see [`inclusive_segmented_scan`](Self::inclusive_segmented_scan).
    pub fn exclusive_segmented_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, input: impl Into<Slice<'a, T>>, heads: impl Into<Slice<'a, u32>>, op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let n = elements_of::<T, O>(&op, input.len())?;
        self.segmented_scan(input, heads.into(), &SegmentedScan::new(op, n).exclusive())
    }

    fn segmented_scan<T: Element, O: Reducer<T, Output = T>>(
        &self, input: Slice<'_, T>, heads: Slice<'_, u32>, scan: &SegmentedScan<O>,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(scan, &[("input", input.untyped()), ("heads", heads.untyped())])?.output("output")
    }

    /// Computes all prefixes of each run of equal `keys`, each with its last element, into a new buffer: [`ScanByKey`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (keys, x) = (gpu.upload(&[7u32, 7, 3, 3])?, gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?);
    /// assert_eq!(gpu.inclusive_scan_by_key(&keys, &x, Sum)?.read()?, [1.0, 3.0, 3.0, 7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn inclusive_scan_by_key<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, keys: impl Into<Slice<'a, u32>>, input: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        let keys = keys.into();
        self.scan_by_key(keys, input.into(), &ScanByKey::new(op, keys.len()))
    }

    /// As [`inclusive_scan_by_key`](Self::inclusive_scan_by_key), each prefix without its last element; the first of a
    /// run is the identity.
    pub fn exclusive_scan_by_key<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, keys: impl Into<Slice<'a, u32>>, input: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        let keys = keys.into();
        self.scan_by_key(keys, input.into(), &ScanByKey::new(op, keys.len()).exclusive())
    }

    fn scan_by_key<T: Element, O: Reducer<T, Output = T>>(
        &self, keys: Slice<'_, u32>, input: Slice<'_, T>, scan: &ScanByKey<O>,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(scan, &[("keys", keys.untyped()), ("input", input.untyped())])?.output("output")
    }

    /// Counts the elements of `input` in each of `bins` bins of equal width from `lo` to `hi`: [`Histogram`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.1f32, 0.6, 0.7, 1.0, 5.0])?;
    /// assert_eq!(gpu.histogram(&x, 2, 0.0, 1.0)?.read()?, [1, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn histogram<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, bins: usize, lo: f64, hi: f64,
    ) -> Result<Buffer<u32>> {
        let input = input.into();
        self.count(input, &Histogram::new(input.len(), bins).range(lo, hi))
    }

    /// Counts the elements of `input` between neighbouring `edges`: [`Histogram::with_edges`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.5f32, 3.0, 5.0])?;
    /// assert_eq!(gpu.histogram_edges(&x, &[0.0, 1.0, 10.0])?.read()?, [1, 2]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn histogram_edges<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, edges: impl Into<Vec<f64>>,
    ) -> Result<Buffer<u32>> {
        let input = input.into();
        self.count(input, &Histogram::with_edges(input.len(), edges))
    }

    fn count<T: Element>(&self, input: Slice<'_, T>, histogram: &Histogram) -> Result<Buffer<u32>> {
        self.call::<T, _>(histogram, &[("input", input.untyped())])?.output("counts")
    }

    /// Sorts the keys in ascending order into a new buffer: [`RadixSort`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let keys = gpu.upload(&[3.0f32, -1.0, f32::INFINITY, 0.5])?;
    /// assert_eq!(gpu.sort(&keys)?.read()?, [-1.0, 0.5, 3.0, f32::INFINITY]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sort<'a, T: Element>(&self, keys: impl Into<Slice<'a, T>>) -> Result<Buffer<T>> {
        let keys = keys.into();
        self.call::<T, _>(&RadixSort::new(keys.len()), &[("keys", keys.untyped())])?.output("keys_out")
    }

    /// Sorts keys in ascending order together with their values, into new buffers: [`RadixSort`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (keys, values) = (gpu.upload(&[30, 10, 20, 10])?, gpu.upload(&[0u32, 1, 2, 3])?);
    /// let (keys, values) = gpu.sort_pairs(&keys, &values)?;
    /// assert_eq!(keys.read()?, [10, 10, 20, 30]);
    /// assert_eq!(values.read()?, [1, 3, 2, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sort_pairs<'a, T: Element>(
        &self, keys: impl Into<Slice<'a, T>>, values: impl Into<Slice<'a, u32>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)> {
        let (keys, values) = (keys.into(), values.into());
        let op = RadixSort::new(keys.len()).with_values();
        let given = [("keys", keys.untyped()), ("values", values.untyped())];
        self.call::<T, _>(&op, &given)?.outputs(["keys_out", "values_out"])
    }

    /// Finds the `k` largest elements of `input`, the largest first, and their indices, in new buffers: [`TopK`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.5f32, f32::NAN, 3.0, -1.0, 3.0])?;
    /// let (values, indices) = gpu.top_k(&x, 3)?;
    /// assert_eq!(values.read()?, [3.0, 3.0, 0.5]);
    /// assert_eq!(indices.read()?, [2, 4, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn top_k<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, k: usize) -> Result<(Buffer<T>, Buffer<u32>)> {
        let input = input.into();
        let op = TopK::new(input.len(), k);
        self.call::<T, _>(&op, &[("input", input.untyped())])?.outputs(["values", "indices"])
    }

    /// Combines the values of each run of equal `keys`. Returns the keys of the runs, the results and the number of
    /// runs in new buffers: [`ReduceByKey`]. Elements of the first two beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (keys, values) = (gpu.upload(&[7u32, 7, 3])?, gpu.upload(&[1.5f32, 2.0, 4.0])?);
    /// let (keys, sums, count) = gpu.reduce_by_key(&keys, &values, Sum)?;
    /// let runs = count.read()?[0] as usize;
    /// assert_eq!(keys.slice(..runs)?.read()?, [7, 3]);
    /// assert_eq!(sums.slice(..runs)?.read()?, [3.5, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn reduce_by_key<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, keys: impl Into<Slice<'a, u32>>, values: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<(Buffer<u32>, Buffer<T>, Buffer<u32>)> {
        let (keys, values) = (keys.into(), values.into());
        let op = ReduceByKey::new(op, keys.len());
        let given = [("keys", keys.untyped()), ("values", values.untyped())];
        self.call::<T, _>(&op, &given)?.three_outputs(["keys_out", "results", "count"])
    }

    /// Combines the elements of each segment of `values`. A nonzero element of `heads` starts a segment. Returns the
    /// results and the number of segments in new buffers: [`SegmentedReduce`]. Results beyond that number are not
    /// written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Sum};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, heads) = (gpu.upload(&[3u32, 1, 4])?, gpu.upload(&[1u32, 0, 1])?);
    /// let (sums, count) = gpu.segmented_reduce(&x, &heads, Sum)?;
    /// assert_eq!(sums.slice(..count.read()?[0] as usize)?.read()?, [4, 4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn segmented_reduce<'a, T: Element, O: Reducer<T, Output = T>>(
        &self, values: impl Into<Slice<'a, T>>, heads: impl Into<Slice<'a, u32>>, op: O,
    ) -> Result<(Buffer<T>, Buffer<u32>)> {
        let (values, heads) = (values.into(), heads.into());
        let n = elements_of::<T, O>(&op, values.len())?;
        let op = SegmentedReduce::new(op, n);
        let given = [("values", values.untyped()), ("heads", heads.untyped())];
        self.call::<T, _>(&op, &given)?.outputs(["results", "count"])
    }

    /// Selects the elements of `input` with a nonzero flag, in order. Returns them and their number in new buffers:
    /// [`Select`]. Elements beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, flags) = (gpu.upload(&[5.0f32, 6.0, 7.0])?, gpu.upload(&[1u32, 0, 1])?);
    /// let (kept, count) = gpu.select(&x, &flags)?;
    /// assert_eq!(kept.slice(..count.read()?[0] as usize)?.read()?, [5.0, 7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn select<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, flags: impl Into<Slice<'a, u32>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        Select: Op<T>,
    {
        let (input, flags) = (input.into(), flags.into());
        let given = [("input", input.untyped()), ("flags", flags.untyped())];
        self.call::<T, _>(&Select::new(input.len()), &given)?.outputs(["output", "count"])
    }

    /// Selects the elements of `input` that `predicate` keeps, in order. Returns them and their number in new
    /// buffers: [`Select::by`]. Elements beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Predicate};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[3, -1, 4, -2])?;
    /// let positive = Predicate::custom("fn keep(x: T) -> bool { return x > 0; }");
    /// let (kept, count) = gpu.select_if(&x, positive)?;
    /// assert_eq!(kept.slice(..count.read()?[0] as usize)?.read()?, [3, 4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn select_if<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, predicate: Predicate,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        Select: Op<T>,
    {
        let input = input.into();
        let op = Select::by(input.len(), predicate);
        self.call::<T, _>(&op, &[("input", input.untyped())])?.outputs(["output", "count"])
    }

    /// Puts the elements of `input` with a nonzero flag first, then the others, both in order. Returns all of them
    /// and the number of the first in new buffers: [`Partition`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, flags) = (gpu.upload(&[5.0f32, 6.0, 7.0])?, gpu.upload(&[1u32, 0, 1])?);
    /// let (parted, count) = gpu.partition(&x, &flags)?;
    /// assert_eq!((parted.read()?, count.read()?), (vec![5.0, 7.0, 6.0], vec![2]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn partition<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, flags: impl Into<Slice<'a, u32>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        Partition: Op<T>,
    {
        let (input, flags) = (input.into(), flags.into());
        let given = [("input", input.untyped()), ("flags", flags.untyped())];
        self.call::<T, _>(&Partition::new(input.len()), &given)?.outputs(["output", "count"])
    }

    /// Puts the elements of `input` that `predicate` keeps first, then the others, both in order. Returns all of them
    /// and the number of the first in new buffers: [`Partition::by`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Predicate};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[3, -1, 4])?;
    /// let positive = Predicate::custom("fn keep(x: T) -> bool { return x > 0; }");
    /// let (parted, count) = gpu.partition_if(&x, positive)?;
    /// assert_eq!((parted.read()?, count.read()?), (vec![3, 4, -1], vec![2]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn partition_if<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, predicate: Predicate,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        Partition: Op<T>,
    {
        let input = input.into();
        let op = Partition::by(input.len(), predicate);
        self.call::<T, _>(&op, &[("input", input.untyped())])?.outputs(["output", "count"])
    }

    /// Keeps the first element of each run of equal elements of `input`. Returns them and their number in new
    /// buffers: [`Unique`]. Elements beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (kept, count) = gpu.unique(&gpu.upload(&[7u32, 7, 3, 7])?)?;
    /// assert_eq!(kept.slice(..count.read()?[0] as usize)?.read()?, [7, 3, 7]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn unique<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        Unique: Op<T>,
    {
        let input = input.into();
        let op = Unique::new(input.len());
        self.call::<T, _>(&op, &[("input", input.untyped())])?.outputs(["output", "count"])
    }

    /// Keeps the first of each run of equal `keys`, and its value. Returns keys, values and their number in new
    /// buffers: [`UniqueByKey`]. Elements of the first two beyond that number are not written.
    pub fn unique_by_key<'a, T: Element, V: Element>(
        &self, keys: impl Into<Slice<'a, T>>, values: impl Into<Slice<'a, V>>,
    ) -> Result<(Buffer<T>, Buffer<V>, Buffer<u32>)>
    where
        UniqueByKey<V>: Op<T>,
    {
        let (keys, values) = (keys.into(), values.into());
        let op = UniqueByKey::new(keys.len()).with_values::<V>();
        let given = [("keys", keys.untyped()), ("values", values.untyped())];
        self.call::<T, _>(&op, &given)?.three_outputs(["keys_out", "values_out", "count"])
    }

    /// Finds the runs of equal elements of `input`. Returns their values, their lengths and their number in new
    /// buffers: [`RunLength`]. Elements of the first two beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (values, counts, runs) = gpu.run_length(&gpu.upload(&[7u32, 7, 3, 7])?)?;
    /// let runs = runs.read()?[0] as usize;
    /// assert_eq!(values.slice(..runs)?.read()?, [7, 3, 7]);
    /// assert_eq!(counts.slice(..runs)?.read()?, [2, 1, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn run_length<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>,
    ) -> Result<(Buffer<T>, Buffer<u32>, Buffer<u32>)>
    where
        RunLength: Op<T>,
    {
        let input = input.into();
        let op = RunLength::new(input.len());
        self.call::<T, _>(&op, &[("input", input.untyped())])?.three_outputs(["values", "counts", "count"])
    }
}
