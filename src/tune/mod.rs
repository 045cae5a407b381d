//! Measures the variants of an op on the device at hand and remembers the fastest.
//!
//! Every op chooses its variant, and some a tile, by a policy: a function of the device's limits and the shape, based
//! on measurements on few devices. [`tune`] measures the alternatives on yours. From then on planning uses the winner
//! for every shape of its class (same op, types, kernels, and sizes up to the same powers of two), unless the caller
//! names a variant. The plan's report says so. Winners are kept in the cache directory for this adapter, driver and
//! version of tilework. [`GpuOptions::tuning`](crate::GpuOptions) sets whether planning uses them, or even measures
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
//! // The tuned variant, if any was faster.
//! let plan = transpose.plan::<f32>(&gpu)?;
//! assert_eq!(plan.program().variant(), report.best.variant);
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! # Correct before fast
//! Each variant's results are compared with the default's on the same operands: integers exactly (bytes of image
//! filters within one), floats within a bound that grows with the number of terms. A variant that differs is denied:
//! it goes on the driver's [denylist](crate::Gpu::denied), is never chosen there again, and naming it is an error. So
//! is a variant that loses the device: that ends the search, and later searches skip it. If two other variants agree
//! with each other and none with the default, the default is denied. A variant whose bits vary from run to run, or
//! that needs cooperative matrices, never replaces one that does not.
//!
//! # Candidates
//! Tuning tries the op's variants, and the rows of its table of tiles if it has one (matrix products, convolution
//! layers), until the time is up or one is within 5 % of the device's measured ceilings. It skips kernels whose text
//! is so long that they compile slowly, sooner on software drivers. A winner must be ahead by 3 % in two
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

use crate::gpu::Gpu;
use crate::program;
use crate::program::prelude::*;

impl Gpu {
    /// Lowers an op as [`plan`](crate::Plannable::plan) does: by the op's policy or as tuned, without variants denied
    /// here. [`Op::lower`] on the device's profile uses the policy alone.
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

    /// As [`lower`](Self::lower), for an op that was built by name.
    ///
    /// # Errors
    /// Those of the op's `lower`.
    pub fn lower_call(&self, call: &OpCall) -> Result<Program> {
        lower_on(self, &|profile| call.lower(profile))
    }
}
