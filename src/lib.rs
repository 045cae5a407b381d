//! CUB and BLAS for every GPU: tiled WGSL kernels on wgpu, planned once and recorded into your encoder or ours.
//!
//! # A first program
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use tilework::prelude::*;
//!
//! let gpu = Gpu::new()?;
//! let x = gpu.upload(&[1.0f32, -2.0, 3.0, -4.0])?;
//! let y = gpu.map(&x, MapFn::Abs)?; // one line: plan, allocate, record, submit
//! let total = gpu.reduce(&y, Sum)?;
//! assert_eq!(total.read()?, [10.0]); // only reading waits
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! One-line calls allocate their result each time. A program that does the same work often plans it once and
//! records it into one submission:
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use tilework::prelude::*;
//!
//! let gpu = Gpu::new()?;
//! let (x, y) = (gpu.upload(&vec![1.0f32; 1000])?, gpu.alloc_zeroed::<f32>(1000)?);
//! let total = gpu.alloc::<f32>(1)?;
//! let axpy = Axpy::new(1000, 0.5).plan::<f32>(&gpu)?;
//! let sum = Reduce::new(Sum, 1000).plan::<f32>(&gpu)?;
//!
//! let mut rec = gpu.recorder();
//! for _ in 0..10 {
//!     axpy.record(&mut rec, &x, &y)?; // y = 0.5 x + y
//! }
//! sum.record(&mut rec, &y, &total)?;
//! rec.submit()?;
//! assert_eq!(total.read()?, [5000.0]);
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! # What to use when
//!
//! | you want | take |
//! |---|---|
//! | a function of every element, or of two | [`Map`], [`Zip`], [`Axpy`]; your own function is a line of WGSL ([`elementwise`]) |
//! | a sum, an extreme, its place; of all or by rows | [`Reduce`] ([`primitives`]) |
//! | all prefixes, of an array by rows or by flags | [`Scan`], [`SegmentedScan`] ([`primitives`]) |
//! | one number for each run of equal keys, or segment | [`ReduceByKey`], [`SegmentedReduce`] ([`primitives`]) |
//! | how many elements fall into each bin | [`Histogram`] ([`primitives`]) |
//! | keys in order, stable, alone or with values | [`RadixSort`] ([`primitives`]) |
//! | the few largest or smallest, and where they are | [`TopK`] ([`primitives`]) |
//! | products of matrices, layers of networks | [`Gemm`] ([`dense`]) |
//! | products of matrices of bytes, with scales | [`GemmInt8`] ([`quantize`]) |
//! | products of many small matrices, or of many pairs | [`GemmBatched`] ([`dense`]) |
//! | a matrix times a vector, transposed or not | [`Gemv`] ([`dense`]) |
//! | the transpose of a matrix, or of each of a batch | [`Transpose`] ([`dense`]) |
//! | a sparse matrix times a vector, in any format | [`Spmv`] ([`sparse`]) |
//! | a sparse matrix times a dense one, in any format | [`Spmm`] ([`sparse`]) |
//! | a sparse matrix in another format | [`Spconvert`], [`Gpu::convert_matrix`] ([`sparse`]) |
//! | x with A x = b, A sparse; eigenvalues; ranks in a graph | [`sparse::ConjugateGradient`], [`sparse::PowerIteration`], [`sparse::PageRank`] |
//! | a filter along a line, over an image or a volume | [`Filter1d`], [`Filter2d`], [`Filter3d`] ([`conv`]) |
//! | the brightness of pixels, a box or Gaussian blur, medians, edges, equalised histograms | [`Grey`], [`Blur`], [`Gaussian`], [`Median`], [`Sobel`], [`Equalize`] ([`image`]) |
//! | rows as probabilities; rows normalised | [`Softmax`], [`LogSoftmax`], [`LayerNorm`], [`RmsNorm`] ([`nn`]) |
//! | the largest, or the mean, of windows of images | [`Pool2d`], [`Pool2dBackward`] ([`nn`]) |
//! | attention of any kind, and the cache that decoding grows | [`Attention`], [`attention::KvAppend`] ([`mod@attention`]) |
//! | losses, gradients, steps of training; networks of layers | [`nn::Sequential`] and others ([`nn`]) |
//! | work on as much as the device has counted | [`OwnKernel::record_counted`](gpu::OwnKernel::record_counted), [`Select::counted`], [`RadixSort::counted`] |
//! | a kernel of your own beside ours | [`Gpu::kernel`](Gpu::kernel) ([`gpu::OwnKernel`]) |
//! | an NVIDIA card through CUDA, tensor cores, `bf16` | the feature `cuda`: `cuda::CudaGpu` |
//! | CUDA on buffers of wgpu, without a copy | the feature `cuda`: `cuda::Bridge`, `Gpu::alloc_shared` |
//! | a device that your program owns | [`Gpu::from_wgpu`], [`Gpu::wrap`], [`Gpu::recorder_in`] |
//! | to know what a plan will do | [`Plan::report`]: variant and why, bytes, flop, intensity, scratch, workgroups, predicted time |
//! | time on the device | [`Gpu::time`], [`Gpu::measure`] |
//! | which op and which dispatch took it; a trace for a viewer | [`Gpu::profile_work`] |
//! | work on more than the device holds, copies beside kernels | [`Gpu::streamed`], [`stream::Pipeline`] ([`stream`]) |
//! | the fastest variant on this very device, measured and kept | [`mod@tune`], [`gpu::Tuning`] |
//! | a line in your program's log for each op that is recorded | the crate `log`: target `tilework`, level debug |
//! | what a kernel would cost on paper: reuse, occupancy, divergence | [`analysis`] |
//! | what is wrong with a kernel, and what it costs, without a GPU | [`sim`], and the `sanitize` example |
//! | what a machine has | [`Gpu::adapters`], and the `device` example |
//! | results to check against | [`mod@reference`], with error bounds |
//!
//! # The way of a call
//!
//! A descriptor (`Reduce::new(Sum, n)`) is plain data. Planning lowers it for one device to a
//! [`Program`](program::Program), plain data too: which kernels run, specialised how, on what grids, and why. Kernels
//! are WGSL files put together by [`shader`], compiled once a device. Recording binds buffers, checks them, and
//! appends dispatches to an open compute pass. Nothing blocks until something is read.
//!
//! # Errors
//!
//! Whatever a program can get wrong comes back as an [`Error`] with an [`ErrorKind`] and a text that names operation,
//! operands, sizes, limit and remedy: no panic, and no wgpu error that reaches the device's handler. A refused op
//! leaves the recorder as it was. On a lost device every call says so.
//!
//! # Precision
//!
//! Each op's page states what is rounded where, its error bound, and whether the same input gives the same bits again.
//! WGSL lets devices flush subnormal numbers and err by a few units in the last place in functions such as `exp`;
//! the bounds count that in.
//!
//! # Features of the device
//!
//! Every op has a variant that needs only WebGPU's default limits and no optional feature. Subgroups, f16, 64-bit
//! integers and timestamps are used where they are there; `auto`, the default variant, chooses, and says why.

