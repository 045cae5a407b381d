//! All tests that need the whole crate, in one binary so that they share devices and pipelines.
//!
//! The default run compares every op and variant with its reference on one device, in a few minutes.
//! `TILEWORK_TESTS=all` is the complete run, as in `.ci/run`: every case, every way to open the device, every profile
//! and translation. Slow tests ask `support::coverage` which of their cases to run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod api;
mod architecture;
mod attention {
    #[allow(clippy::module_inception, reason = "an op has a file of its name")]
    mod attention;
    mod attention_backward;
    mod heads;
    mod kv_append;
    mod page_pool;
    mod saved;
}
mod block;
mod catalogue;
mod conformance;
mod conv {
    #[allow(clippy::module_inception, reason = "an op has a file of its name")]
    mod conv;
    mod conv_backward_data;
    mod conv_backward_weights;
    mod conv_transpose;
    mod filter1d;
    mod filter2d;
    mod filter3d;
    mod filters;
    mod halves;
    mod layers;
}
#[cfg(feature = "cuda")]
mod cuda {
    mod attention;
    mod attention_split;
    mod conv;
    mod gemm;
    mod gemm_int8;
    #[cfg(target_os = "linux")]
    mod interop;
    mod kernels;
    mod runtime;
    mod scan;
    mod zip;
}
mod dense {
    mod caxpy;
    mod cdot;
    mod cgemm;
    mod cgemv;
    mod concatenate;
    mod gbmv;
    mod gemm;
    mod gemm_batched;
    mod gemm_coop;
    mod gemm_grouped;
    mod gemv;
    mod ger;
    mod increments;
    mod pad_axes;
    mod permute_axes;
    mod rot;
    mod rotg;
    mod rotmg;
    mod strided_copy;
    mod swap;
    mod symm;
    mod symv;
    mod syr;
    mod syr2;
    mod syr2k;
    mod syrk;
    mod transpose;
    mod trmm;
    mod trmv;
    mod trsm;
    mod trsv;
}
mod elementwise {
    mod axpy;
    mod map;
    mod scal;
    mod transform;
    mod zip;
}
mod examples {
    #[path = "../../examples/common/mod.rs"]
    pub(crate) mod common;

    mod adaptive;
    mod args;
    mod cnn;
    mod compare;
    mod decode;
    mod encoder;
    mod explain;
    mod image;
    #[allow(dead_code, reason = "only its tests run here")]
    #[path = "../../examples/ladder/cli.rs"]
    mod ladder;
    mod outputs;
    mod overlap;
    mod pagerank;
    mod program;
    mod quadtree;
    mod rows;
    mod sanitize;
    mod shard;
    mod solve;
    mod tune;
    mod wordcount;
}
mod fragments;
mod image {
    mod blur;
    mod equalize;
    mod gaussian;
    mod grey;
    mod median;
    mod pixels;
    mod sobel;
}
mod interop {
    mod dense;
    #[cfg(feature = "faer")]
    mod faer;
    #[cfg(feature = "nalgebra")]
    mod nalgebra;
    #[cfg(feature = "ndarray")]
    mod ndarray;
    #[cfg(all(feature = "nalgebra-sparse", feature = "sprs"))]
    mod sparse;
}
mod matrix;
mod names;
mod nn {
    mod activation_backward;
    mod adam;
    mod batch_norm;
    mod batch_norm_backward;
    mod batch_norm_train;
    mod bias_backward;
    mod binary_cross_entropy;
    mod cross_entropy;
    mod dropout;
    mod layer_norm;
    mod layer_norm_backward;
    mod log_softmax;
    mod log_softmax_backward;
    mod mean_pool;
    mod pool;
    mod pool_backward;
    mod pool_backward_weights;
    mod rms_norm;
    mod rms_norm_backward;
    mod rope;
    mod rows;
    mod sample_logits;
    mod sequential;
    mod sgd;
    mod softmax;
    mod softmax_backward;
    mod squared_error;
    pub(crate) mod training;
}
mod primitives {
    mod adaptive_grid;
    mod adjacent_difference;
    mod argsort;
    mod asum;
    mod categorical;
    mod dot;
    mod find;
    mod frontier;
    mod gather;
    mod histogram;
    mod histogram_2d;
    mod histogram_channels;
    mod iamax;
    mod iamin;
    mod is_sorted;
    mod lower_bound;
    mod merge;
    pub(crate) mod merge_sort;
    mod nrm2;
    mod nth_element;
    mod partition;
    mod quadtree;
    mod quantile;
    mod random;
    mod reduce;
    mod reduce_by_key;
    mod reduce_offsets;
    mod reverse;
    mod rotate;
    mod run_length;
    mod scan;
    mod scan_by_key;
    mod scan_offsets;
    mod scatter;
    mod segmented_reduce;
    mod segmented_scan;
    mod segmented_sort;
    mod select;
    mod select_columns;
    mod set_difference;
    mod set_intersection;
    mod set_union;
    mod shuffle;
    mod sort;
    mod split_parts;
    mod state;
    mod top_k;
    mod top_k_rows;
    mod unique;
    mod unique_by_key;
    mod upper_bound;
    mod weighted_histogram;
}
mod property;
mod prose;
mod quantize {
    mod cast;
    mod codes;
    mod dequantize;
    mod gemm_int8;
    #[allow(clippy::module_inception, reason = "an op has a file of its name")]
    pub(crate) mod quantize;
}
mod readme;
mod runtime;
mod shaders;
mod shard;
mod sim {
    mod bad_input;
    mod broken;
    mod devices;
    mod known;
    mod ops;
    mod programs;
}
mod sparse {
    mod conjugate_gradient;
    mod page_rank;
    mod power;
    mod real;
    mod spconvert;
    mod spinsert;
    mod spmm;
    mod spmv;
}
mod support;
mod versions;
