use super::*;
use crate::ErrorKind;

#[test]
fn rejects_undefined_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let of = |scan: SegmentedScan| Op::<f32>::lower(&scan, &profile).unwrap_err().kind();
    assert_eq!(of(SegmentedScan::new(Sum, 9).variant("kogge-stone")), ErrorKind::InvalidArgument);
    assert_eq!(of(SegmentedScan::new(Sum, 1 << 27)), ErrorKind::TooLarge);
    let lookback = SegmentedScan::new(Sum, 9).variant("lookback").deterministic();
    assert_eq!(of(lookback), ErrorKind::Unsupported);
    assert!(Op::<f32>::lower(&SegmentedScan::new(Sum, 0), &profile).unwrap().dispatches.is_empty());
    assert_eq!(crate::DType::U32, Op::<f32>::lower(&SegmentedScan::new(Sum, 5), &profile).unwrap().operands[1].dtype);
}
