//! Cases of scans, reductions, sorts and selections.

use super::draw::{Contents, Draw, typed};
use super::guarded::Case;
use crate::support::Sample;
use half::f16;
use std::fmt::Debug;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::Op;
use tilework::reference;
use tilework::{DType, Element};

/// Elements for an operator: products neither vanish nor overflow.
fn operands<T: Sample>(draw: &mut Draw, operator: &Operator, n: usize) -> Vec<T> {
    match operator {
        Operator::Prod if T::DTYPE.is_float() => {
            let near_one = |x: &T| T::from_f64(1.0 + 0.01 * x.to_f64());
            draw.numbers::<T>(n).iter().map(near_one).collect()
        }
        Operator::Sum if T::DTYPE.is_float() => draw.special(n),
        _ => draw.any(n),
    }
}

pub(super) fn reduce(draw: &mut Draw) -> Case {
    fn by<T: Sample, O>(draw: &mut Draw, op: O) -> Case
    where
        O: Reducer<T, Output: Element> + Debug + 'static,
    {
        let variant = draw.variant(Reduce::variants());
        let operator = op.operator();
        let (rows, n) = if draw.option(&[false, true]) {
            (draw.length(0, 40), draw.length(1, 300))
        } else {
            (1, draw.length(usize::from(!operator.has_identity()), 9000))
        };
        let x = operands::<T>(draw, &operator, rows * n);
        let want = reference::reduce(&operator, rows, n, &x).unwrap();
        let bound = reference::reduce_bound(&operator, rows, n, &x);
        Case::new::<T>(Reduce::rows(op, rows, n).variant(variant)).given(&x).near::<O::Output>(want, bound)
    }
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Sum: Reducer<T, Output: Element>,
        Prod: Reducer<T, Output: Element>,
        Min: Reducer<T, Output: Element>,
        Max: Reducer<T, Output: Element>,
        ArgMin: Reducer<T, Output: Element>,
        ArgMax: Reducer<T, Output: Element>,
    {
        match draw.option(&[0, 1, 2, 3, 4, 5]) {
            0 => by::<T, _>(draw, Sum),
            1 => by::<T, _>(draw, Prod),
            2 => by::<T, _>(draw, Min),
            3 => by::<T, _>(draw, Max),
            4 => by::<T, _>(draw, ArgMin),
            _ => by::<T, _>(draw, ArgMax),
        }
    }
    typed!(draw, of, [f32, f16, i32, u32, u8, i8])
}

/// Calls `by` with one of the operators of scans.
macro_rules! with_operator {
    ($draw:ident, $by:ident) => {
        match $draw.option(&[0, 1, 2, 3]) {
            0 => $by::<T, _>($draw, Sum),
            1 => $by::<T, _>($draw, Max),
            2 => $by::<T, _>($draw, Min),
            _ => $by::<T, _>($draw, Prod),
        }
    };
}

/// Declares the cases of an op for all types and operators.
macro_rules! by_operator {
    ($name:ident, [$($t:ty),+], |$draw:ident, $op:ident, $T:ident| $body:expr) => {
        pub(super) fn $name(draw: &mut Draw) -> Case {
            fn by<$T: Sample, O: Reducer<$T, Output = $T> + Debug + 'static>($draw: &mut Draw, $op: O) -> Case {
                $body
            }
            fn of<T: Sample>(draw: &mut Draw) -> Case
            where
                Sum: Reducer<T, Output = T>,
                Prod: Reducer<T, Output = T>,
                Min: Reducer<T, Output = T>,
                Max: Reducer<T, Output = T>,
            {
                with_operator!(draw, by)
            }
            typed!(draw, of, [$($t),+])
        }
    };
}

by_operator!(scan, [f32, f16, i32, u32], |draw, op, T| {
    let variant = draw.variant(Scan::variants());
    let (exclusive, reverse) = (draw.option(&[false, true]), draw.option(&[false, true]));
    let operator = op.operator();
    let rows = if draw.option(&[false, true]) { draw.length(0, 30) } else { 1 };
    let n = draw.length(0, if rows == 1 { 9000 } else { 300 });
    let x = operands::<T>(draw, &operator, rows * n);
    let want = reference::scan(&operator, rows, n, exclusive, reverse, &x).unwrap();
    let bound = reference::scan_bound(&operator, rows, n, exclusive, reverse, &x);
    let scan = Scan::rows(op, rows, n)
        .when(exclusive, |op| op.exclusive())
        .when(reverse, |op| op.reverse())
        .variant(variant);
    Case::new::<T>(scan).given(&x).near::<T>(want, bound)
});

