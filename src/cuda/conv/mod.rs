//! Lowerings of convolution layers for CUDA.

mod conv;

pub(super) use conv::samples;
