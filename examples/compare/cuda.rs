//! CUDA: this library's kernels, and cuBLAS for comparison.

use super::backends::{Outcome, Timed};
use super::problem::Problem;
use cudarc::cublas::sys::cublasComputeType_t as Compute;
use cudarc::cublas::sys::cudaDataType as Type;
use cudarc::cublas::sys::{cublasGemmAlgo_t, cublasOperation_t};
use cudarc::cublas::{result as cublas, sys as cublas_sys};
use std::cell::RefCell;
use std::ffi::c_void;
use tilework::cuda::{CudaBuffer, CudaGpu, CudaSlice, CudaStream, RawCudaSlice};
use tilework::{Element, Result};

/// An array on a CUDA device.
pub(crate) trait OnCuda {
    fn raw(&self) -> RawCudaSlice<'_>;
    fn address(&self) -> u64;
    fn bytes(&self) -> Result<Vec<u8>>;
}

impl<T: Element> OnCuda for CudaBuffer<T> {
    fn raw(&self) -> RawCudaSlice<'_> {
        CudaSlice::from(self).untyped()
    }

    fn address(&self) -> u64 {
        CudaBuffer::address(self)
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(bytemuck::cast_slice(&self.read()?).to_vec())
    }
}

const RUNS: usize = 25;

/// Solves with the library's CUDA kernels.
pub(crate) fn solve(gpu: &CudaGpu, problem: &Problem) -> Result<Outcome> {
    let Some(plan) = &problem.on_cuda else { return Ok(Outcome::Missing) };
    let executable = plan(gpu)?;
    let run = |stream: &CudaStream, operands: &[Box<dyn OnCuda>]| {
        let raw: Vec<_> = operands.iter().map(|o| o.raw()).collect();
        executable.run(stream, &raw)
    };
    solve_by(gpu, problem, executable.program().variant(), run)
}

fn solve_by(
    gpu: &CudaGpu, problem: &Problem, variant: &str, run: impl Fn(&CudaStream, &[Box<dyn OnCuda>]) -> Result<()>,
) -> Result<Outcome> {
    let stream = gpu.stream()?;
    let operands = problem.operands.iter().map(|o| o.upload_cuda(gpu)).collect::<Result<Vec<_>>>()?;
    run(&stream, &operands)?;
    stream.wait()?;
    let check = (problem.check)(&operands[problem.output].bytes()?)?;
    let variant = variant.to_owned();
    if !check.passed {
        return Ok(Outcome::Wrong { variant, check });
    }
    let measured = stream.measure(RUNS, |stream| run(stream, &operands))?;
    let (median, min, clock) = (measured.median(), measured.min(), measured.clock.to_string());
    Ok(Outcome::Timed(Timed { variant, check, median, min, clock }))
}

/// A square product for cuBLAS.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) n: usize,
    pub(crate) dtype: &'static str,
}

/// A cuBLAS handle.
pub(crate) struct Cublas {
    gpu: CudaGpu,
    handle: cublas_sys::cublasHandle_t,
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `open` and is not used again. A failure to free it is ignored.
        let _ = unsafe { cublas::destroy_handle(self.handle) };
    }
}

impl Cublas {
    pub(crate) fn open(gpu: CudaGpu) -> std::result::Result<Self, String> {
        // SAFETY: only looks whether the library can be loaded.
        if !unsafe { cublas_sys::is_culib_present() } {
            return Err("libcublas was not found; install the CUDA toolkit, or put its folder into \
                        LD_LIBRARY_PATH"
                .into());
        }
        // Makes the device's context current, since the handle belongs to it.
        gpu.wait().map_err(|e| e.to_string())?;
        let handle = cublas::create_handle().map_err(|e| format!("cublas: {e:?}"))?;
        Ok(Self { gpu, handle })
    }

    pub(crate) fn solve(&self, problem: &Problem) -> Result<Outcome> {
        let Some(Product { n, dtype }) = problem.vendor else { return Ok(Outcome::Missing) };
        let (of, compute, name) = match dtype {
            "f32" => (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F, "SGEMM"),
            "f32 tensor" => (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F_FAST_TF32, "GemmEx tf32"),
            "f16" => (Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F, "GemmEx f16"),
            "bf16" => (Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F, "GemmEx bf16"),
            _ => return Ok(Outcome::Missing),
        };
        let Ok(side) = i32::try_from(n) else { return Ok(Outcome::Missing) };
        let (one, zero) = (1f32, 0f32);
        let [one, zero] = [&raw const one, &raw const zero].map(|x| x.cast::<c_void>());
        // An error of the library. The device then gives a wrong result.
        let failure = RefCell::new(None);
        let run = |stream: &CudaStream, operands: &[Box<dyn OnCuda>]| {
            let [a, b, c] = [0, 1, 2].map(|i| operands[i].address() as *mut c_void);
            let plain = cublasOperation_t::CUBLAS_OP_N;
            // cuBLAS is column-major: request the transposed product with exchanged factors.
            // SAFETY: the three operands are n x n elements of this type on the stream's device, and outlive the
            // measurement, which waits; the scalars are read before the call returns.
            unsafe {
                let set = cublas::set_stream(self.handle, stream.raw().cast());
                let done = set.and_then(|()| {
                    cublas::gemm_ex(
                        self.handle,
                        plain,
                        plain,
                        side,
                        side,
                        side,
                        one,
                        b,
                        of,
                        side,
                        a,
                        of,
                        side,
                        zero,
                        c,
                        of,
                        side,
                        compute,
                        cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                    )
                });
                if let Err(e) = done {
                    failure.replace(Some(format!("cublas: {e:?}")));
                }
            }
            Ok(())
        };
        let outcome = solve_by(&self.gpu, problem, name, run)?;
        Ok(failure.take().map_or(outcome, Outcome::Failed))
    }
}
