//! What the files above this module import by `use crate::program::prelude::*`: the names of this module, of errors,
//! element types, shapes and arrays, and what a kernel's text is made of.

pub(crate) use super::fill::fill;
pub(crate) use super::fit::{BoundChunk, runs_everywhere};
pub(crate) use super::*;
pub(crate) use crate::array::{HostArray, HostData, shape_text};
pub(crate) use crate::element::{DType, Element};
pub(crate) use crate::error::*;
pub(crate) use crate::shader::{Fragment, Spec};
pub(crate) use crate::shape::*;
pub(crate) use half::f16;
