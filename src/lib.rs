//! tilework
pub mod dense;
mod element;
pub mod elementwise;
mod error;
pub mod gpu;
mod plan;
pub mod primitives;
pub mod program;
pub mod reference;
pub mod shader;
mod shape;

pub use element::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use gpu::{Buffer, Gpu, GpuOptions};
