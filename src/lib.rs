//! Hand-written compute kernels for every GPU: sorts, scans, matrix products, sparse matrices, convolution, attention.
//!
//! tilework runs on [wgpu](https://wgpu.rs), and so on Vulkan, Metal, Direct3D 12 and OpenGL. You plan an op once,
//! record it into your command encoder or ours, and read the result when you need it. Nothing panics on bad input:
//! each call returns an [`Error`] that names the sizes, the limit and the remedy.
//!
//! # A first program
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use tilework::prelude::*;
//!
//! let gpu = Gpu::new()?; // the best adapter
//! let x = gpu.upload(&[1.0f32, -2.0, 3.0, -4.0])?;
//! let y = gpu.map(&x, MapFn::Abs)?; // one line: plan, allocate, record, submit
//! let total = gpu.reduce(&y, Sum)?;
//! assert_eq!(total.read()?, [10.0]); // only reading waits
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! One-line calls allocate their result each time. To repeat work, plan it once and record it into one submission:
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
//! | you want to | use |
//! |---|---|
//! | **arrays** | |
//! | apply a function to each element, or to two arrays | [`Map`], [`Zip`], [`Axpy`], [`Scal`]; your own function is a line of WGSL: [`MapFn::custom`] |
//! | apply a function to up to four arrays of any types, rows, columns or numbers; cast, compare, choose, number elements | [`Transform`] |
//! | sum, find a minimum or maximum or its position; of all elements or by rows | [`Reduce`] |
//! | sum or combine by key, or by segment | [`ReduceByKey`], [`SegmentedReduce`], [`ReduceOffsets`] |
//! | compute running totals (prefix sums) | [`Scan`], [`SegmentedScan`], [`ScanByKey`], [`ScanOffsets`] |
//! | sort keys, alone or with values; find their order; sort each segment | [`RadixSort`], by your own comparison [`MergeSort`]; [`Argsort`]; [`SegmentedSort`] |
//! | find the k largest or smallest, of all or of each row; the element at a rank | [`TopK`], [`TopKRows`], [`NthElement`] |
//! | keep the elements that pass a test; drop repeated ones | [`Select`], [`Partition`], [`Unique`], [`UniqueByKey`], [`RunLength`] |
//! | count elements by bin, or points by bins of two axes, or each channel; add up weights by bin | [`Histogram`], [`Histogram2d`], [`HistogramChannels`]; [`WeightedHistogram`] |
//! | make random numbers, draw categories by weight; put elements in a random order | [`Random`], [`Categorical`]; [`Shuffle`] |
//! | subtract neighbours; reverse or rotate | [`AdjacentDifference`], [`Reverse`], [`Rotate`] |
//! | merge sorted arrays, or treat them as sets | [`Merge`], [`SetUnion`], [`SetIntersection`], [`SetDifference`] |
//! | find places in sorted elements | [`LowerBound`], [`UpperBound`] |
//! | compute a scalar product or a norm | [`Dot`], [`Nrm2`], [`Asum`], [`Iamax`], [`Iamin`] |
//! | build a quadtree; refine a grid; make work on the device | [`Quadtree`], [`AdaptiveGrid`], [`Frontier`] |
//! | look up rows of a table by index; write or add rows by index | [`Gather`], [`Scatter`] |
//! | convert to f16 or bytes and back | [`quantize::Cast`], [`quantize::Quantize`], [`quantize::Dequantize`] |
//! | **matrices** | |
//! | multiply matrices, with bias and activation | [`Gemm`]; many small ones: [`GemmBatched`]; of different shapes: [`GemmGrouped`]; of bytes: [`GemmInt8`] |
//! | multiply a matrix by a vector; add an outer product | [`Gemv`], [`Ger`] |
//! | the same for symmetric, triangular and band matrices; solve for a vector | [`Symv`], [`Trmv`], [`Gbmv`], [`Syr`], [`Syr2`]; [`Trsv`] |
//! | multiply by a triangular or symmetric matrix, or by the transpose; solve a triangular system | [`Trmm`], [`Symm`], [`Syrk`], [`Syr2k`], [`Trsm`] |
//! | rotate two vectors, or swap them | [`Rot`], [`Rotg`], [`Rotmg`]; [`Swap`] |
//! | multiply complex matrices and vectors | [`Cgemm`], [`Cgemv`], [`Cdot`], [`Caxpy`] |
//! | transpose; put axes in another order; copy with strides; pad; join | [`Transpose`], [`PermuteAxes`]; [`StridedCopy`]; [`PadAxes`]; [`Concatenate`] |
//! | build a sparse matrix from its entries | [`sparse::Csr::from_triplets`], then [`Gpu::upload_matrix`] |
//! | multiply a sparse matrix by a vector or by a dense matrix | [`Spmv`], [`Spmm`] |
//! | solve A x = b; find an eigenvalue; rank a graph | [`sparse::ConjugateGradient`], [`sparse::PowerIteration`], [`sparse::PageRank`] |
//! | convert between sparse formats | [`Spconvert`], [`Gpu::convert_matrix`] |
//! | insert entries into a sparse matrix | [`Spinsert`], [`Gpu::insert_entries`] |
//! | **images and signals** | |
//! | filter a line, an image or a volume | [`Filter1d`], [`Filter2d`], [`Filter3d`] |
//! | convert to grey, blur, take medians, find edges, equalise | [`Grey`], [`Blur`], [`Gaussian`], [`Median`], [`Sobel`], [`Equalize`] |
//! | **networks** | |
//! | run convolution layers, pooling, norms, softmax | [`Conv2d`], [`ConvTranspose2d`], [`Pool2d`], [`nn::BatchNorm`], [`LayerNorm`], [`RmsNorm`], [`Softmax`], [`LogSoftmax`] |
//! | run transformers | [`Attention`], [`attention::KvAppend`], [`nn::Rope`], [`nn::MeanPool`] |
//! | train | [`nn::Sequential`], the losses, gradients and optimizers of [`nn`], [`AttentionBackward`]; guide [`training`](guides::training) |
//! | **programs** | |
//! | write a kernel of your own | [`Gpu::kernel`]; guide [`own_kernel`](guides::own_kernel) |
//! | run in a browser | the feature `webgpu`; guide [`browser`](guides::browser) |
//! | use the device that your program owns | [`Gpu::from_wgpu`]; guide [`own_device`](guides::own_device) |
//! | use matrices of ndarray, faer, nalgebra or sprs | [`Gpu::upload_dense`], [`Gpu::matmul`] ([`interop`]) |
//! | trade accuracy for speed, or get the same bits in every run | [`Precision`]; guide [`precision`](guides::precision) |
//! | launch work on a count that the device computed | [`OwnKernel::record_counted`](gpu::OwnKernel::record_counted); guide [`device_counts`](guides::device_counts) |
//! | find out what takes the time | [`Plan::report`], [`Gpu::profile_work`]; guide [`profiling`](guides::profiling) |
//! | choose the fastest variant on your device | [`mod@tune`]; guide [`profiling`](guides::profiling) |
//! | process more data than the device holds | [`Gpu::streamed`]; guide [`larger_than_memory`](guides::larger_than_memory) |
//! | use CUDA and tensor cores on an NVIDIA card | the feature `cuda`; guide [`cuda`](guides::cuda) |
//! | find races in a kernel without a GPU | [`sim`]; guide [`testing_kernels`](guides::testing_kernels) |
//! | check results | [`mod@reference`]: sequential versions with error bounds |
//! | list the machine's adapters | [`Gpu::adapters`], and the example `device` |
//! | see in your program's log what tilework does | the crate `log`, target `tilework`: [below](#logging) |
//!
//! The [`guides`] have a page for each of these tasks. [`architecture`] explains how the crate is built.
//!
//! # How it works
//!
//! A descriptor (`Reduce::new(Sum, n)`) is plain data. Planning lowers it for one device to a
//! [`Program`](program::Program): kernels, constants, grids, and the reason for each choice. Kernels are WGSL files,
//! compiled once a device and kept on disk. Recording checks the operands, binds them, and adds dispatches to an
//! open compute pass. Nothing waits before a `read`.
//!
//! [`Plan`] lists `record` for each op with its operands by name: inputs first, then outputs. [`Gpu`] lists the
//! one-line calls.
//!
//! # Errors
//!
//! An [`Error`] has an [`ErrorKind`] to match on, and a text that names the op, its operands, sizes, the limit and
//! the remedy. A refused op leaves the recorder unchanged. On a lost device every call returns
//! [`DeviceLost`](ErrorKind::DeviceLost).
//!
//! # Precision
//!
//! The page of each op states its rounding, its error bound, and whether the same input gives the same bits again.
//! WGSL lets devices flush subnormal numbers and compute functions such as `exp` with errors of a few units in the
//! last place. The bounds include that.
//!
//! # Logging
//!
//! tilework prints nothing; drivers may. (Without a desktop session, Mesa's Vulkan layer for choosing a device prints
//! `error: XDG_RUNTIME_DIR is invalid`. Set that variable to any folder, or leave the layer out: `NODEVICE_SELECT=1`.)
//! tilework logs through the crate `log` under the target `tilework`:
//!
//! | level | message |
//! |---|---|
//! | warn | a software driver; a device of yours opened without features that tilework uses; a recorder dropped with work in it; a variant denied because it gave wrong results |
//! | info | each device: adapter, driver, features, cache directory |
//! | debug | each kernel that is compiled or loaded from the cache, with the time |
//! | trace | each recorded op, kernel of your own, copy and clear, with its sizes |
//!
//! # Features
//!
//! All but `webgpu` and the last three rows are on by default. A program that needs one family names it, and the
//! backends it runs on:
//!
//! ```toml
//! tilework = { version = "0.1", default-features = false, features = ["primitives", "vulkan"] }
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | `families` | all of `primitives`, `dense`, `sparse`, `conv`, `image`, `nn`, `attention`, `quantize`; [`elementwise`] is always there |
//! | `vulkan`, `metal`, `dx12`, `gles` | a backend of wgpu; it does nothing on a system that lacks it |
//! | `webgpu` | wgpu's backend for browsers, on wasm32-unknown-unknown |
//! | `stream` | [`stream`]: work on more data than the device holds |
//! | `shard` | [`shard`]: work on several devices |
//! | `sim` | [`sim`]: kernels on the processor, without a GPU |
//! | `tune` | [`mod@tune`]: measures variants on your device |
//! | `io` | [`io`]: Matrix Market and IDX files |
//! | `disk-cache` | compiled kernels and measured choices kept on disk |
//! | `cuda` | the backend for NVIDIA's cards |
//! | `nccl` | [`shard`] by NCCL between NVIDIA's cards, under Linux |
//! | `mpi` | [`shard`] between processes, on one machine or several; its build needs MPI's compiler and libclang |
//! | `ndarray`, `faer`, `nalgebra`, `nalgebra-sparse`, `sprs`, or all five: `interop` | [`interop`]: matrices of these crates |
//!
//! # Devices
//!
//! Every op has a variant that needs only WebGPU's default limits and no optional feature. Faster variants use
//! subgroups, f16, 64-bit integers and timestamps if the device has them. The default variant, `auto`, chooses, and
//! its report says why.