by_operator!(segmented_scan, [f32, f16, i32, u32], |draw, op, T| {
    let variant = draw.variant(SegmentedScan::variants());
    let exclusive = draw.option(&[false, true]);
    let operator = op.operator();
    let n = draw.length(0, 9000);
    let (heads, x) = (draw.flags(n), operands::<T>(draw, &operator, n));
    let want = reference::segmented_scan(&operator, exclusive, &x, &heads).unwrap();
    let bound = reference::segmented_scan_bound(&operator, exclusive, &x, &heads);
    let scan = SegmentedScan::new(op, n).when(exclusive, |op| op.exclusive()).variant(variant);
    Case::new::<T>(scan).given(&x).given(&heads).near::<T>(want, bound)
});

by_operator!(segmented_reduce, [f32, i32, u32], |draw, op, T| {
    let variant = draw.variant(SegmentedReduce::variants());
    let operator = op.operator();
    let n = draw.length(0, 9000);
    let (heads, x) = (draw.flags(n), operands::<T>(draw, &operator, n));
    let want = reference::segmented_reduce(&operator, &x, &heads).unwrap();
    let bound = reference::segmented_reduce_bound(&operator, &x, &heads);
    let count = [want.len() as u32];
    let case = Case::new::<T>(SegmentedReduce::new(op, n).variant(variant)).given(&x).given(&heads);
    case.front_near::<T>(n, want, bound).exactly(&count)
});

pub(super) fn reduce_by_key(draw: &mut Draw) -> Case {
    fn by<K, T, O>(draw: &mut Draw, op: O) -> Case
    where
        K: Sample,
        T: Sample,
        O: Reducer<T, Output = T> + Debug + 'static,
        ReduceByKey<O, K>: Op<T> + Debug + 'static,
    {
        let variant = draw.variant(ReduceByKey::variants());
        let operator = op.operator();
        let n = draw.length(0, 9000);
        let (keys, x) = (draw.runs::<K>(n), operands::<T>(draw, &operator, n));
        let (keys_out, want) = reference::reduce_by_key(&operator, &keys, &x).unwrap();
        let bound = reference::reduce_by_key_bound(&operator, &keys, &x);
        let count = [want.len() as u32];
        let op = ReduceByKey::new(op, n).with_keys::<K>().variant(variant);
        let case = Case::new::<T>(op).given(&keys).given(&x).front_of(n, &keys_out);
        case.front_near::<T>(n, want, bound).exactly(&count)
    }
    fn by_words<T: Sample, O: Reducer<T, Output = T> + Debug + 'static>(draw: &mut Draw, op: O) -> Case
    where
        ReduceByKey<O, u32>: Op<T> + 'static,
        ReduceByKey<O, f32>: Op<T> + 'static,
    {
        if draw.option(&[true, false]) { by::<u32, T, O>(draw, op) } else { by::<f32, T, O>(draw, op) }
    }
    match draw.option(&[0, 1, 2, 3]) {
        0 => by_words::<f32, _>(draw, Sum),
        1 => by_words::<f32, _>(draw, Max),
        2 => by_words::<i32, _>(draw, Min),
        _ => by_words::<u32, _>(draw, Prod),
    }
}

pub(super) fn select(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Select: Op<T>,
    {
        let (n, variant) = (draw.length(0, 9000), draw.variant(Select::variants()));
        let (x, flags) = (draw.any::<T>(n), draw.flags(n));
        let op = Select::new(n).variant(variant);
        if draw.option(&[false, true]) {
            let length = draw.length(0, n + 2);
            let there = length.min(n);
            let kept = reference::select(&x[..there], &flags[..there]);
            let case = Case::new::<T>(op.counted()).given(&x).given(&flags).given(&[length as u32]);
            return case.front_of(n, &kept).exactly(&[kept.len() as u32]);
        }
        let kept = reference::select(&x, &flags);
        Case::new::<T>(op).given(&x).given(&flags).front_of(n, &kept).exactly(&[kept.len() as u32])
    }
    typed!(draw, of, [f32, f16, i32, u32])
}

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

