//! What the file of an op imports: `use crate::program::prelude::*`.

pub(crate) use super::ask::{Asked, OpCall, Role, by_type};
pub(crate) use super::call::operands;
pub(crate) use super::operation::{Comparison, Domain, Example, Operation};
pub(crate) use super::profile::DeviceProfile;
pub(crate) use super::settings::{Input, Setting};
pub(crate) use super::variant::{LENGTH, Variant, choose, counted};
pub(crate) use super::when::When;
pub(crate) use super::{
    Access, Binding, Cost, Grid, Kernel, Op, Operand, Program, Resource, element_fragment, kernel_params,
    lowered_as,
};
pub(crate) use crate::element::{DType, Element};
pub(crate) use crate::error::{Result, err};
pub(crate) use crate::shader::Spec;
