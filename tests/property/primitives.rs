//! Cases of partition, whose count says where its two sides meet.

use super::draw::{Draw, typed};
use super::guarded::Case;
use crate::support::Sample;
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference;

pub(super) fn partition(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Partition: Op<T>,
    {
        let (n, variant) = (draw.length(0, 9000), draw.variant(Partition::variants()));
        let (x, flags) = (draw.any::<T>(n), draw.flags(n));
        let (want, kept) = reference::partition(&x, &flags);
        let case = Case::new::<T>(Partition::new(n).variant(variant)).given(&x).given(&flags);
        case.exactly(&want).exactly(&[kept as u32])
    }
    typed!(draw, of, [f32, f16, i32, u32])
}
