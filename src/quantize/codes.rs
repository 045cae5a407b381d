//! What elements are quantised to, and by which scales.

use crate::element::Element;
use crate::error::{Result, err};
use crate::program::Setting;
use crate::shader::Fragment;
use crate::shape::elements;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i8 {}
    impl Sealed for u8 {}
}

/// A byte that stands for a number: `i8` for itself, `u8` for a float of 8 bits, E4M3.
///
/// E4M3 has a sign, 4 bits of exponent, 3 of fraction and no infinities (Micikevicius et al., *FP8 formats for deep
/// learning*, 2022): [`reference::fp8_value`](crate::reference::fp8_value) says what each code is.
pub trait Code: Element + sealed::Sealed {
    /// Name, as on the command line of the `op` example.
    const NAME: &'static str;
    /// The largest number that there is a code for: 127 or 448.
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

/// The codes by their names.
pub(super) const KIND: Setting = Setting::word("kind", || vec![<i8 as Code>::NAME, <u8 as Code>::NAME]);

/// The fragment that packs and unpacks these codes.
pub(super) fn fragment<Q: Code>() -> Fragment {
    Fragment::Library(if Q::NAME == "fp8" { "quantize/codes_fp8" } else { "quantize/codes_int8" })
}

/// What elements have a scale in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scales {
    /// Those of a row: `rows` scales.
    #[default]
    Row,
    /// All: one scale.
    Tensor,
    /// So many that follow each other in a row, 32 to 128, a divisor of its length: `rows * n / group` scales.
    Group(usize),
}

/// A matrix with its scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) op: &'static str,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) scales: Scales,
}

impl Spans {
    /// Elements, checked.
    pub(super) fn len(&self) -> Result<usize> {
        let Self { op, rows, n, .. } = *self;
        let len = elements(op, "x", &[rows, n])?;
        match self.scales {
            Scales::Group(group) if !(32..=128).contains(&group) || !n.is_multiple_of(group) => Err(err!(
                InvalidArgument,
                "{op}: groups of {group} in rows of {n}; a group has 32 to 128 elements and divides the row; take such, \
                 or Scales::Row"
            )),
            _ => Ok(len),
        }
    }

    /// Spans that have a scale each, and elements of one.
    pub(super) fn spans(&self) -> [usize; 2] {
        match self.scales {
            Scales::Row => [self.rows, self.n],
            Scales::Tensor => [1, self.rows.saturating_mul(self.n)],
            Scales::Group(group) => [self.rows.saturating_mul(self.n.checked_div(group).unwrap_or(0)), group],
        }
    }

    /// Whether four elements that lie in a word always have one scale.
    pub(super) fn shared(&self) -> bool {
        self.scales == Scales::Tensor || self.spans()[1].is_multiple_of(4)
    }
}
