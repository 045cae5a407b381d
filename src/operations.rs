//! The catalogue of operations, which executors do not know and tuning does.

#[cfg(feature = "attention")]
use crate::attention;
#[cfg(feature = "conv")]
use crate::conv;
#[cfg(feature = "dense")]
use crate::dense;
use crate::elementwise;
#[cfg(feature = "image")]
use crate::image;
#[cfg(feature = "nn")]
use crate::nn;
#[cfg(feature = "primitives")]
use crate::primitives;
use crate::program::Operation;
#[cfg(feature = "quantize")]
use crate::quantize;
#[cfg(feature = "sparse")]
use crate::sparse;

/// The families whose features are on.
const FAMILIES: &[&[Operation]] = &[
    elementwise::OPS,
    #[cfg(feature = "primitives")]
    primitives::OPS,
    #[cfg(feature = "dense")]
    dense::OPS,
    #[cfg(feature = "sparse")]
    sparse::OPS,
    #[cfg(feature = "sparse")]
    sparse::SOLVERS,
    #[cfg(feature = "conv")]
    conv::OPS,
    #[cfg(feature = "quantize")]
    quantize::OPS,
    #[cfg(feature = "image")]
    image::OPS,
    #[cfg(feature = "nn")]
    nn::OPS,
    #[cfg(feature = "attention")]
    attention::OPS,
];

/// Returns the catalogue: every op and solver as its own file declares it, by family, without those of features that
/// are off.
///
/// The `op` and `explain` examples, tuning, tests, benches, the simulator's suite and the tables of the README are
/// loops over it.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().copied().flatten()
}
