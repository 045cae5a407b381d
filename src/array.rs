//! Arrays on the host whose element type is known only when the program runs.

use crate::element::{DType, Element};
use crate::error::{Result, err};
use half::f16;
use std::borrow::Cow;

/// The elements of a [`HostArray`], of any type that a file or the command line can hold.
#[derive(Debug, Clone, PartialEq)]
pub enum HostData {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 16-bit floats.
    F16(Vec<f16>),
    /// Signed words.
    I32(Vec<i32>),
    /// Unsigned words.
    U32(Vec<u32>),
    /// Unsigned bytes.
    U8(Vec<u8>),
    /// Signed bytes.
    I8(Vec<i8>),
    /// No elements, only their type and number: enough to plan with.
    Unseen(DType, usize),
}

/// An array in C order: a shape, which is empty for a scalar, and its elements.
///
/// ```
/// use tilework::HostArray;
/// let x = HostArray::new(&[2, 3], vec![1.0f32; 6])?;
/// assert_eq!(x.to_string(), "(2, 3) of f32");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HostArray {
    shape: Vec<usize>,
    data: HostData,
}

/// `$body` with `$v` bound to the vector, or `$unseen` where there is none.
macro_rules! with_data {
    ($data:expr, $v:ident => $body:expr, $($unseen:pat => $other:expr)?) => {
        match $data {
            $crate::array::HostData::F32($v) => $body,
            $crate::array::HostData::F16($v) => $body,
            $crate::array::HostData::I32($v) => $body,
            $crate::array::HostData::U32($v) => $body,
            $crate::array::HostData::U8($v) => $body,
            $crate::array::HostData::I8($v) => $body,
            $($unseen => $other,)?
        }
    };
}
pub(crate) use with_data;

macro_rules! from_vec {
    ($($t:ty => $kind:ident),*) => {$(
        impl From<Vec<$t>> for HostData {
            fn from(v: Vec<$t>) -> Self {
                Self::$kind(v)
            }
        }
    )*};
}
from_vec!(f32 => F32, f16 => F16, i32 => I32, u32 => U32, u8 => U8, i8 => I8);

impl HostData {
    /// All element types.
    pub const TYPES: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

    /// Creates `n` zeros.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a type that is not among [`TYPES`](Self::TYPES);
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn zeros(dtype: DType, n: usize) -> Result<Self> {
        fn of<T: Element>(n: usize) -> Result<HostData>
        where
            HostData: From<Vec<T>>,
        {
            // Memory that is zero already is not touched.
            let zeros = bytemuck::allocation::try_zeroed_vec::<T>(n);
            let no_room = |()| err!(OutOfMemory, "an array on the host: no memory for {n} elements of {}", T::DTYPE);
            Ok(zeros.map_err(no_room)?.into())
        }
        match dtype {
            DType::F32 => of::<f32>(n),
            DType::F16 => of::<f16>(n),
            DType::I32 => of::<i32>(n),
            DType::U32 => of::<u32>(n),
            DType::U8 => of::<u8>(n),
            DType::I8 => of::<i8>(n),
            other => Err(err!(Unsupported, "an array on the host: no elements of {other}")),
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        with_data!(self, v => v.len(), Self::Unseen(_, n) => *n)
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        fn of<T: Element>(_: &[T]) -> DType {
            T::DTYPE
        }
        with_data!(self, v => of(v), Self::Unseen(dtype, _) => *dtype)
    }

    /// Returns whether the array holds its elements; one of [`HostArray::unseen`] knows only their type and number.
    pub fn is_seen(&self) -> bool {
        !matches!(self, Self::Unseen(..))
    }

    /// Returns the first `count` elements.
    #[must_use]
    pub fn front(mut self, count: usize) -> Self {
        with_data!(&mut self, v => v.truncate(count), Self::Unseen(_, n) => *n = count.min(*n));
        self
    }

    /// Returns the bytes of the elements; none if the contents are unseen.
    pub fn bytes(&self) -> &[u8] {
        with_data!(self, v => bytemuck::cast_slice(v), Self::Unseen(..) => &[])
    }

    /// Returns the elements, if they are of type `T` and seen.
    pub fn slice<T: Element>(&self) -> Option<&[T]> {
        (self.dtype() == T::DTYPE && self.is_seen()).then(|| bytemuck::cast_slice(self.bytes()))
    }

    /// Returns the elements as f64, which holds all of them exactly; none if the contents are unseen.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
            Self::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::U32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::U8(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::I8(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::Unseen(..) => Vec::new(),
        }
    }

    /// Returns the elements rounded to f32; without a copy where they are of that type.
    pub fn to_f32(&self) -> Cow<'_, [f32]> {
        match self {
            Self::F32(v) => Cow::Borrowed(v),
            other => Cow::Owned(other.to_f64().into_iter().map(|x| x as f32).collect()),
        }
    }
}

impl HostArray {
    /// Creates an array of this shape.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the shape has another number of elements.
    pub fn new(shape: &[usize], data: impl Into<HostData>) -> Result<Self> {
        let data = data.into();
        let n = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        if n != Some(data.len()) {
            return Err(err!(
                Shape,
                "an array of the shape {} has {} elements; give as many as the shape says",
                shape_text(shape),
                data.len()
            ));
        }
        Ok(Self { shape: shape.to_vec(), data })
    }

    /// Creates zeros of this shape.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if their number cannot be counted; those of [`HostData::zeros`].
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Self> {
        Ok(Self { shape: shape.to_vec(), data: HostData::zeros(dtype, counted(shape)?)? })
    }

    /// Creates an array without elements, to plan with: its shape and type are all that planning needs.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if its elements cannot be counted.
    pub fn unseen(shape: &[usize], dtype: DType) -> Result<Self> {
        Ok(Self { shape: shape.to_vec(), data: HostData::Unseen(dtype, counted(shape)?) })
    }

    /// Returns the extents of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements.
    pub fn data(&self) -> &HostData {
        &self.data
    }

    /// Returns the elements, and drops the shape.
    pub fn into_data(self) -> HostData {
        self.data
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

/// Shape and type, as NumPy writes them.
impl std::fmt::Display for HostArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", shape_text(&self.shape), self.dtype())
    }
}

fn counted(shape: &[usize]) -> Result<usize> {
    let n = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
    n.ok_or_else(|| err!(TooLarge, "an array of the shape {}: too many elements to count", shape_text(shape)))
}

/// Returns a shape as NumPy writes it: `(3, 4)`, `(3,)`, `()`.
pub fn shape_text(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
