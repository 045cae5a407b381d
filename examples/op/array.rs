//! Arrays on the host and on the device, whose element type is known only when they are read.

use super::failure::Failure;
use half::f16;
use tilework::gpu::RawSlice;
use tilework::{Buffer, DType, Element, Gpu, Slice};

/// Elements in C order.
#[derive(Clone)]
pub(crate) enum Data {
    F32(Vec<f32>),
    F16(Vec<f16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    U8(Vec<u8>),
    I8(Vec<i8>),
}

/// An array: a shape, which is empty for a scalar, and as many elements as it says.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data,
}

/// `refuse!("...", ..)`: a [`Failure`] for bad input.
macro_rules! refuse {
    ($($arg:tt)*) => { Failure::bad_input(format!($($arg)*)) };
}
pub(crate) use refuse;

/// `$body` with `$v` bound to the vector.
macro_rules! with_data {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::F32($v) => $body,
            Data::F16($v) => $body,
            Data::I32($v) => $body,
            Data::U32($v) => $body,
            Data::U8($v) => $body,
            Data::I8($v) => $body,
        }
    };
}
pub(crate) use with_data;

/// `$function::<T>($arguments)` with the element type of the data.
macro_rules! with_type {
    ($data:expr, $function:ident($($argument:expr),*)) => {
        match $data {
            Data::F32(_) => $function::<f32>($($argument),*),
            Data::F16(_) => $function::<half::f16>($($argument),*),
            Data::I32(_) => $function::<i32>($($argument),*),
            Data::U32(_) => $function::<u32>($($argument),*),
            Data::U8(_) => $function::<u8>($($argument),*),
            Data::I8(_) => $function::<i8>($($argument),*),
        }
    };
}
pub(crate) use with_type;

macro_rules! from_vec {
    ($($t:ty => $kind:ident),*) => {$(
        impl From<Vec<$t>> for Data {
            fn from(v: Vec<$t>) -> Self {
                Data::$kind(v)
            }
        }
    )*};
}
from_vec!(f32 => F32, f16 => F16, i32 => I32, u32 => U32, u8 => U8, i8 => I8);

impl Data {
    pub(crate) fn len(&self) -> usize {
        with_data!(self, v => v.len())
    }

    /// The first so many elements.
    pub(crate) fn front(mut self, count: usize) -> Self {
        with_data!(&mut self, v => v.truncate(count));
        self
    }

    /// The first element of a `u32` array, as a count.
    pub(crate) fn first_count(&self) -> usize {
        match self {
            Data::U32(v) => v.first().map_or(0, |n| *n as usize),
            _ => 0,
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        const fn of<T: Element>() -> DType {
            T::DTYPE
        }
        with_type!(self, of())
    }
}

impl Array {
    /// Shape and type, as NumPy writes them.
    pub(crate) fn describe(&self) -> String {
        format!("{} of {}", shape_text(&self.shape), self.data.dtype())
    }

    /// The extents, if there are `N` of them.
    pub(crate) fn dims<const N: usize>(&self, operand: &str) -> Result<[usize; N], Failure> {
        <[usize; N]>::try_from(self.shape.as_slice()).map_err(|_| {
            refuse!(
                "{operand} is {}; it must have {N} dimension{}",
                self.describe(),
                if N == 1 { "" } else { "s" }
            )
        })
    }
}

/// `(3, 4)`, `(3,)`, `()`.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A device buffer of any element type.
pub(crate) trait DeviceArray {
    fn raw(&self) -> RawSlice<'_>;
    fn read(&self) -> tilework::Result<Data>;
}

impl<T: Element> DeviceArray for Buffer<T>
where
    Data: From<Vec<T>>,
{
    fn raw(&self) -> RawSlice<'_> {
        Slice::from(self).untyped()
    }

    fn read(&self) -> tilework::Result<Data> {
        Ok(Buffer::read(self)?.into())
    }
}

pub(crate) fn upload(gpu: &Gpu, data: &Data) -> tilework::Result<Box<dyn DeviceArray>> {
    with_data!(data, v => Ok(Box::new(gpu.upload(v)?)))
}

pub(crate) fn alloc(gpu: &Gpu, dtype: DType, n: usize) -> Result<Box<dyn DeviceArray>, Failure> {
    Ok(match dtype {
        DType::F32 => Box::new(gpu.alloc::<f32>(n)?),
        DType::F16 => Box::new(gpu.alloc::<f16>(n)?),
        DType::I32 => Box::new(gpu.alloc::<i32>(n)?),
        DType::U32 => Box::new(gpu.alloc::<u32>(n)?),
        DType::U8 => Box::new(gpu.alloc::<u8>(n)?),
        DType::I8 => Box::new(gpu.alloc::<i8>(n)?),
        other => return Err(refuse!("arrays of {other} are not written to files yet")),
    })
}
