use super::*;
use crate::ErrorKind;
use crate::primitives::ArgMin;
use crate::program::Determinism;

#[test]
fn rejects_undefined_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |r: Result<Program>| r.unwrap_err().kind();
    let sum = |n| ReduceByKey::new(Sum, n);
    assert_eq!(kind(Op::<u32>::lower(&ReduceByKey::new(ArgMin, 9), &profile)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<half::f16>::lower(&sum(9), &profile)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<f32>::lower(&sum(9).variant("magic"), &profile)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Op::<f32>::lower(&sum(1 << 26), &profile)), ErrorKind::TooLarge);
    assert_eq!(kind(Op::<f32>::lower(&sum(usize::MAX), &profile)), ErrorKind::TooLarge);
}

#[test]
fn bits_repeat_unless_lookback_is_selected() {
    let profile = DeviceProfile::h100();
    let sum = ReduceByKey::new(Sum, 1 << 24);
    let floats = Op::<f32>::lower(&sum, &profile).unwrap();
    assert_eq!((floats.variant(), floats.determinism), ("hierarchical", Determinism::SameBits));
    let integers = Op::<u32>::lower(&ReduceByKey::new(Sum, 1 << 16), &profile).unwrap();
    assert_eq!((integers.variant(), integers.determinism), ("lookback", Determinism::SameBits));
    let fast = Op::<f32>::lower(&sum.variant("lookback"), &profile).unwrap();
    assert_eq!(fast.determinism, Determinism::RoundingVaries);
}
