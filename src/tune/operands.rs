//! The operands that variants run on while they are compared: made up, or the caller's.

use super::check::largest;
use super::class::operation;
use crate::gpu::{Buffer, Executable, Gpu, RawSlice, Recorder};
use crate::program::prelude::*;

/// Whether a program's operands can be made up and the results of its variants compared.
pub(super) fn can_make(program: &Program) -> bool {
    let made = |operation: &Operation| {
        let read = program.operands.iter().filter(|operand| operand.access != Access::Write);
        read.into_iter().all(|operand| operation.domain(operand.name) != Domain::Meaningful)
    };
    operation(program).is_some_and(|operation| operation.comparison.is_some() && made(operation))
}

/// Bits that no result has by chance: NaN as a float, and a large integer.
const UNWRITTEN: u32 = 0x7fc1_7fc1;

struct One<'a> {
    operand: Operand,
    memory: OperandMemory<'a>,
    /// Initial contents of an operand that is read and written.
    first: Option<Buffer<u32>>,
}

enum OperandMemory<'a> {
    Own(Buffer<u32>),
    Callers(RawSlice<'a>),
}

/// All operands of an op. The caller's are only read.
pub(super) struct Operands<'a> {
    gpu: &'a Gpu,
    all: Vec<One<'a>>,
    /// Whether values that a run leaves behind change the time of the next.
    restored: bool,
    /// The largest product of the caller's numbers; 0 for made-up ones.
    pub(super) term: f64,
}

impl<'a> Operands<'a> {
    pub(super) fn make(gpu: &'a Gpu, program: &Program) -> Result<Self> {
        if !can_make(program) {
            return Err(err!(
                Unsupported,
                "tune: operands of {} cannot be made up; pass your own to tune_with",
                program.op
            ));
        }
        let operation = operation(program);
        let length_of = |name| program.operands.iter().find(|o| o.name == name).map(|o| o.len as u32);
        let make = |(i, operand): (usize, &Operand)| {
            let below = match operation.map(|operation| operation.domain(operand.name)) {
                Some(Domain::BelowLengthOf(name)) => length_of(name),
                _ => None,
            };
            let words =
                || -> Result<Buffer<u32>> { gpu.upload(&numbers(operand.dtype, operand.len, below, i as u64)?) };
            Ok(match operand.access {
                Access::Read => One { operand: operand.clone(), memory: OperandMemory::Own(words()?), first: None },
                Access::Write => written(gpu, operand, None)?,
                Access::ReadWrite => written(gpu, operand, Some(words()?))?,
            })
        };
        let all = program.operands.iter().enumerate().map(make).collect::<Result<_>>()?;
        Ok(Self { gpu, all, restored: operation.is_some_and(|operation| operation.settles), term: 0.0 })
    }

