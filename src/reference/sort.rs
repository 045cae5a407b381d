use super::prelude::*;
use std::ops::Range;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (settings, bits) = (settings(call)?, bits_asked(call)?);
    by_input!(call, 0, [f32, i32, u32, f16, u8, i8], T => {
        let keys = input::<T>(call, 0)?;
        let there = there(call, keys.len())?;
        let places = sort_positions(&keys[..there], settings.has("descending"), bits);
        let mut all = vec![moved(call, keys, &places)?];
        if call.inputs().count() > 1 + usize::from(settings.array("length").is_some()) {
            all.push(moved_values(call, 1, &places)?);
        }
        Ok(all)
    })
}

/// Returns the bits that the option `bits` names, or all.
pub(super) fn bits_asked(call: &OpCall) -> Result<Range<u32>> {
    let settings = settings(call)?;
    let [begin, end] = if settings.has("bits") { settings.numbers("bits", "BEGIN,END")? } else { [0, 32] };
    if begin > end || end > 32 {
        return Err(err!(InvalidArgument, "reference sort: bits {begin} to {end} are outside the keys"));
    }
    Ok(begin..end)
}

/// Returns the wanted values: those of input `at`, words or rows of them, at these places.
pub(super) fn moved_values(call: &OpCall, at: usize, places: &[usize]) -> Result<Wanted> {
    let shape = output_shape(call, 1);
    let words: usize = shape.iter().skip(1).product();
    by_input!(call, at, [f32, i32, u32], V => {
        let values = input::<V>(call, at)?;
        if shape.len() < 2 {
            return moved(call, values, places);
        }
        let rows: Vec<&[V]> = places.iter().map(|&i| &values[i * words..(i + 1) * words]).collect();
        Wanted::exact(&shape, rows.concat())
    })
}

/// Returns the wanted contents of an operand whose first elements come from `places`. In place, the others stay.
fn moved<T: Element>(call: &OpCall, x: &[T], places: &[usize]) -> Result<Wanted>
where
    HostData: From<Vec<T>>,
{
    let behind = if settings(call)?.has("in-place") { &x[places.len()..] } else { &[] };
    let all: Vec<T> = places.iter().map(|&i| x[i]).chain(behind.iter().copied()).collect();
    Wanted::exact(&[all.len()], all)
}

/// Returns the positions of the keys in sorted order. Keys that agree in
/// `bits` of their numbers keep their order. The number of a key is its place in the order of its type, from
/// 0 on; every NaN has the largest number, ascending and descending.
///
/// Elements of bf16 all have the number 0.
pub fn sort_positions<T: Element>(keys: &[T], descending: bool, bits: Range<u32>) -> Vec<usize> {
    let width = bits.end - bits.start;
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    // A shift by all bits is left to an empty mask.
    let digits = |key: &T| (number(*key, descending) >> bits.start.min(63)) & mask;
    let mut positions: Vec<usize> = (0..keys.len()).collect();
    positions.sort_by_key(|&i| digits(&keys[i]));
    positions
}

/// The unsigned number that stands for a key.
pub(super) fn number<T: Element>(key: T, descending: bool) -> u64 {
    let bytes = bytemuck::bytes_of(&key);
    let word = |at: usize| u64::from(u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let short = || u64::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let half = 1 << 31;
    let all = u64::from(u32::MAX);
    let (ascending, last) = match T::DTYPE {
        DType::U32 => (word(0), all),
        DType::I32 => (word(0) ^ half, all),
        DType::F32 if f32::from_bits(word(0) as u32).is_nan() => return all,
        // Positive floats have ordered bits; those of negative ones are ordered the other way.
        DType::F32 => (if word(0) < half { word(0) + half } else { all - word(0) }, all),
        DType::F16 if f16::from_bits(short() as u16).is_nan() => return 0xffff,
        DType::F16 => (if short() < 0x8000 { short() + 0x8000 } else { 0xffff - short() }, 0xffff),
        DType::U8 => (u64::from(bytes[0]), 0xff),
        DType::I8 => (u64::from(bytes[0] ^ 0x80), 0xff),
        DType::U64 => (bytemuck::pod_read_unaligned(bytes), u64::MAX),
        _ => return 0,
    };
    if descending { last - ascending } else { ascending }
}

#[cfg(test)]
#[path = "tests/sort.rs"]
mod tests;
