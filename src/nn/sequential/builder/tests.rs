use super::*;
use crate::ErrorKind;

#[test]
fn rejects_too_many_dispatches_over_all_layers() {
    // 2^49 flop for each layer, with windows as large as the image.
    let of = |layers: usize| {
        let net = (0..layers).fold(Sequential::new([1, 512, 512]), |net, _| net.conv(1, [511; 2], [1; 2], [255; 2]));
        Op::<f32>::lower(&net.forward(1 << 10), &DeviceProfile::h100())
    };
    let one = of(1).unwrap().dispatches.len();
    let max = (1 << 16) / one;
    assert_eq!(of(max).unwrap().dispatches.len(), max * one);
    let e = of(max + 1).unwrap_err();
    let text =
        format!("sequential: layer {max} (conv): sequential-forward: `fused` takes {} dispatches", (max + 1) * one);
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().starts_with(&text), "{e}");
}
