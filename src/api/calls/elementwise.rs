use crate::elementwise::{Axpy, Broadcast, Map, MapFn, Transform, Zip, ZipFn};
use crate::gpu::{Buffer, Gpu, RawSlice, Slice};
use crate::program::prelude::*;

impl Gpu {
    /// Applies `function` to every element of `x`, into a new buffer: [`Map`].
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
    pub fn map<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, function: MapFn) -> Result<Buffer<T>> {
        let x = x.into();
        self.call::<T, _>(&Map::new(function, x.len()), &[("x", x.untyped())])?.output("y")
    }

    /// Applies `function` to every pair of elements of `x` and `y`, into a new buffer: [`Zip`].
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
    pub fn zip<'a, T: Element>(
        &self, x: impl Into<Slice<'a, T>>, y: impl Into<Slice<'a, T>>, function: ZipFn,
    ) -> Result<Buffer<T>> {
        let (x, y) = (x.into(), y.into());
        let op = Zip::new(function, x.len());
        self.call::<T, _>(&op, &[("x", x.untyped()), ("y", y.untyped())])?.output("z")
    }

    /// Computes `y = alpha x + y` in place: [`Axpy`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[0.5f32; 3])?);
    /// gpu.axpy(2.0, &x, &y)?;
    /// assert_eq!(y.read()?, [2.5, 4.5, 6.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn axpy<'a, T: Element>(
        &self, alpha: f64, x: impl Into<Slice<'a, T>>, y: impl Into<Slice<'a, T>>,
    ) -> Result<()> {
        let (x, y) = (x.into(), y.into());
        let op = Axpy::new(x.len(), alpha);
        self.call::<T, _>(&op, &[("x", x.untyped()), ("y", y.untyped())])?.run(&[])
    }

    /// Applies a function to up to four operands of any types, into a new buffer: [`Transform`], without operands of
    /// its own. Each operand has as many elements as the output, as its rows or columns, or one; its length says how it
    /// repeats. Where rows and columns are equally many, it is a row.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, limit) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.upload(&[2.5f32])?);
    /// let less = Transform::new([2, 2], TransformFn::Less);
    /// let flags = gpu.transform::<u8>(less, &[Slice::from(&x).untyped(), Slice::from(&limit).untyped()])?;
    /// assert_eq!(flags.read()?, [1, 1, 0, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if a length does not fit the output.
    pub fn transform<T: Element>(&self, mut op: Transform, inputs: &[RawSlice<'_>]) -> Result<Buffer<T>>
    where
        Transform: Op<T>,
    {
        let (_, [rows, columns], _) = op.parts();
        let mut given = Vec::with_capacity(inputs.len());
        for (at, input) in inputs.iter().enumerate() {
            let broadcast = match input.len() {
                len if rows.checked_mul(columns) == Some(len) => Broadcast::Each,
                len if len == columns => Broadcast::Row,
                len if len == rows => Broadcast::Column,
                1 => Broadcast::Scalar,
                len => {
                    return Err(err!(
                        Shape,
                        "transform: operand {at} has {len} elements; an output of {rows} x {columns} takes {columns} \
                         for a row, {rows} for a column, 1, or all"
                    ));
                }
            };
            op = op.input(input.dtype(), broadcast);
            // More than four are an error of the op.
            given.extend(["a", "b", "c", "d"].get(at).map(|name| (*name, *input)));
        }
        self.call::<T, _>(&op, &given)?.output("output")
    }
}
