//! All tests that need the whole crate, in one binary so that they share devices and pipelines.

mod architecture;
mod conformance;
mod primitives {
    mod reduce;
}
mod shaders;
mod support;
