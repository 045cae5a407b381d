//! The registry of ops, which executors do not know and tuning does.

use crate::program::OpInfo;
use crate::{attention, conv, dense, elementwise, image, nn, primitives, quantize, sparse};

/// Every op, by family: the registry that tests, benches and the `op` example iterate.
pub fn ops() -> impl Iterator<Item = &'static OpInfo> {
    elementwise::OPS
        .iter()
        .chain(primitives::OPS)
        .chain(dense::OPS)
        .chain(sparse::OPS)
        .chain(conv::OPS)
        .chain(quantize::OPS)
        .chain(image::OPS)
        .chain(nn::OPS)
        .chain(attention::OPS)
}
