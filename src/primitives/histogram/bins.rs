//! The bin of a value: edges of any kind as keys that a kernel compares.

use super::{Edges, Histogram};
use crate::element::DType;

/// The way a kernel finds the bin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Shifts the value: each bin is a power of two of whole numbers wide.
    Shift,
    /// Computes a quotient, and corrects it by the table.
    Uniform,
    /// Searches the table.
    Search,
}

/// The bins as keys: u32 in the order of the elements.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::primitives) struct Rule {
    pub(super) mode: Mode,
    /// Key of the lowest value that counts.
    pub(in crate::primitives) least: u32,
    /// Distance from there to the key of the highest value that counts.
    pub(in crate::primitives) span: u32,
    /// Distance from the first edge to the lowest value that counts.
    pub(super) bias: u32,
    pub(super) shift: u32,
    pub(super) lo: f32,
    pub(super) scale: f32,
    pub(super) margin: f32,
    /// Key of the lowest value of each bin that a value can fall into. Empty for `Mode::Shift`.
    pub(in crate::primitives) table: Vec<u32>,
}

/// Returns the least and greatest whole number of a type, and the offset from a number to its key; `None` for floats.
fn whole_numbers(dtype: DType) -> Option<(i64, i64, i64)> {
    match dtype {
        DType::U8 => Some((0, 255, 0)),
        DType::I8 => Some((-128, 127, 1 << 31)),
        DType::I32 => Some((i64::from(i32::MIN), i64::from(i32::MAX), 1 << 31)),
        DType::U32 | DType::U64 => Some((0, i64::from(u32::MAX), 0)),
        DType::F32 | DType::F16 | DType::Bf16 => None,
    }
}

/// Returns the key of an f32: unsigned numbers in the order of the floats.
fn float_key(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 }
}

/// Returns the key of the lowest value that is at least `e`; 2^32, or a key above those of the type, if there is none.
fn lowest_key(e: f64, dtype: DType) -> u64 {
    match whole_numbers(dtype) {
        Some((min, max, offset)) => (e.ceil().clamp(min as f64, (max + 1) as f64) as i64 + offset) as u64,
        None => {
            let near = e as f32;
            let above = if f64::from(near) < e { near.next_up() } else { near };
            // -0 is at least 0 too.
            u64::from(float_key(if above == 0.0 { -0.0 } else { above }))
        }
    }
}

/// Returns the key of the highest value that is at most `e`, if there is one.
fn highest_key(e: f64, dtype: DType) -> Option<u32> {
    match whole_numbers(dtype) {
        Some((min, max, offset)) => {
            let below = e.floor().min(max as f64);
            (below >= min as f64).then(|| (below as i64 + offset) as u32)
        }
        None => {
            let near = e as f32;
            let below = if f64::from(near) > e { near.next_down() } else { near };
            Some(float_key(if below == 0.0 { 0.0 } else { below }))
        }
    }
}

impl Rule {
    /// Returns `None` if no value of the type lies in any bin.
    pub(in crate::primitives) fn of(desc: &Histogram, dtype: DType) -> Option<Self> {
        let bins = desc.bins;
        match &desc.edges {
            Edges::Default => Self::range(0.0, bins as f64, bins, dtype, bins as f64 - 1.0),
            Edges::Range(lo, hi) => Self::range(*lo, *hi, bins, dtype, *hi),
            Edges::List(edges) => {
                let table = edges[..bins].iter().map(|&e| lowest_key(e, dtype));
                Self::search(table, highest_key(edges[bins], dtype)?)
            }
        }
    }

    /// Creates a rule for bins that begin at these keys; `highest` is the key of the highest value that counts.
    fn search(table: impl Iterator<Item = u64>, highest: u32) -> Option<Self> {
        let table: Vec<u32> = table.take_while(|&key| key <= u64::from(highest)).map(|key| key as u32).collect();
        let least = *table.first()?;
        Some(Self {
            mode: Mode::Search,
            least,
            span: highest - least,
            bias: 0,
            shift: 0,
            lo: 0.0,
            scale: 0.0,
            margin: 0.0,
            table,
        })
    }