#![cfg_attr(docsrs, feature(doc_cfg))]
// A feature that is off leaves helpers unused that others need: a build with the defaults judges.
#![cfg_attr(
    not(all(
        feature = "families",
        feature = "stream",
        feature = "sim",
        feature = "tune",
        feature = "io",
        feature = "disk-cache"
    )),
    allow(dead_code, unused_imports, unused_macros)
)]

pub mod analysis;
mod api;
#[doc = include_str!("architecture.md")]
pub mod architecture {}
mod array;
#[cfg(feature = "attention")]
pub mod attention;
#[cfg(feature = "conv")]
pub mod conv;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "dense")]
pub mod dense;
mod element;
pub mod elementwise;
mod error;
pub mod gpu;
#[cfg(feature = "image")]
pub mod image;
#[cfg(feature = "io")]
pub mod io;
#[cfg(not(feature = "io"))]
mod io;
#[cfg(feature = "nn")]
pub mod nn;
mod operations;
mod plan;
#[cfg(feature = "primitives")]
pub mod primitives;
pub mod program;
#[cfg(feature = "quantize")]
pub mod quantize;
pub mod reference;
pub mod shader;
mod shape;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "sparse")]
pub mod sparse;
mod store;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(feature = "tune")]
pub mod tune;
#[cfg(not(feature = "tune"))]
mod tune;

