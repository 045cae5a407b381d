//! The catalogue of operations, which executors do not know and tuning does.

use crate::program::Operation;
use crate::{attention, conv, dense, elementwise, image, nn, primitives, quantize, sparse};

/// The catalogue: every op and solver as its own file declares it, by family.
///
/// The `op` and `explain` examples, tuning, tests, benches, the simulator's suite and the tables of the README are
/// loops over it.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    elementwise::OPS
        .iter()
        .chain(primitives::OPS)
        .chain(dense::OPS)
        .chain(sparse::OPS)
        .chain(sparse::SOLVERS)
        .chain(conv::OPS)
        .chain(quantize::OPS)
        .chain(image::OPS)
        .chain(nn::OPS)
        .chain(attention::OPS)
}