#![cfg_attr(docsrs, feature(doc_cfg))]
// A feature that is off leaves helpers unused that others need: a build with the defaults judges.
#![cfg_attr(
    not(all(
        feature = "families",
        feature = "stream",
        feature = "shard",
        feature = "sim",
        feature = "tune",
        feature = "io",
        feature = "disk-cache"
    )),
    allow(dead_code, unused_imports, unused_macros)
)]

#[cfg(all(
    target_arch = "wasm32",
    any(
        not(feature = "webgpu"),
        feature = "stream",
        feature = "tune",
        feature = "io",
        feature = "disk-cache",
        feature = "cuda"
    )
))]
compile_error!(
    "a page in a browser has no threads and no files: build tilework with default-features = false and the features \
     webgpu and families, without stream, tune, io, disk-cache and cuda"
);

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
pub mod guides;
#[cfg(feature = "image")]
pub mod image;
#[cfg(feature = "dense")]
pub mod interop;
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
#[cfg(feature = "shard")]
pub mod shard;
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

/// The version of half whose [`f16`](half::f16) is an [`Element`].
pub use half;
/// The version of wgpu whose types appear in this crate: use `tilework::wgpu` to open a device for [`Gpu::from_wgpu`].
pub use wgpu;

#[cfg(feature = "cuda")]
pub use api::CudaReadyCall;
pub use api::{AnyBuffer, ReadyCall};
#[cfg(feature = "sparse")]
pub use api::{DeviceList, DeviceMatrix, Driven, MatrixJob, Solver};
pub use array::{HostArray, HostData, shape_text};
#[cfg(feature = "attention")]
pub use attention::{
    Attention, AttentionBackward, KvAppend, KvType, PageMoves, PagePool, Paging, ScoreStage, SequenceId,
};
#[cfg(feature = "conv")]
pub use conv::{Boundary, Filter1d, Filter2d, Filter3d};
#[cfg(feature = "conv")]
pub use conv::{Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, ConvTranspose2d};
#[cfg(feature = "dense")]
pub use dense::{
    Caxpy, Cdot, Cgemm, Cgemv, Concatenate, Gbmv, Gemm, GemmBatched, GemmGrouped, Gemv, Ger, PadAxes, PadMode,
    PermuteAxes, Precision, Rot, Rotg, Rotmg, StridedCopy, Swap, Symm, Symv, Syr, Syr2, Syr2k, Syrk, Transpose, Trmm,
    Trmv, Trsm, Trsv,
};
pub use element::{DType, Element};
pub use elementwise::{Activation, Axpy, Broadcast, Map, MapFn, Scal, Transform, TransformFn, Zip, ZipFn};
pub use error::{Error, ErrorKind, Result};
pub use gpu::{Arg, Buffer, Gpu, GpuOptions, Recorder, Slice};
#[cfg(feature = "image")]
pub use image::{Blur, Divide, Equalize, Gaussian, Gradient, Grey, GreyWeights, Image, Median, Sobel};
#[cfg(feature = "nn")]
pub use nn::{
    ActivationBackward, Adam, BatchNormBackward, BatchNormTrain, BiasBackward, BinaryCrossEntropy, CrossEntropy,
    LayerNormBackward, LogSoftmaxBackward, Pool2dBackward, Pool2dBackwardWeights, RmsNormBackward, Sgd,
    SoftmaxBackward, SquaredError,
};
#[cfg(feature = "nn")]
pub use nn::{
    BatchNorm, Dropout, LayerNorm, LogSoftmax, MeanPool, Pool2d, PoolKind, RmsNorm, Rope, SampleLogits, Softmax,
};
pub use operations::operations;
#[cfg(feature = "cuda")]
pub use plan::CudaPlan;
pub use plan::{Fact, KernelReport, Plan, Plannable, Plans, Report};
#[cfg(feature = "primitives")]
pub use primitives::{AdaptiveGrid, Frontier, Quadtree};
#[cfg(feature = "primitives")]
pub use primitives::{AdjacentDifference, Reverse, Rotate};
#[cfg(feature = "primitives")]
pub use primitives::{Affine, LogSumExp, MeanVariance, MinMax, StateOp, Sum64};
#[cfg(feature = "primitives")]
pub use primitives::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Scan, ScanByKey, SegmentedScan, Sum};
#[cfg(feature = "primitives")]
pub use primitives::{Argsort, Categorical, NthElement, Quantile, RadixSort, SegmentedSort, Shuffle, TopK, TopKRows};
#[cfg(feature = "primitives")]
pub use primitives::{Asum, Dot, Iamax, Iamin, KeyBits, LowerBound, Merge, Nrm2, UpperBound};
#[cfg(feature = "primitives")]
pub use primitives::{Distribution, Gather, Random, Scatter, ScatterOp};
#[cfg(feature = "primitives")]
pub use primitives::{Find, IsSorted, MergeSort, SetDifference, SetIntersection, SetUnion, UniqueByKey};
#[cfg(feature = "primitives")]
pub use primitives::{
    Histogram, Histogram2d, HistogramChannels, Partition, Predicate, RunLength, Select, SelectColumns, SplitParts,
    Unique, WeightedHistogram,
};
#[cfg(feature = "primitives")]
pub use primitives::{ReduceByKey, ReduceOffsets, ScanOffsets, SegmentedReduce};
pub use program::When;
#[cfg(feature = "quantize")]
pub use quantize::{Cast, Dequantize, GemmInt8, Quantize, Scales};
#[cfg(feature = "sparse")]
pub use sparse::{ConjugateGradient, PageRank, PowerIteration, Preconditioner};
#[cfg(feature = "sparse")]
pub use sparse::{MatrixLayout, Spconvert, Spinsert, Spmm, Spmv};

