mod fp8;

pub use fp8::{fp8_code, fp8_value};

use half::{bf16, f16};
use std::fmt;

/// Element type of a buffer, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float; two in a 32-bit word.
    F16,
    /// 16-bit float with the exponent of `F32`; on CUDA only, since WGSL has none.
    Bf16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned byte; four in a 32-bit word.
    U8,
    /// Signed byte; four in a 32-bit word.
    I8,
    /// Unsigned 64-bit integer, where the device has it.
    U64,
}

impl DType {
    /// Returns the bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::Bf16 => 2,
            DType::U8 | DType::I8 => 1,
        }
    }

    /// Returns Rust's name, which is close to NumPy's: `f32`, `f16`, `i32`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::U64 => "u64",
        }
    }

    /// Returns whether the type is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::Bf16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that a [`Buffer`](crate::Buffer) can hold.
///
/// Implemented for `f32`, [`half::f16`], `i32`, `u32`, `u8`, `i8` and `u64`, and for [`half::bf16`], which CUDA has and
/// WGSL has not. Rust's own `f16` is unstable: add `half = "2"` to your dependencies.
pub trait Element: bytemuck::Pod + Default + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed {
    /// The type as a value.
    const DTYPE: DType;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
        }
    )*};
}
element!(f32 => F32, f16 => F16, bf16 => Bf16, i32 => I32, u32 => U32, u8 => U8, i8 => I8, u64 => U64);
