use super::class::operation;
use crate::program::prelude::*;

/// Returns the allowed difference between variants, as a share of the largest result. Variants sum in different orders,
/// and some use other formulas.
fn share(program: &Program, operand: &Operand) -> f64 {
    let outputs: usize = written(program).map(|o| o.len).sum();
    let per_output = program.cost.flop / outputs.max(1) as f64;
    // A prefix costs one operation and sums everything before it.
    let prefixes = comparison(program) == Some(Comparison::Prefixes);
    let longest = if prefixes { operand.len as f64 } else { per_output };
    let terms = longest.max(256.0);
    // Rounding errors have random signs, so they grow as the root. The factor 16 covers algorithms such as
    // Winograd's.
    let sums = 16.0 * f64::from(f32::EPSILON) * (1.0 + terms.sqrt());
    let rounding = if operand.dtype == DType::F16 { 32.0 * f16::EPSILON.to_f64() } else { 0.0 };
    sums + rounding
}

fn written(program: &Program) -> impl Iterator<Item = &Operand> {
    program.operands.iter().filter(|o| o.access != Access::Read)
}

/// Returns the allowed difference between integers.
fn steps(program: &Program, dtype: DType) -> f64 {
    let rounded = comparison(program) == Some(Comparison::RoundedBytes);
    if rounded && dtype == DType::U8 { 1.0 } else { 0.0 }
}

fn comparison(program: &Program) -> Option<Comparison> {
    operation(program)?.comparison
}

/// Describes the first element that differs from the expected one. `term` is the largest term of sums that cancel.
pub(super) fn difference(program: &Program, term: f64, want: &[Vec<u32>], got: &[Vec<u32>]) -> Option<String> {
    written(program).zip(want.iter().zip(got)).find_map(|(operand, (want, got))| {
        let apart = if operand.dtype.is_float() {
            floats_apart(program, operand, term, want, got)
        } else {
            let bound = steps(program, operand.dtype);
            let apart = |i: &usize| !near(value(operand.dtype, want, *i), value(operand.dtype, got, *i), bound);
            (0..operand.len).find(apart)
        };
        apart.map(|i| {
            let (want, got) = (value(operand.dtype, want, i), value(operand.dtype, got, i));
            format!("element {i} of {} is {got}, not {want}", operand.name)
        })
    })
}

fn near(want: f64, got: f64, bound: f64) -> bool {
    want == got || (want - got).abs() <= bound || want.is_nan() && got.is_nan()
}

fn floats_apart(program: &Program, operand: &Operand, term: f64, want: &[u32], got: &[u32]) -> Option<usize> {
    let values = |words| (0..operand.len).map(move |i| value(operand.dtype, words, i));
    let mut largest = largest(operand, want).max(term);
    if operand.len < 64 {
        // A few sums of large terms may all be small by chance.
        let inputs = program.operands.iter().filter(|o| o.access != Access::Write).map(|o| o.len).max();
        largest = largest.max((inputs.unwrap_or(0) as f64).sqrt());
    }
    let bound = largest * share(program, operand);
    values(want).zip(values(got)).position(|(want, got)| !near(want, got, bound))
}

pub(super) fn largest(operand: &Operand, words: &[u32]) -> f64 {
    let values = (0..operand.len).map(|i| value(operand.dtype, words, i).abs());
    values.filter(|x| x.is_finite()).fold(0.0, f64::max)
}

fn value(dtype: DType, words: &[u32], i: usize) -> f64 {
    let half = |i: usize| (words[i / 2] >> (16 * (i % 2))) as u16;
    let byte = |i: usize| (words[i / 4] >> (8 * (i % 4))) as u8;
    match dtype {
        DType::F32 => f32::from_bits(words[i]).into(),
        DType::F16 => f16::from_bits(half(i)).to_f64(),
        DType::Bf16 => half::bf16::from_bits(half(i)).to_f64(),
        DType::I32 => (words[i] as i32).into(),
        DType::U32 => words[i].into(),
        // Integers are only compared for equality.
        DType::U64 => (u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32) as f64,
        DType::U8 => byte(i).into(),
        DType::I8 => (byte(i) as i8).into(),
    }
}

#[cfg(test)]
#[cfg(feature = "default")] // what it tests is of several features
mod tests;