    /// Takes the caller's operands, with memory of our own for results.
    pub(super) fn given(gpu: &'a Gpu, program: &Program, given: &[RawSlice<'a>]) -> Result<Self> {
        Operand::check_count(program.op, given.len(), &program.operands)?;
        let take = |(operand, given): (&Operand, &RawSlice<'a>)| {
            operand.check_given(program.op, given.dtype(), given.len())?;
            Ok(match operand.access {
                Access::Read => One { operand: operand.clone(), memory: OperandMemory::Callers(*given), first: None },
                Access::Write => written(gpu, operand, None)?,
                Access::ReadWrite => {
                    let first = gpu.alloc(words(operand))?;
                    let mut rec = gpu.recorder();
                    rec.copy_words(given, &first)?;
                    rec.submit()?;
                    written(gpu, operand, Some(first))?
                }
            })
        };
        let all = program.operands.iter().zip(given).map(take).collect::<Result<_>>()?;
        let mut term = 1.0;
        for (operand, given) in program.operands.iter().zip(given) {
            if operand.dtype.is_float() && operand.access != Access::Write {
                let copy = gpu.alloc(words(operand))?;
                let mut rec = gpu.recorder();
                rec.copy_words(given, &copy)?;
                rec.submit()?;
                term *= largest(operand, &copy.read()?);
            }
        }
        Ok(Self { gpu, all, restored: true, term })
    }

    /// Fills each operand that is written with its initial contents, or with bits that must be overwritten.
    pub(super) fn reset(&self) -> Result<()> {
        for one in &self.all {
            if let (OperandMemory::Own(memory), None, Access::Write) = (&one.memory, &one.first, one.operand.access) {
                memory.write(&filled("tune", memory.len(), UNWRITTEN)?)?;
            }
        }
        let mut rec = self.gpu.recorder();
        self.restore(&mut rec)?;
        rec.submit()
    }

    fn restore(&self, rec: &mut Recorder) -> Result<()> {
        for one in &self.all {
            if let (OperandMemory::Own(memory), Some(first)) = (&one.memory, &one.first) {
                rec.copy(first, memory)?;
            }
        }
        Ok(())
    }

    /// Records a run whose time does not matter.
    pub(super) fn record(&self, rec: &mut Recorder, executable: &Executable) -> Result<()> {
        let all = self.all.iter().map(|one| match &one.memory {
            OperandMemory::Own(words) => RawSlice::of_words(words, one.operand.dtype, one.operand.len),
            OperandMemory::Callers(slice) => *slice,
        });
        executable.record(rec, &all.collect::<Vec<_>>())
    }

    /// Whether each timed run starts with a copy, whose own time is subtracted.
    pub(super) fn copies(&self) -> bool {
        self.restored && self.all.iter().any(|one| one.first.is_some())
    }

    /// Records the copies at the start of a timed run.
    pub(super) fn record_copies(&self, rec: &mut Recorder) -> Result<()> {
        if self.copies() { self.restore(rec) } else { Ok(()) }
    }

    pub(super) fn results(&self) -> Result<Vec<Vec<u32>>> {
        let written = self.all.iter().filter(|one| one.operand.access != Access::Read);
        written.map(|one| if let OperandMemory::Own(words) = &one.memory { words.read() } else { Ok(vec![]) }).collect()
    }
}

fn words(operand: &Operand) -> usize {
    operand.bytes().div_ceil(4) as usize
}

fn written<'a>(gpu: &Gpu, operand: &Operand, first: Option<Buffer<u32>>) -> Result<One<'a>> {
    let memory = OperandMemory::Own(gpu.alloc(words(operand))?);
    Ok(One { operand: operand.clone(), memory, first })
}

/// Random words by splitmix64 (Steele, Lea, Flood 2014): floats in [-1, 1), integers over their whole range or below
/// a bound.
fn numbers(dtype: DType, len: usize, below: Option<u32>, seed: u64) -> Result<Vec<u32>> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 32) as u32
    };
    let bound = below.map(|n| n.max(1));
    let float = |random: u32| {
        let unit = (random >> 8) as f32 / (1 << 24) as f32;
        bound.map_or(2.0 * unit - 1.0, |n| (unit * n as f32).min(n as f32 * 0.999))
    };
    let small = |random: u32| bound.map_or(random, |n| random % n.min(256));
    let words = (len * dtype.size()).div_ceil(4);
    let word = |_| match dtype {
        DType::F32 => float(next()).to_bits(),
        DType::F16 | DType::Bf16 => {
            let [a, b] = [next(), next()].map(|r| u32::from(f16::from_f32(float(r)).to_bits()));
            a | b << 16
        }
        DType::I32 | DType::U32 | DType::U64 => bound.map_or(next(), |n| next() % n),
        DType::U8 | DType::I8 => u32::from_le_bytes(next().to_le_bytes().map(|b| small(b.into()) as u8)),
    };
    let mut numbers = with_room("tune", words)?;
    numbers.extend((0..words).map(word));
    Ok(numbers)
}

#[cfg(test)]
mod tests;