/// The names that most programs use: `use tilework::prelude::*;`.
///
/// # Where a name is
///
/// - Each public name has one home: the module of its family ([`dense`], [`sparse`], ...) or of its task ([`gpu`],
///   [`stream`], [`mod@tune`], ...).
/// - The crate's root repeats the runtime (devices, buffers, recorders, plans, errors), and every op and solver with
///   the operators and the types of its options. Tiles, which tuning sets, traits, formats of sparse matrices, and
///   `nn::Sequential` with its parts stay at home.
/// - The prelude repeats the root without errors, reports, element types, host arrays, ops built by name, what calls
///   return, the pages and stages of attention, and the ops of training.
pub mod prelude {
    pub use crate::{Activation, Axpy, Broadcast, Map, MapFn, Scal, Transform, TransformFn, Zip, ZipFn};
    #[cfg(feature = "primitives")]
    pub use crate::{AdaptiveGrid, Frontier, Quadtree};
    #[cfg(feature = "primitives")]
    pub use crate::{AdjacentDifference, Reverse, Rotate};
    #[cfg(feature = "primitives")]
    pub use crate::{Affine, LogSumExp, MeanVariance, MinMax, StateOp, Sum64};
    pub use crate::{Arg, Buffer, Gpu, GpuOptions, Plan, Plannable, Recorder, Slice, When};
    #[cfg(feature = "primitives")]
    pub use crate::{ArgMax, ArgMin, CustomOp, Max, Min, Prod, Reduce, Scan, ScanByKey, SegmentedScan, Sum};
    #[cfg(feature = "primitives")]
    pub use crate::{Argsort, Categorical, NthElement, Quantile, RadixSort, SegmentedSort, Shuffle, TopK, TopKRows};
    #[cfg(feature = "primitives")]
    pub use crate::{Asum, Dot, Iamax, Iamin, KeyBits, LowerBound, Merge, Nrm2, UpperBound};
    #[cfg(feature = "attention")]
    pub use crate::{Attention, KvAppend, KvType};
    #[cfg(feature = "nn")]
    pub use crate::{
        BatchNorm, Dropout, LayerNorm, LogSoftmax, MeanPool, Pool2d, PoolKind, RmsNorm, Rope, SampleLogits, Softmax,
    };
    #[cfg(feature = "image")]
    pub use crate::{Blur, Divide, Equalize, Gaussian, Gradient, Grey, GreyWeights, Image, Median, Sobel};
    #[cfg(feature = "conv")]
    pub use crate::{Boundary, Conv2d, ConvTranspose2d, Filter1d, Filter2d, Filter3d};
    #[cfg(feature = "quantize")]
    pub use crate::{Cast, Dequantize, GemmInt8, Quantize, Scales};
    #[cfg(feature = "dense")]
    pub use crate::{
        Caxpy, Cdot, Cgemm, Cgemv, Concatenate, Gbmv, Gemm, GemmBatched, GemmGrouped, Gemv, Ger, PadAxes, PadMode,
        PermuteAxes, Precision, Rot, Rotg, Rotmg, StridedCopy, Swap, Symm, Symv, Syr, Syr2, Syr2k, Syrk, Transpose,
        Trmm, Trmv, Trsm, Trsv,
    };
    #[cfg(feature = "sparse")]
    pub use crate::{
        ConjugateGradient, DeviceMatrix, MatrixLayout, PageRank, PowerIteration, Preconditioner, Spconvert, Spinsert,
        Spmm, Spmv,
    };
    #[cfg(feature = "primitives")]
    pub use crate::{Distribution, Gather, Random, Scatter, ScatterOp};
    #[cfg(feature = "primitives")]
    pub use crate::{Find, IsSorted, MergeSort, SetDifference, SetIntersection, SetUnion, UniqueByKey};
    #[cfg(feature = "primitives")]
    pub use crate::{
        Histogram, Histogram2d, HistogramChannels, Partition, Predicate, RunLength, Select, SelectColumns, SplitParts,
        Unique, WeightedHistogram,
    };
    #[cfg(feature = "primitives")]
    pub use crate::{ReduceByKey, ReduceOffsets, ScanOffsets, SegmentedReduce};
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
