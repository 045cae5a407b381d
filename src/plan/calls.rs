//! One-line forms: allocate the output, plan, record, submit. For programs that have no GPU code.

use super::{DeviceMatrix, Plannable};
use crate::conv::{Conv1d, Conv2d, Conv3d};
use crate::dense::{Gemm, Gemv, Transpose};
use crate::element::Element;
use crate::elementwise::{Axpy, Map, MapFn, Zip, ZipFn};
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Recorder, Slice};
use crate::image::{Blur, Equalize, Gaussian, Grey, Image, Sobel};
use crate::nn::Softmax;
use crate::primitives::{Histogram, RadixSort, Reduce, ReduceByKey, Reducer, Scan, SegmentedReduce, TopK};
use crate::program::{In, InOut, Op, Out};
use crate::sparse::{Spmm, Spmv};

impl Gpu {
    /// `function` of every element of `x`, in a new buffer: [`Map`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, MapFn};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[-1.0f32, 0.0, 4.0])?;
    /// assert_eq!(gpu.map(&x, MapFn::Relu)?.read()?, [0.0, 0.0, 4.0]);
    /// let f = MapFn::custom("fn map(x: T) -> T { return 2.0 * x + 1.0; }");
    /// assert_eq!(gpu.map(&x, f)?.read()?, [-1.0, 1.0, 9.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Map`] and of [`Gpu::alloc`].
    pub fn map<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, function: MapFn) -> Result<Buffer<T>> {
        let x = x.into();
        let plan = Map::new(function, x.len()).plan::<T>(self)?;
        let y = self.alloc(x.len())?;
        self.run(|rec| plan.record(rec, x, &y))?;
        Ok(y)
    }

    /// `function` of every pair of elements of `x` and `y`, in a new buffer: [`Zip`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, ZipFn};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[1, 2, 3])?, gpu.upload(&[10, 20, 30])?);
    /// assert_eq!(gpu.zip(&x, &y, ZipFn::Add)?.read()?, [11, 22, 33]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; those of [`Zip`] and of [`Gpu::alloc`].
    pub fn zip<'a, T: Element>(
        &self,
        x: impl Into<Slice<'a, T>>,
        y: impl Into<Slice<'a, T>>,
        function: ZipFn,
    ) -> Result<Buffer<T>> {
        let (x, y) = (x.into(), y.into());
        let plan = Zip::new(function, x.len()).plan::<T>(self)?;
        let z = self.alloc(x.len())?;
        self.run(|rec| plan.record(rec, x, y, &z))?;
        Ok(z)
    }

    /// `y = alpha x + y`, in place: [`Axpy`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[0.5f32; 3])?);
    /// gpu.axpy(2.0, &x, &y)?;
    /// assert_eq!(y.read()?, [2.5, 4.5, 6.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ;
    /// [`Aliasing`](crate::ErrorKind::Aliasing) if both lie in one buffer; those of [`Axpy`].
    pub fn axpy<'a, T: Element>(
        &self,
        alpha: f64,
        x: impl Into<Slice<'a, T>>,
        y: impl Into<Slice<'a, T>>,
    ) -> Result<()> {
        let x = x.into();
        let plan = Axpy::new(x.len(), alpha).plan::<T>(self)?;
        self.run(|rec| plan.record(rec, x, y))
    }

    /// The product of `a`, m x k, and `b`, k x n, both row-major and of `f32` or `f16`, in a new buffer:
    /// [`Gemm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2 x 2
    /// let b = gpu.upload(&[1.0f32, 0.0, 5.0, 0.0, 1.0, 6.0])?; // 2 x 3
    /// let c = gpu.gemm(&a, &b, 2, 3, 2)?;
    /// assert_eq!(c.read()?, [1.0, 2.0, 17.0, 3.0, 4.0, 39.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `a` or `b` has another length; those of [`Gemm`] and of
    /// [`Gpu::alloc`].
    pub fn gemm<'a, T: Element>(
        &self,
        a: impl Into<Slice<'a, T>>,
        b: impl Into<Slice<'a, T>>,
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    {
        let (a, b) = (a.into(), b.into());
        // Planning refuses extents whose product overflows.
        let plan = Gemm::new(m, n, k).plan::<T>(self)?;
        let c = self.alloc(m * n)?;
        self.run(|rec| plan.record(rec, a, b, &c))?;
        Ok(c)
    }

    /// The product of `a`, m x k, row-major and of `f32` or `f16`, and `x`, k elements, in a new buffer: [`Gemv`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
    /// let x = gpu.upload(&[1.0f32, 10.0, 100.0])?;
    /// assert_eq!(gpu.gemv(&a, &x, 2, 3)?.read()?, [321.0, 654.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `a` or `x` has another length; those of [`Gemv`] and of
    /// [`Gpu::alloc`].
    pub fn gemv<'a, T: Element>(
        &self,
        a: impl Into<Slice<'a, T>>,
        x: impl Into<Slice<'a, T>>,
        m: usize,
        k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemv: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    {
        let (a, x) = (a.into(), x.into());
        let plan = Gemv::new(m, k).plan::<T>(self)?;
        let y = self.alloc(m)?;
        self.run(|rec| plan.record(rec, a, x, &y))?;
        Ok(y)
    }

    /// The product of a sparse matrix and `x`, in a new buffer: [`Spmv`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0, 0, 1], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
    /// let x = gpu.upload(&[1.0f32, 10.0, 100.0])?;
    /// assert_eq!(gpu.spmv(&a, &x)?.read()?, [201.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `x` has another length than A columns; those of [`Spmv`] and of
    /// [`Gpu::alloc`].
    pub fn spmv<'a>(&self, a: &DeviceMatrix, x: impl Into<Slice<'a, f32>>) -> Result<Buffer<f32>> {
        let x = x.into();
        let plan = Spmv::new(a.stored()).plan::<f32>(self)?;
        let y = self.alloc(a.stored().rows)?;
        self.run(|rec| plan.record(rec, a, x, &y))?;
        Ok(y)
    }

    /// The product of a sparse matrix and a dense one of `n` columns, in a new buffer: [`Spmm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0, 0, 1], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
    /// let b = gpu.upload(&[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0])?; // 3 x 2
    /// assert_eq!(gpu.spmm(&a, &b, 2)?.read()?, [201.0, 402.0, 30.0, 60.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `b` has another length than A columns, times `n`; those of [`Spmm`] and
    /// of [`Gpu::alloc`].
    pub fn spmm<'a>(&self, a: &DeviceMatrix, b: impl Into<Slice<'a, f32>>, n: usize) -> Result<Buffer<f32>> {
        let b = b.into();
        let plan = Spmm::new(a.stored(), n).plan::<f32>(self)?;
        let c = self.alloc(plan.program().operands.last().map_or(0, |c| c.len))?;
        self.run(|rec| plan.record(rec, a, b, &c))?;
        Ok(c)
    }

    /// The rows of `input`, m x n, as columns, in a new buffer: [`Transpose`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1u8, 2, 3, 4, 5, 6])?; // 2 x 3
    /// assert_eq!(gpu.transpose(&x, 2, 3)?.read()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Transpose`] and of
    /// [`Gpu::alloc`].
    pub fn transpose<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        m: usize,
        n: usize,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        let plan = Transpose::new(m, n).plan::<T>(self)?;
        let output = self.alloc(m * n)?;
        self.run(|rec| plan.record(rec, input, &output))?;
        Ok(output)
    }

    /// Softmax of each row of `n` elements of `x`, of `f32` or `f16`, in a new buffer: [`Softmax`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[3.0f32, 3.0, -1.0, f32::NEG_INFINITY])?;
    /// assert_eq!(gpu.softmax(&x, 2)?.read()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `n` does not divide the length of `x`; those of [`Softmax`] and of
    /// [`Gpu::alloc`].
    pub fn softmax<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, n: usize) -> Result<Buffer<T>>
    where
        Softmax: Op<T, Operands = (In<T>, Out<T>)>,
    {
        let x = x.into();
        // What is left over has no row, which recording refuses.
        let plan = Softmax::new(x.len().checked_div(n).unwrap_or(0), n).plan::<T>(self)?;
        let y = self.alloc(x.len())?;
        self.run(|rec| plan.record(rec, x, &y))?;
        Ok(y)
    }

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
        self.run(|rec| plan.record(rec, input, &output))?;
        Ok(output)
    }

    /// All prefixes of `input`, each with its last element: [`Scan`].
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
    ///
    /// # Errors
    /// Those of [`Scan`] and of [`Gpu::alloc`].
    pub fn inclusive_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self,
        input: impl Into<Slice<'a, T>>,
        op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        self.scan_with(input, &Scan::new(op, input.len()))
    }

    /// All prefixes of `input`, each without its last element: [`Scan`]. The first is the identity.
    ///
    /// # Errors
    /// Those of [`Scan`] and of [`Gpu::alloc`].
    pub fn exclusive_scan<'a, T: Element, O: Reducer<T, Output = T>>(
        &self,
        input: impl Into<Slice<'a, T>>,
        op: O,
    ) -> Result<Buffer<T>> {
        let input = input.into();
        self.scan_with(input, &Scan::new(op, input.len()).exclusive(true))
    }

    fn scan_with<T: Element, O: Reducer<T, Output = T>>(
        &self,
        input: Slice<'_, T>,
        scan: &Scan<O>,
    ) -> Result<Buffer<T>> {
        let plan = scan.plan::<T>(self)?;
        let output = self.alloc(input.len())?;
        self.run(|rec| plan.record(rec, input, &output))?;
        Ok(output)
    }

    /// How many elements of `input` fall into each of `bins` bins of equal width from `lo` to `hi`: [`Histogram`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.1f32, 0.6, 0.7, 1.0, 5.0])?;
    /// assert_eq!(gpu.histogram(&x, 2, 0.0, 1.0)?.read()?, [1, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Histogram`] and of [`Gpu::alloc`].
    pub fn histogram<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        bins: usize,
        lo: f64,
        hi: f64,
    ) -> Result<Buffer<u32>> {
        let input = input.into();
        self.count(input, &Histogram::new(input.len(), bins).range(lo, hi))
    }

    /// How many elements of `input` fall between neighbours of `edges`: [`Histogram::with_edges`].
    ///
    /// # Errors
    /// Those of [`Histogram`] and of [`Gpu::alloc`].
    pub fn histogram_edges<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        edges: impl Into<Vec<f64>>,
    ) -> Result<Buffer<u32>> {
        let input = input.into();
        self.count(input, &Histogram::with_edges(input.len(), edges))
    }

    fn count<T: Element>(&self, input: Slice<'_, T>, histogram: &Histogram) -> Result<Buffer<u32>> {
        let plan = histogram.plan::<T>(self)?;
        let counts = self.alloc(histogram.bins())?;
        self.run(|rec| plan.record(rec, input, &counts))?;
        Ok(counts)
    }

    /// The keys in ascending order, in a new buffer: [`RadixSort`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let keys = gpu.upload(&[3.0f32, -1.0, f32::INFINITY, 0.5])?;
    /// assert_eq!(gpu.sort(&keys)?.read()?, [-1.0, 0.5, 3.0, f32::INFINITY]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`RadixSort`] and of [`Gpu::alloc`].
    pub fn sort<'a, T: Element>(&self, keys: impl Into<Slice<'a, T>>) -> Result<Buffer<T>> {
        let keys = keys.into();
        let plan = RadixSort::new(keys.len()).plan::<T>(self)?;
        let sorted = self.alloc(keys.len())?;
        self.run(|rec| plan.record(rec, keys, &sorted))?;
        Ok(sorted)
    }

    /// The keys in ascending order, and the values that go with them, in new buffers: [`RadixSort`].
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
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; those of [`RadixSort`] and of [`Gpu::alloc`].
    pub fn sort_pairs<'a, T: Element>(
        &self,
        keys: impl Into<Slice<'a, T>>,
        values: impl Into<Slice<'a, u32>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)> {
        let (keys, values) = (keys.into(), values.into());
        let plan = RadixSort::new(keys.len()).with_values().plan::<T>(self)?;
        let sorted = (self.alloc(keys.len())?, self.alloc(keys.len())?);
        self.run(|rec| plan.record(rec, keys, values, &sorted.0, &sorted.1))?;
        Ok(sorted)
    }

    /// The key of each run of equal neighbours among `keys`, its values combined, and the number of runs, in new
    /// buffers: [`ReduceByKey`]. The first two are written up to that number.
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
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; those of [`ReduceByKey`] and of [`Gpu::alloc`].
    pub fn reduce_by_key<'a, T: Element, O: Reducer<T, Output = T>>(
        &self,
        keys: impl Into<Slice<'a, u32>>,
        values: impl Into<Slice<'a, T>>,
        op: O,
    ) -> Result<(Buffer<u32>, Buffer<T>, Buffer<u32>)> {
        let (keys, values) = (keys.into(), values.into());
        let plan = ReduceByKey::new(op, keys.len()).plan::<T>(self)?;
        let (keys_out, results) = (self.alloc(keys.len())?, self.alloc(keys.len())?);
        let count = self.alloc(1)?;
        self.run(|rec| plan.record(rec, keys, values, &keys_out, &results, &count))?;
        Ok((keys_out, results, count))
    }

    /// The elements of each segment of `values` combined, where what is not 0 in `heads` begins one, and the number
    /// of segments, in new buffers: [`SegmentedReduce`]. The first is written up to that number.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; those of [`SegmentedReduce`] and of [`Gpu::alloc`].
    pub fn segmented_reduce<'a, T: Element, O: Reducer<T, Output = T>>(
        &self,
        values: impl Into<Slice<'a, T>>,
        heads: impl Into<Slice<'a, u32>>,
        op: O,
    ) -> Result<(Buffer<T>, Buffer<u32>)> {
        let (values, heads) = (values.into(), heads.into());
        let plan = SegmentedReduce::new(op, values.len()).plan::<T>(self)?;
        let (results, count) = (self.alloc(values.len())?, self.alloc(1)?);
        self.run(|rec| plan.record(rec, values, heads, &results, &count))?;
        Ok((results, count))
    }

    /// The `k` largest elements of `input`, the largest first, and their positions, in new buffers: [`TopK`].
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
    ///
    /// # Errors
    /// Those of [`TopK`] and of [`Gpu::alloc`].
    pub fn top_k<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        k: usize,
    ) -> Result<(Buffer<T>, Buffer<u32>)> {
        let input = input.into();
        let plan = TopK::new(input.len(), k).plan::<T>(self)?;
        let best = (self.alloc(k)?, self.alloc(k)?);
        self.run(|rec| plan.record(rec, input, &best.0, &best.1))?;
        Ok(best)
    }

    /// `input` under a filter of odd length, with 0 outside, in a new buffer: [`Conv1d`].
    ///
    /// # Errors
    /// Those of [`Conv1d`] and of [`Gpu::alloc`].
    pub fn conv1d<'a>(&self, input: impl Into<Slice<'a, f32>>, filter: &[f32]) -> Result<Buffer<f32>> {
        let input = input.into();
        self.same_size(input, &Conv1d::new(input.len(), filter))
    }

    /// `input`, an image of `h` x `w` of `f32` or `u8`, under a filter of odd extents, with 0 outside, in a new buffer:
    /// [`Conv2d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
    /// let sums = gpu.conv2d(&x, [3, 3], [1, 3], &[1.0; 3])?;
    /// assert_eq!(sums.read()?, [3.0, 6.0, 5.0, 9.0, 15.0, 11.0, 15.0, 24.0, 17.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Conv2d`] and of [`Gpu::alloc`].
    pub fn conv2d<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        [h, w]: [usize; 2],
        shape: [usize; 2],
        filter: &[f32],
    ) -> Result<Buffer<T>> {
        self.same_size(input.into(), &Conv2d::new(h, w, shape, filter))
    }

    /// `input`, a volume of these extents, under a filter of odd extents, with 0 outside, in a new buffer: [`Conv3d`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Conv3d`] and of [`Gpu::alloc`].
    pub fn conv3d<'a>(
        &self,
        input: impl Into<Slice<'a, f32>>,
        extents: [usize; 3],
        shape: [usize; 3],
        filter: &[f32],
    ) -> Result<Buffer<f32>> {
        self.same_size(input.into(), &Conv3d::new(extents, shape, filter))
    }

    /// The brightness of the pixels of an image of 3 or 4 channels, of `u8` or `f32`, in a new buffer: [`Grey`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `rgb` has another length; those of [`Grey`] and of [`Gpu::alloc`].
    pub fn grey<'a, T: Element>(
        &self,
        rgb: impl Into<Slice<'a, T>>,
        image: impl Into<Image>,
    ) -> Result<Buffer<T>> {
        let (rgb, image) = (rgb.into(), image.into());
        let plan = Grey::new(image).plan::<T>(self)?;
        let output = self.alloc(image.h * image.w)?;
        self.run(|rec| plan.record(rec, rgb, &output))?;
        Ok(output)
    }

    /// The means of windows of `2 radius + 1` pixels a side of an image, of `u8` or `f32`, in a new buffer: [`Blur`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let rgb = gpu.upload(&[0u8, 0, 0, 90, 90, 90, 30, 30, 30])?;
    /// let grey = gpu.grey(&rgb, [1, 3, 3])?;
    /// assert_eq!(gpu.blur(&grey, [1, 3], 1)?.read()?, [45, 40, 60]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Blur`] and of [`Gpu::alloc`].
    pub fn blur<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        image: impl Into<Image>,
        radius: usize,
    ) -> Result<Buffer<T>> {
        self.same_size(input.into(), &Blur::new(image, radius))
    }

    /// An image, of `u8` or `f32`, under a bell curve of standard deviation `sigma`, in a new buffer: [`Gaussian`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Gaussian`] and of [`Gpu::alloc`].
    pub fn gaussian<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        image: impl Into<Image>,
        sigma: f64,
    ) -> Result<Buffer<T>> {
        self.same_size(input.into(), &Gaussian::new(image, sigma))
    }

    /// The size of the gradient of an image, of `u8` or `f32`, in a new buffer: [`Sobel`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Sobel`] and of [`Gpu::alloc`].
    pub fn sobel<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        image: impl Into<Image>,
    ) -> Result<Buffer<T>> {
        self.same_size(input.into(), &Sobel::new(image))
    }

    /// An image, of `u8` or `f32`, with its values spread over their whole range, in a new buffer: [`Equalize`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[100u8, 101, 102, 102])?;
    /// assert_eq!(gpu.equalize(&x, [2, 2])?.read()?, [0, 85, 255, 255]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Equalize`] and of [`Gpu::alloc`].
    pub fn equalize<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        image: impl Into<Image>,
    ) -> Result<Buffer<T>> {
        self.same_size(input.into(), &Equalize::new(image))
    }

    /// Runs an op whose output is as large as its input.
    fn same_size<T: Element, D: Op<T, Operands = (In<T>, Out<T>)>>(
        &self,
        input: Slice<'_, T>,
        op: &D,
    ) -> Result<Buffer<T>> {
        let plan = op.plan::<T>(self)?;
        let output = self.alloc(input.len())?;
        self.run(|rec| plan.record(rec, input, &output))?;
        Ok(output)
    }

    /// Submits what `record` records.
    fn run(&self, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
        let mut rec = self.recorder();
        record(&mut rec)?;
        rec.submit()
    }
}
