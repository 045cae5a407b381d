//! The codes that elements are quantised to, and their scales.

use crate::program::prelude::*;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i8 {}
    impl Sealed for u8 {}
}

/// A byte that encodes a number: `i8` as itself, `u8` as a float of 8 bits, E4M3.
///
/// E4M3 has a sign, 4 bits of exponent, 3 of fraction and no infinities (Micikevicius et al., *FP8 formats for deep
/// learning*, 2022). [`reference::fp8_value`](crate::reference::fp8_value) decodes it.
pub trait Code: Element + sealed::Sealed {
    /// The name, as on the command line of the `op` example.
    const NAME: &'static str;
    /// The largest number with a code: 127 or 448.
    const LARGEST: f32;
}

impl Code for i8 {
    const NAME: &'static str = "int8";
    const LARGEST: f32 = 127.0;
}

impl Code for u8 {
    const NAME: &'static str = "fp8";
    const LARGEST: f32 = 448.0;
}

pub(super) const KIND: Setting = Setting::word("kind", || vec![<i8 as Code>::NAME, <u8 as Code>::NAME]);

pub(super) fn fragment<Q: Code>() -> Fragment {
    Fragment::Library(if Q::NAME == "fp8" { "quantize/codes_fp8" } else { "quantize/codes_int8" })
}

/// The elements that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scales {
    /// Each row has a scale: `rows` scales.
    #[default]
    Row,
    /// The whole matrix has one scale.
    Tensor,
    /// Each group of consecutive elements of a row has a scale: `rows * n / group` scales. A group has 32 to 128
    /// elements and divides the row.
    Group(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) op: &'static str,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) scales: Scales,
}

impl Spans {
    /// Counts the elements, checked.
    pub(super) fn len(&self) -> Result<usize> {
        let Self { op, rows, n, .. } = *self;
        let len = elements(op, "x", &[rows, n])?;
        match self.scales {
            Scales::Group(group) if !(32..=128).contains(&group) || !n.is_multiple_of(group) => Err(err!(
                InvalidArgument,
                "{op}: groups of {group} in rows of {n}; a group needs 32 to 128 elements and must divide the row; \
                 change the group, or take Scales::Row"
            )),
            _ => Ok(len),
        }
    }

    /// Counts the scales, and the elements of each.
    pub(super) fn spans(&self) -> [usize; 2] {
        match self.scales {
            Scales::Row => [self.rows, self.n],
            Scales::Tensor => [1, self.rows.saturating_mul(self.n)],
            Scales::Group(group) => [self.rows.saturating_mul(self.n.checked_div(group).unwrap_or(0)), group],
        }
    }

    /// Says if the four elements of a word always share a scale.
    pub(super) fn shared(&self) -> bool {
        self.scales == Scales::Tensor || self.spans()[1].is_multiple_of(4)
    }
}
