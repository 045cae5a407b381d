//! Cases of the ops on elements.

use super::draw::{Draw, typed};
use super::guarded::{Case, wide};
use crate::support::Sample;
use half::f16;
use tilework::prelude::*;
use tilework::reference;

pub(super) fn axpy(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(0, 5000), draw.variant(Axpy::variants()));
        let alphas = if T::DTYPE.is_float() { [1.0, 0.0, -2.5, 1e-30] } else { [1.0, 0.0, 3.0, 1e6] };
        let alpha = draw.pick(&alphas);
        let (x, y) = (draw.any::<T>(n), draw.any::<T>(n));
        let mut want = y.clone();
        reference::axpy(alpha, &x, &mut want).unwrap();
        let bound = reference::axpy_bound(alpha, &x, &y).unwrap();
        Case::new::<T>(Axpy::new(n, alpha).variant(variant)).given(&x).updated(&y, wide(&want), bound)
    }
    typed!(draw, of, [f32, f16, i32, u32])
}

pub(super) fn map(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(0, 5000), draw.variant(Map::variants()));
        let functions: Vec<_> = MapFn::BUILT_IN.into_iter().filter(|f| f.supports(T::DTYPE)).collect();
        let function = draw.option(&functions);
        let x = draw.any::<T>(n);
        let want = reference::map(&function, &x).unwrap();
        let bound = reference::map_bound(&function, &x).unwrap();
        let op = Map::new(function, n).variant(variant);
        if draw.option(&[false, true]) {
            return Case::new::<T>(op.in_place()).updated(&x, wide(&want), bound);
        }
        Case::new::<T>(op).given(&x).close(&want, bound)
    }
    typed!(draw, of, [f32, f16, i32])
}

pub(super) fn zip(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(0, 5000), draw.variant(Zip::variants()));
        let function = draw.option(&ZipFn::BUILT_IN);
        let (x, y) = (draw.any::<T>(n), draw.any::<T>(n));
        let want = reference::zip(&function, &x, &y).unwrap();
        let bound = reference::zip_bound(&function, &x, &y).unwrap();
        Case::new::<T>(Zip::new(function, n).variant(variant)).given(&x).given(&y).close(&want, bound)
    }
    typed!(draw, of, [f32, f16, i32, u32])
}