#[cfg(feature = "cuda")]
pub use api::CudaFormed;
pub use api::{AnyBuffer, Formed};
#[cfg(feature = "sparse")]
pub use api::{DeviceMatrix, Driven, MatrixJob, Solver};
pub use array::{HostArray, HostData, shape_text};
#[cfg(feature = "attention")]
pub use attention::Attention;
#[cfg(feature = "conv")]
pub use conv::{Boundary, Filter1d, Filter2d, Filter3d};
#[cfg(feature = "conv")]
pub use conv::{Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, ConvTranspose2d};
#[cfg(feature = "dense")]
pub use dense::{Gemm, GemmBatched, Gemv, Precision, Transpose};
pub use element::{DType, Element};
pub use elementwise::{Activation, Axpy, Map, MapFn, Zip, ZipFn};
pub use error::{Error, ErrorKind, Result};
pub use gpu::{Buffer, Gpu, GpuOptions, Recorder, Slice};
#[cfg(feature = "image")]
pub use image::{
    Blur, Divide, Equalize, Gaussian, Gradient, Grey, GreyWeights, Image, Layout, Median, Sobel,
};
#[cfg(feature = "nn")]
pub use nn::{LayerNorm, LogSoftmax, Pool2d, Pool2dBackward, PoolKind, RmsNorm, Softmax};
pub use operations::operations;
#[cfg(feature = "cuda")]
pub use plan::CudaPlan;
pub use plan::{Fact, KernelReport, Plan, Plannable, Plans, Report};
#[cfg(feature = "primitives")]
pub use primitives::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Scan, SegmentedScan, Sum};
#[cfg(feature = "primitives")]
pub use primitives::{Histogram, Partition, Predicate, RadixSort, RunLength, Select, TopK, Unique};
#[cfg(feature = "primitives")]
pub use primitives::{ReduceByKey, SegmentedReduce};
#[cfg(feature = "quantize")]
pub use quantize::GemmInt8;
#[cfg(feature = "sparse")]
pub use sparse::{Spconvert, Spmm, Spmv};

/// Everything that a program which records ops wants in scope.
pub mod prelude {
    #[cfg(feature = "quantize")]
    pub use crate::GemmInt8;
    pub use crate::gpu::Arg;
    pub use crate::{Activation, Axpy, Map, MapFn, Zip, ZipFn};
    #[cfg(feature = "primitives")]
    pub use crate::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Scan, SegmentedScan, Sum};
    #[cfg(feature = "image")]
    pub use crate::{
        Blur, Divide, Equalize, Gaussian, Gradient, Grey, GreyWeights, Image, Layout, Median, Sobel,
    };
    #[cfg(feature = "conv")]
    pub use crate::{Boundary, Filter1d, Filter2d, Filter3d};
    pub use crate::{Buffer, Gpu, GpuOptions, Plan, Plannable, Recorder, Slice};
    #[cfg(feature = "conv")]
    pub use crate::{Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, ConvTranspose2d};
    #[cfg(feature = "sparse")]
    pub use crate::{DeviceMatrix, Spconvert, Spmm, Spmv};
    #[cfg(feature = "dense")]
    pub use crate::{Gemm, GemmBatched, Gemv, Precision, Transpose};
    #[cfg(feature = "primitives")]
    pub use crate::{Histogram, RadixSort, TopK};
    #[cfg(feature = "nn")]
    pub use crate::{LayerNorm, LogSoftmax, Pool2d, Pool2dBackward, PoolKind, RmsNorm, Softmax};
    #[cfg(feature = "primitives")]
    pub use crate::{Partition, Predicate, RunLength, Select, Unique};
    #[cfg(feature = "primitives")]
    pub use crate::{ReduceByKey, SegmentedReduce};
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
