//! A problem: what an op gets, how each world solves it, and what must come out.

use super::common::measured::Check;
#[cfg(feature = "cuda")]
use super::cuda::{OnCuda, Product};
use std::rc::Rc;
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaExecutable, CudaGpu, CudaOp};
use tilework::gpu::{Executable, RawSlice};
use tilework::program::{Cost, DeviceProfile, Op};
use tilework::{Buffer, Element, Gpu, Plannable, Result, Slice};

/// An array on the host, whose element type only its maker knows.
pub(crate) trait Array {
    fn upload(&self, gpu: &Gpu) -> Result<Box<dyn OnGpu>>;
    #[cfg(feature = "cuda")]
    fn upload_cuda(&self, gpu: &CudaGpu) -> Result<Box<dyn OnCuda>>;
}

impl<T: Element> Array for Vec<T> {
    fn upload(&self, gpu: &Gpu) -> Result<Box<dyn OnGpu>> {
        Ok(Box::new(gpu.upload(self)?))
    }

    #[cfg(feature = "cuda")]
    fn upload_cuda(&self, gpu: &CudaGpu) -> Result<Box<dyn OnCuda>> {
        Ok(Box::new(gpu.upload(self)?))
    }
}

/// The same on a device of wgpu.
pub(crate) trait OnGpu {
    fn raw(&self) -> RawSlice<'_>;
    fn bytes(&self) -> Result<Vec<u8>>;
}

impl<T: Element> OnGpu for Buffer<T> {
    fn raw(&self) -> RawSlice<'_> {
        Slice::from(self).untyped()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(bytemuck::cast_slice(&self.read()?).to_vec())
    }
}

/// How the processor solves a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// The library's own reference, in f64.
    Reference,
    /// Plain loops on one core.
    Loops,
    /// The same in tiles that a cache holds.
    Tiled,
    /// The crate `matrixmultiply`.
    Crate,
}

impl Processor {
    pub(crate) const ALL: [Self; 4] = [Self::Reference, Self::Loops, Self::Tiled, Self::Crate];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reference => "cpu-reference",
            Self::Loops => "cpu-loops",
            Self::Tiled => "cpu-tiled",
            Self::Crate => "cpu-matrixmultiply",
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Reference => "the library's reference: f64, one core",
            Self::Loops => "plain loops: one core",
            Self::Tiled => "loops in tiles that a cache holds: one core",
            Self::Crate => "the crate matrixmultiply: SIMD, up to 4 cores",
        }
    }
}

/// Something that the processor repeats into one output.
pub(crate) trait Routine {
    fn run(&mut self) -> Result<()>;
    fn bytes(&self) -> Vec<u8>;
}

struct Repeated<T, F> {
    output: Vec<T>,
    run: F,
}

impl<T: Element, F: FnMut(&mut Vec<T>) -> Result<()>> Routine for Repeated<T, F> {
    fn run(&mut self) -> Result<()> {
        (self.run)(&mut self.output)
    }

    fn bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(&self.output).to_vec()
    }
}

/// Makes a routine when it is its turn, so that its output takes no memory before.
type Make = Box<dyn Fn() -> Box<dyn Routine>>;

type Verdict = Box<dyn Fn(&[u8]) -> Result<Check>>;

type OnWgpu = Box<dyn Fn(&Gpu) -> Result<Executable>>;

#[cfg(feature = "cuda")]
type PlansOnCuda = Box<dyn Fn(&CudaGpu) -> Result<CudaExecutable>>;

pub(crate) struct Problem {
    /// As in the committed results.
    pub(crate) size: String,
    pub(crate) cost: Cost,
    /// Inputs and what outputs hold before, in the order of the call.
    pub(crate) operands: Vec<Rc<dyn Array>>,
    /// Which of them is the result.
    pub(crate) output: usize,
    /// None where the library has no kernels of WGSL for it.
    pub(crate) on_wgpu: Option<OnWgpu>,
    /// None where the library has no kernels of CUDA for it.
    #[cfg(feature = "cuda")]
    pub(crate) on_cuda: Option<PlansOnCuda>,
    /// What the vendor's library has to the same end.
    #[cfg(feature = "cuda")]
    pub(crate) vendor: Option<Product>,
    pub(crate) routines: Vec<(Processor, Make)>,
    /// Holds the bytes of a result against the reference.
    pub(crate) check: Verdict,
}

impl Problem {
    /// Whose last operand is the result, of type `R`; as yet nobody solves it.
    pub(crate) fn of<R: Element>(
        cost: Cost,
        size: String,
        operands: Vec<Rc<dyn Array>>,
        check: impl Fn(&[R]) -> Result<Check> + 'static,
    ) -> Self {
        Self {
            size,
            cost,
            output: operands.len() - 1,
            operands,
            on_wgpu: None,
            #[cfg(feature = "cuda")]
            on_cuda: None,
            #[cfg(feature = "cuda")]
            vendor: None,
            routines: Vec::new(),
            // Bytes need not lie as elements must.
            check: Box::new(move |bytes| check(&bytemuck::pod_collect_to_vec::<u8, R>(bytes))),
        }
    }

    /// Which an op solves on every adapter.
    pub(crate) fn new<T: Element, R: Element, D: Op<T> + 'static>(
        op: D,
        size: String,
        operands: Vec<Rc<dyn Array>>,
        check: impl Fn(&[R]) -> Result<Check> + 'static,
    ) -> Result<Self> {
        let cost = op.lower(&DeviceProfile::h100())?.cost;
        let problem = Self::of(cost, size, operands, check);
        Ok(problem.wgpu(move |gpu| Ok(op.plan::<T>(gpu)?.into_executable())))
    }

    /// Adapters solve it, by what `plan` makes for each.
    pub(crate) fn wgpu(mut self, plan: impl Fn(&Gpu) -> Result<Executable> + 'static) -> Self {
        self.on_wgpu = Some(Box::new(plan));
        self
    }

    /// CUDA does it too, by the same descriptor.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda<T: Element>(mut self, op: impl CudaOp<T> + 'static) -> Self {
        self.on_cuda = Some(Box::new(move |gpu| Ok(op.plan::<T>(gpu)?.into_executable())));
        self
    }

    /// cuBLAS has a square product of this type to the same end.
    #[cfg(feature = "cuda")]
    pub(crate) fn vendor(mut self, n: usize, dtype: &'static str) -> Self {
        self.vendor = Some(Product { n, dtype });
        self
    }

    /// The processor does it too: `run` fills an output of `len` elements.
    pub(crate) fn processor<T: Element>(
        mut self,
        how: Processor,
        len: usize,
        run: impl Fn(&mut Vec<T>) -> Result<()> + Clone + 'static,
    ) -> Self {
        let make = move || -> Box<dyn Routine> {
            Box::new(Repeated { output: vec![T::default(); len], run: run.clone() })
        };
        self.routines.push((how, Box::new(make)));
        self
    }
}
