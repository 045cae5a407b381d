//! Rows by index, searches, vectors of BLAS level 1, vectors moved, random numbers.

use crate::gpu::{Buffer, Gpu, Slice};
use crate::primitives::{
    AdjacentDifference, Asum, Distribution, Dot, Gather, Iamax, Iamin, IsSorted, LowerBound, Merge, Nrm2, Random,
    Reverse, Rotate, Scatter, ScatterOp, SetDifference, SetIntersection, SetUnion, UpperBound,
};
use crate::program::prelude::*;

impl Gpu {
    /// Gathers rows of `width` elements, `output[i, :] = table[indices[i], :]`, into a new buffer: [`Gather`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let table = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // two rows
    /// assert_eq!(gpu.gather(&table, &gpu.upload(&[1u32, 1])?, 2)?.read()?, [3.0, 4.0, 3.0, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `table`.
    pub fn gather<'a, T: Element>(
        &self, table: impl Into<Slice<'a, T>>, indices: impl Into<Slice<'a, u32>>, width: usize,
    ) -> Result<Buffer<T>>
    where
        Gather: Op<T>,
    {
        let indices = indices.into();
        let given = [("table", table.into().untyped()), ("indices", indices.untyped())];
        let rows = |rows| Gather::new([rows, width], indices.len());
        self.call_rows::<T, _>(width, rows, &given)?.output("output")
    }

    /// Combines rows of `width` elements of `x` into rows of `into` by index, in place: [`Scatter`]. With
    /// [`ScatterOp::Set`] the last row for an index stays.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, ScatterOp};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, into) = (gpu.upload(&[1u32, 2, 3])?, gpu.upload(&[10u32, 20, 30, 40])?);
    /// gpu.scatter(ScatterOp::Add, &x, &gpu.upload(&[3u32, 0, 3])?, &into, 1)?;
    /// assert_eq!(into.read()?, [12, 20, 30, 44]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `into`, or `x` has another length
    /// than the rows of `indices`.
    pub fn scatter<'a, T: Element>(
        &self, op: ScatterOp, x: impl Into<Slice<'a, T>>, indices: impl Into<Slice<'a, u32>>,
        into: impl Into<Slice<'a, T>>, width: usize,
    ) -> Result<()>
    where
        Scatter: Op<T>,
    {
        let indices = indices.into();
        let given = [("into", into.into().untyped()), ("x", x.into().untyped()), ("indices", indices.untyped())];
        let rows = |rows| Scatter::new(op, [rows, width], indices.len());
        self.call_rows::<T, _>(width, rows, &given)?.run(&[])
    }

    /// Finds for each needle the number of elements of `sorted` below it, in a new buffer: [`LowerBound`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (sorted, needles) = (gpu.upload(&[1.0f32, 4.0, 4.0, 9.0])?, gpu.upload(&[4.0f32, 5.0])?);
    /// assert_eq!(gpu.lower_bound(&sorted, &needles)?.read()?, [1, 3]);
    /// assert_eq!(gpu.upper_bound(&sorted, &needles)?.read()?, [3, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn lower_bound<'a, T: Element>(
        &self, sorted: impl Into<Slice<'a, T>>, needles: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<u32>>
    where
        LowerBound: Op<T>,
    {
        let (sorted, needles) = (sorted.into(), needles.into());
        let given = [("sorted", sorted.untyped()), ("needles", needles.untyped())];
        self.call::<T, _>(&LowerBound::new(sorted.len(), needles.len()), &given)?.output("output")
    }

    /// Finds for each needle the number of elements of `sorted` that are at most the needle, in a new buffer:
    /// [`UpperBound`]. For an example see [`lower_bound`](Self::lower_bound).
    pub fn upper_bound<'a, T: Element>(
        &self, sorted: impl Into<Slice<'a, T>>, needles: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<u32>>
    where
        UpperBound: Op<T>,
    {
        let (sorted, needles) = (sorted.into(), needles.into());
        let given = [("sorted", sorted.untyped()), ("needles", needles.untyped())];
        self.call::<T, _>(&UpperBound::new(sorted.len(), needles.len()), &given)?.output("output")
    }

    /// Merges two sorted arrays into a new buffer: [`Merge`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[1u32, 5])?, gpu.upload(&[2u32, 5, 7])?);
    /// assert_eq!(gpu.merge(&a, &b)?.read()?, [1, 2, 5, 5, 7]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn merge<'a, T: Element>(&self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Merge: Op<T>,
    {
        let (a, b) = (a.into(), b.into());
        let given = [("a", a.untyped()), ("b", b.untyped())];
        self.call::<T, _>(&Merge::new(a.len(), b.len()), &given)?.output("output")
    }

    /// Checks whether an array is sorted, in ascending order: [`IsSorted`]. The result, 1 or 0, is in a new buffer of
    /// one u32.
    pub fn is_sorted<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>) -> Result<Buffer<u32>>
    where
        IsSorted: Op<T>,
    {
        let input = input.into();
        self.call::<T, _>(&IsSorted::new(input.len()), &[("input", input.untyped())])?.output("result")
    }

    /// Unites two sorted arrays. Returns them and their number in new buffers: [`SetUnion`].
    /// Elements of the first buffer beyond that number are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[1u32, 5])?, gpu.upload(&[2u32, 5, 7])?);
    /// let (united, count) = gpu.set_union(&a, &b)?;
    /// assert_eq!(united.slice(..count.read()?[0] as usize)?.read()?, [1, 2, 5, 7]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn set_union<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        SetUnion: Op<T>,
    {
        let (a, b) = (a.into(), b.into());
        let given = [("a", a.untyped()), ("b", b.untyped())];
        self.call::<T, _>(&SetUnion::new(a.len(), b.len()), &given)?.outputs(["output", "count"])
    }

    /// Keeps the elements that two sorted arrays share. Returns them and their number in new buffers:
    /// [`SetIntersection`].
    /// For an example see [`set_union`](Self::set_union).
    pub fn set_intersection<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        SetIntersection: Op<T>,
    {
        let (a, b) = (a.into(), b.into());
        let given = [("a", a.untyped()), ("b", b.untyped())];
        self.call::<T, _>(&SetIntersection::new(a.len(), b.len()), &given)?.outputs(["output", "count"])
    }

    /// Keeps the elements of a sorted array `a` that `b` lacks. Returns them and their number in new
    /// buffers: [`SetDifference`].
    /// For an example see [`set_union`](Self::set_union).
    pub fn set_difference<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>,
    ) -> Result<(Buffer<T>, Buffer<u32>)>
    where
        SetDifference: Op<T>,
    {
        let (a, b) = (a.into(), b.into());
        let given = [("a", a.untyped()), ("b", b.untyped())];
        self.call::<T, _>(&SetDifference::new(a.len(), b.len()), &given)?.outputs(["output", "count"])
    }

    /// Multiplies two vectors to a scalar, in a new buffer of one element: [`Dot`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[3.0f32, -4.0])?, gpu.upload(&[2.0f32, 1.0])?);
    /// assert_eq!(gpu.dot(&x, &y)?.read()?, [2.0]);
    /// assert_eq!((gpu.nrm2(&x)?.read()?, gpu.asum(&x)?.read()?), (vec![5.0], vec![7.0]));
    /// assert_eq!(gpu.iamax(&x)?.read()?, [1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn dot<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, y: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Dot: Op<T>,
    {
        let x = x.into();
        let given = [("x", x.untyped()), ("y", y.into().untyped())];
        self.call::<T, _>(&Dot::new(x.len()), &given)?.output("result")
    }

    /// Computes the Euclidean norm of a vector, in a new buffer of one element: [`Nrm2`]. For an example see
    /// [`dot`](Self::dot).
    pub fn nrm2<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Nrm2: Op<T>,
    {
        let x = x.into();
        self.call::<T, _>(&Nrm2::new(x.len()), &[("x", x.untyped())])?.output("result")
    }

    /// Sums the magnitudes of a vector, in a new buffer of one element: [`Asum`]. For an example see
    /// [`dot`](Self::dot).
    pub fn asum<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Asum: Op<T>,
    {
        let x = x.into();
        self.call::<T, _>(&Asum::new(x.len()), &[("x", x.untyped())])?.output("result")
    }

    /// Finds the first position of the largest magnitude of a vector, from 0, in a new buffer of one element:
    /// [`Iamax`]. For an example see [`dot`](Self::dot).
    pub fn iamax<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>) -> Result<Buffer<u32>>
    where
        Iamax: Op<T>,
    {
        let x = x.into();
        self.call::<T, _>(&Iamax::new(x.len()), &[("x", x.untyped())])?.output("result")
    }

    /// As [`iamax`](Self::iamax), the smallest magnitude: [`Iamin`].
    pub fn iamin<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>) -> Result<Buffer<u32>>
    where
        Iamin: Op<T>,
    {
        let x = x.into();
        self.call::<T, _>(&Iamin::new(x.len()), &[("x", x.untyped())])?.output("result")
    }

    /// Subtracts from each element the one before, into a new buffer; the first stays: [`AdjacentDifference`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1i32, 4, 2])?;
    /// assert_eq!(gpu.adjacent_difference(&x)?.read()?, [1, 3, -2]);
    /// assert_eq!(gpu.reverse(&x)?.read()?, [2, 4, 1]);
    /// assert_eq!(gpu.rotate(&x, 1)?.read()?, [4, 2, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn adjacent_difference<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        AdjacentDifference: Op<T>,
    {
        let input = input.into();
        let op = AdjacentDifference::new(input.len());
        self.call::<T, _>(&op, &[("input", input.untyped())])?.output("output")
    }

    /// Reverses a vector, into a new buffer: [`Reverse`]. For an example see
    /// [`adjacent_difference`](Self::adjacent_difference).
    pub fn reverse<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Reverse: Op<T>,
    {
        let input = input.into();
        self.call::<T, _>(&Reverse::new(input.len()), &[("input", input.untyped())])?.output("output")
    }

    /// Rotates a vector to the left by a number of places, into a new buffer: [`Rotate`]. For an example see
    /// [`adjacent_difference`](Self::adjacent_difference).
    pub fn rotate<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, by: i64) -> Result<Buffer<T>>
    where
        Rotate: Op<T>,
    {
        let input = input.into();
        self.call::<T, _>(&Rotate::new(input.len(), by), &[("input", input.untyped())])?.output("output")
    }

    /// Makes `n` random numbers of a distribution and a seed, of the distribution's type, in a new buffer: [`Random`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Distribution, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let flips = gpu.random::<u32>(Distribution::Bernoulli { p: 0.5 }, 100, 1)?.read()?;
    /// assert!((20..80).contains(&flips.iter().sum::<u32>()));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn random<T: Element>(&self, distribution: Distribution, n: usize, seed: u64) -> Result<Buffer<T>> {
        self.call::<T, _>(&Random::new(distribution, n).seed(seed), &[])?.output("output")
    }
}
