use super::*;
use crate::ErrorKind;

#[test]
fn outputs_follow_the_formula() {
    let of = |size, kernel, stride, pad, dilation| {
        let layer = Layer {
            stride: [stride; 2],
            pads: [pad; 4],
            dilation: [dilation; 2],
            ..Layer::new("conv", [1, 1, size, size], 1, [kernel; 2])
        };
        layer.output_shape().map(|shape| shape[2])
    };
    assert_eq!(of(56, 3, 1, 1, 1).unwrap(), 56);
    assert_eq!(of(224, 7, 2, 3, 1).unwrap(), 112);
    assert_eq!(of(9, 3, 2, 0, 2).unwrap(), 3);
    assert_eq!(of(1, 1, 1, 4, 1).unwrap(), 9);
    assert_eq!(of(2, 3, 1, 0, 1).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(4, 3, 1, 0, 2).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(4, 3, 0, 0, 1).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(of(usize::MAX, 3, 1, 0, 1).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_batch_above_one_binding_is_taken_in_chunks() {
    let profile = DeviceProfile::webgpu_defaults();
    let resources = [Resource::Operand(0), Resource::Operand(2)];
    let image = [3 * 999 * 777, 2 * 999 * 777];
    let bytes = (image.map(|elements| 4 * elements as u64), 4, 0);
    let mut seen = 0;
    let all = image_chunks("conv", 50, bytes, resources, &profile).unwrap();
    assert!(all.len() > 1);
    for chunk in all {
        assert!(chunk.x.size.max(chunk.y.size) <= profile.limits.max_storage_binding);
        assert_eq!(chunk.first, seen);
        assert_eq!(chunk.x.offset / 4 + u64::from(chunk.x_at), (seen * image[0]) as u64);
        assert_eq!(chunk.y.offset / 4 + u64::from(chunk.y_at), (seen * image[1]) as u64);
        seen += chunk.images;
    }
    assert_eq!(seen, 50);
    let e = image_chunks("conv", 2, ([160_000_000, 4], 4, 0), resources, &profile).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("160000000 bytes"), "{e}");
}

#[test]
fn the_gradient_of_a_strided_layer_correlates_the_spread_output() {
    let layer = Layer { stride: [2, 2], pads: [1; 4], ..Layer::new("conv", [1, 2, 6, 7], 4, [3, 3]) };
    let back = layer.backward().unwrap();
    assert_eq!((back.size, back.out, back.pad, back.up), ([3, 4], [6, 7], [1, 1], [2, 2]));
    assert_eq!(back.bounds(), [5, 7]);
    assert_eq!((back.from, back.to), (4, 2));
}
