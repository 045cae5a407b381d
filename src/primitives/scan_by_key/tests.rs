use super::*;
use crate::ErrorKind;

#[test]
fn rejects_undefined_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let of = |scan: ScanByKey| Op::<f32>::lower(&scan, &profile).unwrap_err().kind();
    assert_eq!(of(ScanByKey::new(Sum, 9).variant("kogge-stone")), ErrorKind::InvalidArgument);
    assert_eq!(of(ScanByKey::new(Sum, (32 << 20) + 1)), ErrorKind::TooLarge);
    assert_eq!(of(ScanByKey::new(Sum, 9).variant("lookback").deterministic()), ErrorKind::Unsupported);
    assert!(Op::<f32>::lower(&ScanByKey::new(Sum, 0), &profile).unwrap().dispatches.is_empty());
}

#[test]
fn the_largest_binding_is_one_chunk() {
    let profile = DeviceProfile::webgpu_defaults();
    let scan = ScanByKey::new(Sum, 32 << 20);
    assert_eq!(Op::<u32>::lower(&scan, &profile).unwrap().dispatches.len(), 2);
}
