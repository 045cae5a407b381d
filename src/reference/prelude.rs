//! What the file of a reference imports by `use super::prelude::*`.

pub(super) use super::judge::*;
pub(super) use super::number::{
    LEAST_NORMAL, Number, chain, exp_ulps, of_flushed_squares, readings, rounding, spread, ulp,
};
pub(super) use crate::program::prelude::*;
