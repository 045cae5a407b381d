//! Measured choice between the variants of an op, on the device at hand.
//!
//! Every op chooses a variant, and some a tile, by a policy: a plain function of the device's limits and the shape, made
//! from measurements on few devices. [`tune`] measures the alternatives on yours. Planning takes a winner from then on
//! for every shape of its class (same op, types, kernels, and sizes up to the same powers of two), unless a variant is
//! asked for by name, and says so in its report. Winners are kept in the cache directory, for this adapter, driver and
//! version of tilework; [`GpuOptions::tuning`](crate::GpuOptions) says whether planning looks at them, or even measures
//! by itself.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use std::time::Duration;
//! use tilework::prelude::*;
//! use tilework::tune::{TuningOptions, tune};
//!
//! let gpu = Gpu::new()?;
//! let transpose = Transpose::new(300, 400);
//! let options = TuningOptions { budget: Duration::from_millis(200), save: false, ..Default::default() };
//! let report = tune::<f32, _>(&gpu, &transpose, &options)?;
//! println!("{report}");
//! // As tuned, if anything was faster.
//! let plan = transpose.plan::<f32>(&gpu)?;
//! assert_eq!(plan.program().variant(), report.best.variant);
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! # Right before fast
//! What a variant computes is held against what the default computes on the same operands: integers exactly (bytes of
//! image filters within one), floats within a bound from the number of terms. One that differs is denied: it is put on
//! the driver's [denylist](crate::Gpu::denied), never chosen there again, and refused where it is asked for by name.
//! So is one with which the device is lost: that ends the search, and no later one begins with it.
//! Where two other variants agree with each other, and none with the default, it is the default that is denied. A
//! variant whose bits vary from run to run, or that needs cooperative matrices, never replaces one that does not.
//!
//! # What is tried
//! The variants of the op's list, and the rows of its table of tiles where it has one (matrix products, convolution
//! layers), until the time is up, or one is within 5 % of what the device's measured ceilings allow. A kernel whose text
//! is so long that it compiles slowly is left out, on processors much sooner. A winner must be ahead by 3 % in two
//! measurements.

#[cfg(feature = "tune")]
mod check;
mod class;
#[cfg(feature = "tune")]
mod measure;
#[cfg(feature = "tune")]
mod operands;
#[cfg(feature = "tune")]
mod search;

#[cfg(feature = "stream")]
pub(crate) use class::lower_known;
pub(crate) use class::lower_on;
#[cfg(feature = "tune")]
pub use measure::{Candidate, Outcome, Stopped, TuningOptions, TuningReport, tune, tune_with, verify};

use crate::element::Element;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::program::{self, Form, Op, Program};

impl Gpu {
    /// What [`plan`](crate::Plannable::plan) makes ready, as plain data: by the op's policy, or as tuned, and without what is
    /// denied here. [`Op::lower`] on the device's profile knows the policy alone.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (sum, gemm) = (Reduce::new(Sum, 1000), Gemm::new(64, 64, 64));
    /// // All kernels at once, in parallel.
    /// gpu.warm_up([gpu.lower::<f32, _>(&sum)?, gpu.lower::<f32, _>(&gemm)?])?;
    /// let plan = gemm.plan::<f32>(&gpu)?; // compiles nothing
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the op's `lower`.
    pub fn lower<T: Element, D: Op<T>>(&self, op: &D) -> Result<Program> {
        lower_on(self, &|profile| program::lower(op, profile))
    }

    /// As [`lower`](Self::lower), of an op that was formed by names.
    ///
    /// # Errors
    /// Those of the op's `lower`.
    pub fn lower_form(&self, form: &Form) -> Result<Program> {
        lower_on(self, &|profile| form.lower(profile))
    }
}
