//! A problem: operands, solvers, and the check of the result.

use super::common::measured::Check;
#[cfg(feature = "cuda")]
use super::cuda::{OnCuda, Product};
use std::rc::Rc;
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaExecutable, CudaGpu, CudaOp};
use tilework::gpu::{Executable, RawSlice};
use tilework::program::{Cost, DeviceProfile, Op};
use tilework::{Buffer, Element, Gpu, Plannable, Result, Slice};

/// A host array of some element type.
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

/// A device array of some element type.
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

/// A way to solve a problem on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// The library's reference, in f64.
    Reference,
    /// Plain loops on one core.
    Loops,
    /// Loops in cache-sized tiles.
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

/// A routine that writes one output, repeatedly.
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

/// Makes a routine when its turn comes, so that its output takes no memory earlier.
type Make = Box<dyn Fn() -> Box<dyn Routine>>;

type Verdict = Box<dyn Fn(&[u8]) -> Result<Check>>;

type OnWgpu = Box<dyn Fn(&Gpu) -> Result<Executable>>;

#[cfg(feature = "cuda")]
type PlansOnCuda = Box<dyn Fn(&CudaGpu) -> Result<CudaExecutable>>;

pub(crate) struct Problem {
    /// Size, as in the committed results.
    pub(crate) size: String,
    pub(crate) cost: Cost,
    /// Inputs and initial outputs, in the order of the call.
    pub(crate) operands: Vec<Rc<dyn Array>>,
    /// Index of the result.
    pub(crate) output: usize,
    /// `None` if the library has no WGSL kernels for it.
    pub(crate) on_wgpu: Option<OnWgpu>,
    /// `None` if the library has no CUDA kernels for it.
    #[cfg(feature = "cuda")]
    pub(crate) on_cuda: Option<PlansOnCuda>,
    /// The vendor's routine for the same result.
    #[cfg(feature = "cuda")]
    pub(crate) vendor: Option<Product>,
    pub(crate) routines: Vec<(Processor, Make)>,
    /// Checks the bytes of a result.
    pub(crate) check: Verdict,
}

impl Problem {
    /// Makes a problem whose last operand is the result, of type `R`, without solvers.
    pub(crate) fn of<R: Element>(
        cost: Cost, size: String, operands: Vec<Rc<dyn Array>>, check: impl Fn(&[R]) -> Result<Check> + 'static,
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
            // The bytes may be unaligned.
            check: Box::new(move |bytes| check(&bytemuck::pod_collect_to_vec::<u8, R>(bytes))),
        }
    }

    /// Makes a problem that an op solves on every adapter.
    pub(crate) fn new<T: Element, R: Element, D: Op<T> + 'static>(
        op: D, size: String, operands: Vec<Rc<dyn Array>>, check: impl Fn(&[R]) -> Result<Check> + 'static,
    ) -> Result<Self> {
        let cost = op.lower(&DeviceProfile::h100())?.cost;
        let problem = Self::of(cost, size, operands, check);
        Ok(problem.wgpu(move |gpu| Ok(op.plan::<T>(gpu)?.into_executable())))
    }

    /// Adds adapters as solvers: `plan` plans for each.
    pub(crate) fn wgpu(mut self, plan: impl Fn(&Gpu) -> Result<Executable> + 'static) -> Self {
        self.on_wgpu = Some(Box::new(plan));
        self
    }

    /// Adds CUDA as a solver, with this descriptor.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda<T: Element>(mut self, op: impl CudaOp<T> + 'static) -> Self {
        self.on_cuda = Some(Box::new(move |gpu| Ok(op.plan::<T>(gpu)?.into_executable())));
        self
    }

    /// Adds cuBLAS's square product of this type as a solver.
    #[cfg(feature = "cuda")]
    pub(crate) fn vendor(mut self, n: usize, dtype: &'static str) -> Self {
        self.vendor = Some(Product { n, dtype });
        self
    }

    /// Adds a processor routine: `run` fills an output of `len` elements.
    pub(crate) fn processor<T: Element>(
        mut self, how: Processor, len: usize, run: impl Fn(&mut Vec<T>) -> Result<()> + Clone + 'static,
    ) -> Self {
        let make =
            move || -> Box<dyn Routine> { Box::new(Repeated { output: vec![T::default(); len], run: run.clone() }) };
        self.routines.push((how, Box::new(make)));
        self
    }
}
