use super::*;
use crate::ErrorKind;
use crate::nn::{Pool2d, PoolKind};
use crate::program::Op;

#[test]
fn extents_follow_the_formula() {
    let of = |size, kernel, stride, pad| {
        let windows =
            Windows { stride: [stride; 2], pads: [pad; 4], ..Windows::new("pool", [1, 1, size, size], [kernel; 2]) };
        windows.output_shape().map(|shape| shape[2])
    };
    assert_eq!(of(224, 2, 2, 0).unwrap(), 112);
    assert_eq!(of(112, 3, 2, 1).unwrap(), 56);
    assert_eq!(of(7, 7, 1, 0).unwrap(), 1);
    assert_eq!(of(5, 2, 2, 0).unwrap(), 2);
    assert_eq!(of(5, 6, 1, 0).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(5, 2, 1, 2).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(5, 2, 0, 0).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(usize::MAX, 2, 1, 0).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn planes_above_one_binding_are_split_into_chunks() {
    let profile = DeviceProfile::webgpu_defaults();
    let op = Pool2d::new(PoolKind::Max, [5, 13, 999, 777], [3, 3]);
    let program = Op::<f32>::lower(&op, &profile).unwrap();
    assert!(program.dispatches.len() > 1);
    let mut done = 0;
    for (d, dispatch) in program.dispatches.iter().enumerate() {
        assert!(dispatch.bindings.iter().all(|b| b.size <= profile.limits.max_storage_binding));
        assert_eq!(program.param(d, "first"), done % 13);
        assert_eq!(dispatch.bindings[0].offset / 4 + program.param(d, "wide"), done * 999 * 777);
        assert_eq!(dispatch.bindings[1].offset / 4 + program.param(d, "narrow"), done * 333 * 259);
        done += program.param(d, "planes");
    }
    assert_eq!(done, 65);
    let vast = Pool2d::new(PoolKind::Max, [1, 1, 6000, 6000], [2, 2]);
    let e = Op::<f32>::lower(&vast, &profile).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("144000000 bytes"), "{e}");
}
