//! Networks as lists of planned ops with their buffers, recorded together: shared by `encoder` and `decode`.

pub(crate) mod exact;
pub(crate) mod layers;

use half::f16;
use std::rc::Rc;
use tilework::gpu::{Executable, RawSlice};
use tilework::program::Op;
use tilework::{Buffer, DType, Element, Gpu, Plannable, Recorder, Result};

/// A buffer of any element type.
#[derive(Clone)]
pub(crate) struct Held(Rc<dyn Part>);

trait Part {
    fn part(&self, begin: usize, len: usize) -> Result<RawSlice<'_>>;
}

impl<T: Element> Part for Buffer<T> {
    fn part(&self, begin: usize, len: usize) -> Result<RawSlice<'_>> {
        Ok(self.slice(begin..begin + len)?.untyped())
    }
}

impl<T: Element> From<Buffer<T>> for Held {
    fn from(buffer: Buffer<T>) -> Self {
        Self(Rc::new(buffer))
    }
}

impl Held {
    /// Allocates `n` elements.
    pub(crate) fn alloc(gpu: &Gpu, dtype: DType, n: usize) -> Result<Self> {
        Ok(match dtype {
            DType::F16 => gpu.alloc::<f16>(n)?.into(),
            DType::U32 => gpu.alloc::<u32>(n)?.into(),
            DType::I8 => gpu.alloc::<i8>(n)?.into(),
            DType::U8 => gpu.alloc::<u8>(n)?.into(),
            _ => gpu.alloc::<f32>(n)?.into(),
        })
    }

    /// Uploads numbers as floats of a type.
    pub(crate) fn upload(gpu: &Gpu, dtype: DType, values: &[f32]) -> Result<Self> {
        if dtype == DType::F16 {
            let halves: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
            return Ok(gpu.upload(&halves)?.into());
        }
        Ok(gpu.upload(values)?.into())
    }
}

/// A planned op and its buffers, each with an offset in elements.
struct Step {
    work: Executable,
    operands: Vec<(Held, usize)>,
}

/// Ops in the order they run.
#[derive(Default)]
pub(crate) struct Network {
    steps: Vec<Step>,
}

impl Network {
    /// Plans and adds an op on elements of `T`, on buffers with offsets in elements.
    pub(crate) fn add<T: Element>(&mut self, gpu: &Gpu, op: &impl Op<T>, operands: &[(&Held, usize)]) -> Result<()> {
        let work = op.plan::<T>(gpu)?.into_executable();
        let operands = operands.iter().map(|(held, begin)| ((*held).clone(), *begin)).collect();
        self.steps.push(Step { work, operands });
        Ok(())
    }

    /// As [`add`](Self::add), for a float type known at run time.
    pub(crate) fn add_floats(
        &mut self, gpu: &Gpu, dtype: DType, op: &(impl Op<f32> + Op<f16>), operands: &[(&Held, usize)],
    ) -> Result<()> {
        if dtype == DType::F16 { self.add::<f16>(gpu, op, operands) } else { self.add::<f32>(gpu, op, operands) }
    }

    /// Records all ops.
    pub(crate) fn record(&self, rec: &mut Recorder) -> Result<()> {
        for Step { work, operands } in &self.steps {
            let slices = (operands.iter().zip(&work.program().operands))
                .map(|((held, begin), operand)| held.0.part(*begin, operand.len))
                .collect::<Result<Vec<_>>>()?;
            work.record(rec, &slices)?;
        }
        Ok(())
    }

    /// Runs all ops in one submission.
    pub(crate) fn run(&self, gpu: &Gpu) -> Result<()> {
        let mut rec = gpu.recorder();
        self.record(&mut rec)?;
        rec.submit()
    }
}
