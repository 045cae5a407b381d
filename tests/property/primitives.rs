//! Cases of partition, whose count says where its two sides meet, and of gather, whose rows stay short.

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

pub(super) fn gather(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Gather: Op<T>,
    {
        let (rows, n, taken) = (draw.length(0, 70), draw.length(0, 300), draw.length(0, 200));
        let (table, indices) = (draw.any::<T>(rows * n), draw.indices(taken, rows));
        let (checked, variant) = (draw.option(&[false, true]), draw.variant(Gather::variants()));
        let op = Gather::new([rows, n], taken).variant(variant).when(checked, Gather::checked);
        let case = Case::new::<T>(op).given(&table).given(&indices);
        let case = case.exactly(&reference::gather(n, &table, &indices));
        let invalid = indices.iter().filter(|i| **i as usize >= rows).count();
        if checked { case.exactly(&[invalid as u32]) } else { case }
    }
    typed!(draw, of, [f32, f16, i32, u32, u8, i8])
}
