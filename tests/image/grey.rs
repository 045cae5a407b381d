//! Every variant of `Grey` against the reference.

use crate::support::{Random, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::grey;

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Grey::variants().iter().map(|v| v.name))
}

#[test]
fn grey_matches_reference_and_leaves_what_lies_behind() {
    for device in devices() {
        for (h, w) in [(1, 1), (1, 2), (1, 3), (2, 2), (1, 5), (7, 13), (64, 33), (100, 300)] {
            let rgb = Random::new(w as u64).elements::<u8>(3 * h * w);
            let input = device.gpu.upload(&rgb).unwrap();
            for (variant, weights) in names().flat_map(|v| GreyWeights::ALL.map(|w| (v, w))) {
                let op = Grey::new(h, w).weights(weights).variant(variant);
                let padded = (h * w).next_multiple_of(4);
                let output = device.gpu.upload(&vec![0xee_u8; padded]).unwrap();
                let plan = op.plan::<u8>(&device.gpu).unwrap();
                let mut rec = device.gpu.recorder();
                plan.record(&mut rec, &input, output.slice(..h * w).unwrap()).unwrap();
                rec.submit().unwrap();
                let mut want = grey(&op, &rgb);
                want.resize(padded, 0xee);
                assert_eq!(
                    output.read().unwrap(),
                    want,
                    "{}: {variant} {h} x {w}, {weights:?}",
                    device.label
                );
            }
        }
    }
}

#[test]
fn grey_refuses_what_is_not_defined() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Grey| op.plan::<u8>(gpu).unwrap_err().kind();
    assert_eq!(kind(Grey::new(3, 3).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Grey::new(usize::MAX, 3)), ErrorKind::TooLarge);
    assert_eq!(kind(Grey::new(1 << 20, 1 << 20)), ErrorKind::TooLarge);
    assert_eq!(Grey::new(3, 3).plan::<f32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Grey::new(0, 3).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
    let plan = Grey::new(2, 2).plan::<u8>(gpu).unwrap();
    let (rgb, pixels) = (gpu.alloc::<u8>(12).unwrap(), gpu.alloc::<u8>(5).unwrap());
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &rgb, &pixels).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &rgb, rgb.slice(..4).unwrap()).unwrap_err().kind(), ErrorKind::Aliasing);
}
