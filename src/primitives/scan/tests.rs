use super::*;
use crate::ErrorKind;
use crate::primitives::ArgMin;
use crate::program::Determinism;

#[test]
fn chunks_cover_every_element_in_the_order_of_the_scan() {
    let profile = DeviceProfile::webgpu_defaults();
    for reverse in [false, true] {
        let scan = Scan::new(Sum, 60_000_001).when(reverse, |op| op.reverse());
        let program = Op::<f32>::lower(&scan, &profile).unwrap();
        assert_eq!(program.dispatches.len(), 3);
        let outputs = program.dispatches[1..].iter().map(|d| &d.bindings[2..4]);
        let mut ranges: Vec<_> = outputs.flatten().map(|b| (b.offset, b.offset + b.size)).collect();
        assert_eq!(ranges[0].0 == 0, !reverse);
        ranges.sort_unstable();
        assert_eq!((ranges[0].0, ranges[3].1), (0, 240_000_004));
        assert!(ranges.windows(2).all(|w| w[0].1 == w[1].0), "{ranges:?}");
    }
}

#[test]
fn rejects_undefined_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |r: Result<Program>| r.unwrap_err().kind();
    assert_eq!(kind(Op::<u32>::lower(&Scan::new(ArgMin, 9), &profile)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<u8>::lower(&Scan::new(Min, 9), &profile)), ErrorKind::Unsupported);
    let of = |scan: Scan| Op::<f32>::lower(&scan, &profile);
    assert_eq!(kind(of(Scan::new(Sum, 9).variant("subgroup"))), ErrorKind::Unsupported);
    assert_eq!(kind(of(Scan::new(Sum, 9).variant("magic"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(of(Scan::new(Sum, 1 << 27))), ErrorKind::TooLarge);
    assert_eq!(kind(of(Scan::rows(Sum, usize::MAX, 2))), ErrorKind::TooLarge);
    let lookback = Scan::new(Sum, 9).variant("lookback").deterministic();
    assert_eq!(kind(of(lookback.clone())), ErrorKind::Unsupported);
    assert_eq!(Op::<i32>::lower(&lookback, &profile).unwrap().determinism, Determinism::SameBits);
}

#[test]
fn empty_input_dispatches_nothing() {
    let profile = DeviceProfile::webgpu_defaults();
    for (rows, n) in [(1, 0), (0, 5), (5, 0)] {
        assert!(Op::<f32>::lower(&Scan::rows(Sum, rows, n), &profile).unwrap().dispatches.is_empty());
    }
}
