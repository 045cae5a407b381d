use super::*;

#[test]
fn vectors_above_one_binding_are_split() {
    let profile = DeviceProfile::webgpu_defaults();
    let program = Op::<f16>::lower(&Dot::new(100_000_001), &profile).unwrap();
    assert_eq!(program.dispatches.len(), 3);
    let (n, limit) = (program.param(0, "n") + program.param(1, "n"), profile.limits.max_storage_binding);
    assert_eq!((n, program.param(1, "first")), (100_000_001, program.param(0, "parts")));
    assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= limit));
}