    /// Creates a rule for bins of equal width between `lo` and `hi`; `highest` is the highest value that counts.
    fn range(lo: f64, hi: f64, bins: usize, dtype: DType, highest: f64) -> Option<Self> {
        const EXACT: f64 = (1u64 << 53) as f64;
        // As NumPy's linspace.
        let step = (hi - lo) / bins as f64;
        let edge = move |i: usize| if i == 0 { lo } else { i as f64 * step + lo };
        let Some((min, max, offset)) = whole_numbers(dtype) else {
            return Self::floats(lo, hi, edge, bins);
        };
        let whole = lo.fract() == 0.0 && hi.fract() == 0.0 && lo.abs() <= EXACT && hi.abs() <= EXACT;
        if !whole {
            return Self::search((0..bins).map(|i| lowest_key(edge(i), dtype)), highest_key(highest, dtype)?);
        }
        let (lo, hi) = (lo as i64, hi as i64);
        let width = hi - lo;
        let (first, last) = (lo.max(min), (highest as i64).min(max));
        if first > last {
            return None;
        }
        // The lowest whole number of bin i is lo + ceil(i width / bins), exactly.
        let lowest = move |i: usize| {
            let distance = (i as i128 * i128::from(width) + bins as i128 - 1) / bins as i128;
            ((i128::from(lo) + distance).clamp(i128::from(min), i128::from(max) + 1) + i128::from(offset)) as u64
        };
        let mut rule = Self::search((0..bins).map(lowest), (last + offset) as u32)?;
        let Ok(_) = u32::try_from(last - lo) else { return Some(rule) };
        rule.bias = (first - lo) as u32;
        if width % bins as i64 == 0 && (width / bins as i64).count_ones() == 1 {
            rule.mode = Mode::Shift;
            // One bin may be 2^32 wide; the kernel takes the lower of this and the last bin.
            rule.shift = (width / bins as i64).ilog2().min(31);
            rule.table = Vec::new();
        } else if dtype.size() > 1 {
            rule.quotient(0.0, bins as f64 / width as f64, bins, 0.0);
        }
        Some(rule)
    }

    fn floats(lo: f64, hi: f64, edge: impl Fn(usize) -> f64, bins: usize) -> Option<Self> {
        let rounded = |i| f64::from(edge(i) as f32);
        let (near_lo, near_hi) = (lo as f32, hi as f32);
        let table = (0..bins).map(|i| lowest_key(rounded(i), DType::F32));
        let mut rule = Self::search(table, highest_key(f64::from(near_hi), DType::F32)?)?;
        let scale = bins as f64 / (hi - lo);
        // Outside this range the quotient might overflow or underflow.
        let sound = 1e-20..1e20;
        let largest = near_lo.abs().max(near_hi.abs());
        if sound.contains(&scale) && sound.contains(&(hi - lo)) {
            let ulp = f64::from(largest.next_up()) - f64::from(largest);
            // The first edge and the one that decides are rounded.
            rule.quotient(near_lo, scale, bins, 2.0 * ulp * scale);
        }
        Some(rule)
    }

    /// Uses a quotient if it is off by at most one bin. `rounding` is the rounding error of the edges, in bins.
    fn quotient(&mut self, lo: f32, scale: f64, bins: usize, rounding: f64) {
        // Difference, factor and product are each rounded, in any direction.
        let margin = 3.0 * 2f64.powi(-23) * bins as f64 + rounding;
        if margin < 0.7 {
            self.mode = Mode::Uniform;
            self.lo = lo;
            self.scale = scale as f32;
            self.margin = (margin * 1.01 + 1e-6) as f32;
        }
    }
}

#[cfg(test)]
mod tests;
