use super::*;
use crate::program::Op;
use crate::{Conv2dBackwardWeights, ErrorKind};

#[test]
fn variant_follows_device_and_shape() {
    let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
    let of = |op: &Conv2d, profile| Op::<f32>::lower(op, profile).unwrap().variant();
    let same = |shape, filters, k: usize| Conv2d::new(shape, filters, [k, k]).pad([k / 2; 2]);
    assert_eq!(of(&same([32, 256, 28, 28], 256, 3), &h100), "winograd");
    assert_eq!(of(&same([32, 256, 28, 28], 256, 3).stride([2, 2]), &h100), "implicit");
    assert_eq!(of(&same([128, 16, 80, 80], 32, 7), &h100), "tiled");
    assert_eq!(of(&same([128, 16, 80, 80], 64, 7), &h100), "implicit");
    assert_eq!(of(&same([128, 32, 80, 80], 16, 7), &h100), "tiled");
    assert_eq!(of(&same([8, 64, 56, 56], 64, 3).groups(64), &h100), "depthwise");
    // 97 to 1 channel of 42 x 42, 3 x 3, 4 images: `direct` 130 us, `implicit` 37.
    assert_eq!(of(&same([8, 64, 56, 56], 1, 3), &h100), "implicit");
    assert_eq!(of(&same([1, 2, 27, 27], 27, 1), &h100), "direct");
    // 192 to 5 channels of 64 x 64, 5 x 5: `tiled` 487 us, `implicit` 194 in the tile that is now chosen.
    assert_eq!(of(&same([1, 192, 64, 64], 5, 5), &h100), "implicit");
    assert_eq!(of(&same([1, 512, 7, 7], 512, 3), &h100), "implicit");
    assert_eq!(of(&same([8, 64, 56, 56], 64, 3), &mesa), "winograd");
    assert_eq!(of(&same([8, 8, 56, 56], 64, 3), &mesa), "tiled");
    assert_eq!(of(&same([1, 8, 28, 28], 64, 1), &mesa), "tiled");
    assert_eq!(of(&same([8, 8, 56, 56], 64, 1), &mesa), "im2col");
    assert_eq!(of(&same([8, 8, 56, 56], 64, 3).stride([2, 2]), &mesa), "im2col");
    assert_eq!(of(&same([8, 1, 56, 56], 64, 3), &mesa), "depthwise");
}

#[test]
fn rejects_layers_a_variant_cannot_run_with_the_numbers() {
    let h100 = DeviceProfile::h100();
    let refusal = |op: Conv2d| {
        let e = Op::<f32>::lower(&op, &h100).unwrap_err();
        (e.kind(), e.to_string())
    };
    let new = |kernel| Conv2d::new([1, 4, 9, 9], 8, kernel);
    let (kind, text) = refusal(new([5, 5]).variant("winograd"));
    assert!(kind == ErrorKind::Unsupported && text.contains("5 x 5"), "{text}");
    let (kind, _) = refusal(new([3, 3]).stride([2, 1]).variant("winograd"));
    assert_eq!(kind, ErrorKind::Unsupported);
    let (kind, text) = refusal(new([3, 3]).variant("depthwise"));
    assert!(kind == ErrorKind::Unsupported && text.contains("4 channels"), "{text}");
    let (kind, text) = refusal(Conv2d::new([1, 2000, 9, 9], 8, [3, 3]).variant("direct"));
    assert!(kind == ErrorKind::Unsupported && text.contains("18000"), "{text}");
}

#[test]
fn rejects_more_than_the_maximum_number_of_dispatches() {
    let h100 = DeviceProfile::h100();
    // Images of 2^28 pixels with windows of 2^28 and 2^20.
    for (variant, side) in [("implicit", (1 << 14) - 1), ("im2col", (1 << 10) - 1)] {
        let op = Conv2d::new([1, 1, 1 << 14, 1 << 14], 1, [side, side]).pad([side / 2; 2]).variant(variant);
        let e = Op::<f32>::lower(&op, &h100).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TooLarge);
        assert!(e.to_string().contains("dispatches of bounded time, above the limit of 65536"), "{e}");
    }
    // Sums of 2048 x 2048 windows leave scratch for one image at a time.
    let op = Conv2d::new([1 << 18, 2048, 1, 1], 2048, [3, 3]).pad([1, 1]).variant("winograd");
    let e = Op::<f32>::lower(&Conv2dBackwardWeights::new(&op), &h100).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("dispatches of bounded time"), "{e}");
    // Long work below the maximum.
    let op = Conv2d::new([1, 1, 1 << 12, 1 << 12], 1, [4095, 4095]).pad([2047; 2]).variant("implicit");
    assert!(Op::<f32>::lower(&op, &h100).unwrap().dispatches.len() > 1);
}

#[test]
fn scratch_is_bounded_by_chunks_and_stated() {
    let h100 = DeviceProfile::h100();
    let op = Conv2d::new([64, 64, 56, 56], 64, [3, 3]).pad([1, 1]);
    for variant in ["im2col", "winograd"] {
        let program = Op::<f32>::lower(&op.clone().variant(variant), &h100).unwrap();
        assert!(program.scratch_bytes() <= 260 << 20, "{variant}: {}", program.scratch_bytes());
        assert!(program.decision.why.contains("bytes of scratch"), "{}", program.decision.why);
        let program = Op::<f32>::lower(&op.clone().variant(variant), &DeviceProfile::webgpu_defaults()).unwrap();
        for dispatch in &program.dispatches {
            assert!(dispatch.bindings.iter().all(|b| b.size <= 128 << 20));
        }
    }
}
