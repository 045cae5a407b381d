//! What `encoder` and `decode` share: a network as a list of planned ops with their buffers, recorded as a whole.

pub(crate) mod exact;
pub(crate) mod layers;

use half::f16;
use tilework::gpu::{Executable, RawSlice};
use tilework::program::Op;
use tilework::{Buffer, DType, Element, Gpu, Plannable, Recorder, Result, Slice};

/// A buffer of any element type.
#[derive(Clone)]
pub(crate) enum Held {
    F32(Buffer<f32>),
    F16(Buffer<f16>),
    U32(Buffer<u32>),
    I8(Buffer<i8>),
    U8(Buffer<u8>),
}

/// `$body` with `$buffer` bound to what is held.
macro_rules! with_buffer {
    ($held:expr, $buffer:ident => $body:expr) => {
        match $held {
            Held::F32($buffer) => $body,
            Held::F16($buffer) => $body,
            Held::U32($buffer) => $body,
            Held::I8($buffer) => $body,
            Held::U8($buffer) => $body,
        }
    };
}

macro_rules! from_buffer {
    ($($t:ty => $kind:ident),*) => {$(
        impl From<Buffer<$t>> for Held {
            fn from(buffer: Buffer<$t>) -> Self {
                Self::$kind(buffer)
            }
        }
    )*};
}
from_buffer!(f32 => F32, f16 => F16, u32 => U32, i8 => I8, u8 => U8);

impl Held {
    /// So many elements of a type, of any value.
    pub(crate) fn alloc(gpu: &Gpu, dtype: DType, n: usize) -> Result<Self> {
        Ok(match dtype {
            DType::F16 => gpu.alloc::<f16>(n)?.into(),
            DType::U32 => gpu.alloc::<u32>(n)?.into(),
            DType::I8 => gpu.alloc::<i8>(n)?.into(),
            DType::U8 => gpu.alloc::<u8>(n)?.into(),
            _ => gpu.alloc::<f32>(n)?.into(),
        })
    }

    /// Numbers as floats of a type.
    pub(crate) fn upload(gpu: &Gpu, dtype: DType, values: &[f32]) -> Result<Self> {
        if dtype == DType::F16 {
            let halves: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
            return Ok(gpu.upload(&halves)?.into());
        }
        Ok(gpu.upload(values)?.into())
    }

    fn part(&self, begin: usize, len: usize) -> Result<RawSlice<'_>> {
        with_buffer!(self, buffer => Ok(Slice::from(buffer).slice(begin..begin + len)?.untyped()))
    }
}

/// A planned op and its buffers, each from an element on.
struct Step {
    work: Executable,
    operands: Vec<(Held, usize)>,
}

/// Ops in the order in which they run.
#[derive(Default)]
pub(crate) struct Network {
    steps: Vec<Step>,
}

impl Network {
    /// Plans an op on elements of `T`, with operands that are these buffers, each from an element on.
    pub(crate) fn add<T: Element>(
        &mut self,
        gpu: &Gpu,
        op: &impl Op<T>,
        operands: &[(&Held, usize)],
    ) -> Result<()> {
        let work = op.plan::<T>(gpu)?.into_executable();
        let operands = operands.iter().map(|(held, begin)| ((*held).clone(), *begin)).collect();
        self.steps.push(Step { work, operands });
        Ok(())
    }

    /// The same for floats of a type that is known when it runs.
    pub(crate) fn add_floats(
        &mut self,
        gpu: &Gpu,
        dtype: DType,
        op: &(impl Op<f32> + Op<f16>),
        operands: &[(&Held, usize)],
    ) -> Result<()> {
        if dtype == DType::F16 {
            self.add::<f16>(gpu, op, operands)
        } else {
            self.add::<f32>(gpu, op, operands)
        }
    }

    /// Records all of it.
    pub(crate) fn record(&self, rec: &mut Recorder) -> Result<()> {
        for Step { work, operands } in &self.steps {
            let slices = (operands.iter().zip(&work.program().operands))
                .map(|((held, begin), operand)| held.part(*begin, operand.len))
                .collect::<Result<Vec<_>>>()?;
            work.record(rec, &slices)?;
        }
        Ok(())
    }

    /// Does all of it, as one submission.
    pub(crate) fn run(&self, gpu: &Gpu) -> Result<()> {
        let mut rec = gpu.recorder();
        self.record(&mut rec)?;
        rec.submit()
    }
}
