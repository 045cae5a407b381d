//! All tests that need the whole crate, in one binary so that they share devices and pipelines.

mod architecture;
mod conformance;
mod dense {
    mod gemm;
}
mod elementwise {
    mod axpy;
    mod map;
    mod zip;
}
mod primitives {
    mod reduce;
}
mod runtime;
mod shaders;
mod support;
