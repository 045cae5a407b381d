//! How keys and values are stored: their element type, and pages.

use crate::program::prelude::*;

/// The element type of stored keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Signed bytes with a scale for each row, as `Quantize` writes them by rows.
    Int8,
    /// 8-bit floats (E4M3) in unsigned bytes, with a scale for each row.
    Fp8,
}

impl KvType {
    /// Lists all types.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Int8, Self::Fp8];

    /// Returns the element type of the buffer.
    pub const fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Int8 => DType::I8,
            Self::Fp8 => DType::U8,
        }
    }

    /// Tells whether each row has a scale.
    pub const fn is_scaled(self) -> bool {
        matches!(self, Self::Int8 | Self::Fp8)
    }

    /// Returns `f32`, `f16`, `int8` or `fp8`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
            Self::Fp8 => "fp8",
        }
    }
}

/// The page layout of a cache, for [`Attention::paged`](super::Attention::paged) and [`PagePool`](super::PagePool).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Tokens in a page: 16 to 256 for a [`PagePool`](super::PagePool).
    pub tokens: usize,
    /// Pages in the cache.
    pub pages: usize,
}

impl Paging {
    /// Fails if pages have too few or too many tokens.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        let tokens = self.tokens;
        if (16..=256).contains(&tokens) {
            return Ok(());
        }
        Err(err!(InvalidArgument, "{name}: pages have {tokens} tokens; they must have 16 to 256"))
    }
}
