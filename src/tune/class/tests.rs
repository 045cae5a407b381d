use super::*;
use crate::gpu::{CacheDir, GpuOptions};
use crate::primitives::{Reduce, Sum};
use crate::program::{Denied, Op};
use std::cell::Cell;

#[test]
fn a_tuned_op_is_lowered_once_when_it_is_planned_again() {
    if Gpu::adapters().is_empty() {
        return;
    }
    let options = GpuOptions { cache: CacheDir::Off, ..GpuOptions::default() };
    let gpu = pollster::block_on(Gpu::request(options)).unwrap();
    let lowered = Cell::new(0);
    let planned = |n: usize| {
        lowered.set(0);
        let program = lower_on(&gpu, &|profile| {
            lowered.set(lowered.get() + 1);
            Op::<f32>::lower(&Reduce::new(Sum, n), profile)
        });
        (program.unwrap(), lowered.get())
    };
    let (default, times) = planned(100_000);
    assert_eq!(times, 1);
    let other = if default.variant() == "shared" { "sequential" } else { "shared" };
    let better = Some((other.to_owned(), None));
    let winner = Winner { better, before: 2.0, after: 1.0 };
    gpu.remember("reduce", &class(&default), &winner, false);
    let (tuned, times) = planned(100_000);
    assert_eq!((tuned.variant(), times), (other, 2));
    for _ in 0..3 {
        assert_eq!(planned(100_000), (tuned.clone(), 1));
    }
    // Another shape of the class is lowered separately. Then both are known.
    let (longer, _) = planned(100_001);
    assert_eq!((longer.operands[0].len, longer.variant()), (100_001, other));
    assert_eq!((planned(100_001), planned(100_000)), ((longer, 1), (tuned, 1)));
    // Later results count.
    let nothing = Winner { better: None, before: 1.0, after: 1.0 };
    gpu.remember("reduce", &class(&default), &nothing, false);
    assert_eq!(planned(100_000), (default.clone(), 1));
    gpu.remember("reduce", &class(&default), &winner, false);
    planned(100_000);
    let denied = Denied { op: "reduce".into(), variant: other.into(), row: None, why: "a test".into() };
    gpu.deny(&denied, false);
    assert_ne!(planned(100_000).0.variant(), other);
}
