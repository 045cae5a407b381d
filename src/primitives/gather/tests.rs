use super::*;

#[test]
fn tables_and_outputs_above_one_binding_are_split() {
    let profile = DeviceProfile::webgpu_defaults();
    let (table, output) = (90_000, 130_000);
    let program = Op::<f16>::lower(&Gather::new([table, 999], output), &profile).unwrap();
    let limit = profile.limits.max_storage_binding;
    assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= limit));
    let mut pairs = 0;
    for (d, dispatch) in program.dispatches.iter().enumerate() {
        let origin = |field, binding: usize| program.param(d, field) + dispatch.bindings[binding].offset / 2;
        assert_eq!(origin("table_origin", 0), program.param(d, "first") * 999);
        let row = (program.param(d, "index_origin") * 4 + dispatch.bindings[1].offset) / 4;
        assert_eq!(origin("output_origin", 2), row * 999);
        pairs += program.param(d, "rows") * program.param(d, "count");
    }
    assert_eq!((program.dispatches.len(), pairs), (4, (table * output) as u64));
}