pub(super) fn unique(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Unique: Op<T>,
    {
        let (n, variant) = (draw.length(0, 9000), draw.variant(Unique::variants()));
        let x = draw.runs::<T>(n);
        let want = reference::unique(&x);
        let case = Case::new::<T>(Unique::new(n).variant(variant)).given(&x);
        case.front_of(n, &want).exactly(&[want.len() as u32])
    }
    typed!(draw, of, [f32, f16, i32, u32])
}

pub(super) fn run_length(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        RunLength: Op<T>,
    {
        let (n, variant) = (draw.length(0, 9000), draw.variant(RunLength::variants()));
        let x = draw.runs::<T>(n);
        let (values, lengths) = reference::run_length(&x);
        let case = Case::new::<T>(RunLength::new(n).variant(variant)).given(&x);
        case.front_of(n, &values).front_of(n, &lengths).exactly(&[values.len() as u32])
    }
    typed!(draw, of, [f32, f16, i32, u32])
}

pub(super) fn sort(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(0, 9000), draw.variant(RadixSort::variants()));
        let descending = draw.option(&[false, true]);
        let bits = draw.option(&[0..32, 0..32, 0..9, 20..32]);
        let keys = if draw.pick(&[true, false]) { draw.any::<T>(n) } else { draw.runs::<T>(n) };
        let places = reference::sort_positions(&keys, descending, bits.clone());
        let sorted: Vec<T> = places.iter().map(|&i| keys[i]).collect();
        let op = RadixSort::new(n).when(descending, |op| op.descending()).bits(bits).variant(variant);
        match draw.option(&[0, 1, 2, 3]) {
            0 => Case::new::<T>(op).given(&keys).exactly(&sorted),
            1 => Case::new::<T>(op.in_place()).replaced(&keys, &sorted),
            form => {
                let values = draw.any::<u32>(n);
                let moved: Vec<u32> = places.iter().map(|&i| values[i]).collect();
                if form == 2 {
                    let case = Case::new::<T>(op.with_values()).given(&keys).given(&values);
                    case.exactly(&sorted).exactly(&moved)
                } else {
                    let case = Case::new::<T>(op.with_values().in_place());
                    case.replaced(&keys, &sorted).replaced(&values, &moved)
                }
            }
        }
    }
    typed!(draw, of, [u32, f32, i32])
}

pub(super) fn top_k(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(1, 9000), draw.variant(TopK::variants()));
        let smallest = draw.option(&[false, true]);
        let k = draw.length(1, n);
        let x = if draw.pick(&[true, false]) { draw.any::<T>(n) } else { draw.runs::<T>(n) };
        let places = reference::top_k(&x, k, smallest);
        let best: Vec<T> = places.iter().map(|&i| x[i]).collect();
        let places: Vec<u32> = places.iter().map(|&i| i as u32).collect();
        let op = TopK::new(n, k).when(smallest, |op| op.smallest()).variant(variant);
        Case::new::<T>(op).given(&x).exactly(&best).exactly(&places)
    }
    typed!(draw, of, [f32, i32, u32])
}

pub(super) fn histogram(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let (n, variant) = (draw.length(0, 9000), draw.variant(Histogram::variants()));
        let bins = draw.option(&[8, 64, 1000, 5]);
        let contents = if draw.pick(&[true, false]) { Contents::Any } else { Contents::Whole };
        let x = draw.elements::<T>(n, contents);
        let (lo, hi) = match T::DTYPE {
            DType::F32 | DType::F16 => (-1.5, 2.25),
            DType::I8 => (-3.0, 90.0),
            DType::I32 => (-4.0, 2e9),
            _ => (1.0, 200.0),
        };
        let op = if !T::DTYPE.is_float() && draw.pick(&[false, false, true]) {
            Histogram::new(n, bins)
        } else if draw.option(&[false, true]) {
            let edge = |i: usize| lo + (hi - lo) * (i * i) as f64 / (bins * bins) as f64;
            Histogram::with_edges(n, (0..=bins).map(edge).collect::<Vec<_>>())
        } else {
            Histogram::new(n, bins).range(lo, hi)
        };
        let want = reference::histogram(&op, &x).unwrap();
        Case::new::<T>(op.variant(variant)).given(&x).exactly(&want)
    }
    typed!(draw, of, [f32, f16, i32, u32, u8, i8])
}
