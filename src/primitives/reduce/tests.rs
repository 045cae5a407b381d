use super::*;
use crate::ErrorKind;

fn lower<O: Reducer<f32>>(desc: &Reduce<O>, profile: &DeviceProfile) -> Result<Program> {
    Op::<f32>::lower(desc, profile)
}

#[test]
fn splits_an_input_above_the_largest_binding() {
    let profile = DeviceProfile::webgpu_defaults();
    let program = lower(&Reduce::new(Sum, 50_000_000), &profile).unwrap();
    assert_eq!(program.dispatches.len(), 3);
    assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= profile.limits.max_storage_binding));
    assert_eq!(lower(&Reduce::new(Sum, 100_000_000), &profile).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn rejects_undefined_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |r: Result<Program>| r.unwrap_err().kind();
    assert_eq!(kind(lower(&Reduce::new(Min, 0), &profile)), ErrorKind::Shape);
    assert_eq!(kind(lower(&Reduce::rows(ArgMax, 4, 0), &profile)), ErrorKind::Shape);
    assert_eq!(kind(lower(&Reduce::new(Sum, 9).variant("subgroup"), &profile)), ErrorKind::Unsupported);
    assert_eq!(kind(lower(&Reduce::new(Sum, 9).variant("magic"), &profile)), ErrorKind::InvalidArgument);
    assert_eq!(kind(lower(&Reduce::new(ArgMin, 9).variant("atomic"), &profile)), ErrorKind::Unsupported);
    assert_eq!(kind(lower(&Reduce::new(Sum, 9).variant("atomic").deterministic(), &profile)), ErrorKind::Unsupported);
    let custom = CustomOp::new("");
    assert_eq!(kind(lower(&Reduce::new(custom, 9).variant("shared"), &profile)), ErrorKind::Unsupported);
}

#[test]
fn empty_rows_need_an_identity_and_no_rows_need_nothing() {
    let profile = DeviceProfile::webgpu_defaults();
    assert_eq!(lower(&Reduce::new(Sum, 0), &profile).unwrap().dispatches.len(), 1);
    assert!(lower(&Reduce::rows(Min, 0, 9), &profile).unwrap().dispatches.is_empty());
}
