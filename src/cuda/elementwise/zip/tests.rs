use super::*;
use crate::ErrorKind;

#[test]
fn rejects_custom_functions_and_other_types() {
    let profile = CudaProfile::h100();
    let own = Zip::new(ZipFn::custom("fn zip(x: T, y: T) -> T { return x; }"), 9);
    for refused in [CudaOp::<f32>::lower(&own, &profile), CudaOp::<u8>::lower(&Zip::new(ZipFn::Add, 9), &profile)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    }
    assert!(CudaOp::<f32>::lower(&Zip::new(ZipFn::Add, 0), &profile).unwrap().launches.is_empty());
}
