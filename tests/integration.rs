//! All tests that need the whole crate, in one binary so that they share devices and pipelines.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod architecture;
mod conformance;
mod conv {
    mod conv1d;
    mod conv2d;
    mod conv3d;
}
mod dense {
    mod gemm;
    mod gemm_batched;
    mod gemm_coop;
    mod gemv;
    mod transpose;
}
mod elementwise {
    mod axpy;
    mod map;
    mod zip;
}
mod examples {
    #[path = "../../examples/streaming/mod.rs"]
    mod streaming;

    mod rows;
    mod wordcount;
}
mod image {
    mod blur;
    mod grey;
}
mod nn {
    mod layer_norm;
    mod log_softmax;
    mod pool;
    mod pool_backward;
    mod rms_norm;
    mod rows;
    mod softmax;
}
mod primitives {
    mod histogram;
    mod partition;
    mod reduce;
    mod reduce_by_key;
    mod run_length;
    mod scan;
    mod segmented_reduce;
    mod segmented_scan;
    mod select;
    mod sort;
    mod top_k;
    mod unique;
}
mod readme;
mod runtime;
mod shaders;
mod sparse {
    mod spmv;
}
mod support;
