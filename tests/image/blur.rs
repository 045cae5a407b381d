//! Every variant of `Blur` against the reference.

use crate::support::{Device, Random, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::blur;

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Blur::variants().iter().map(|v| v.name))
}

/// Compares all variants that fit the radius, also behind the last pixel, and returns how many ran.
fn check(device: &Device, (h, w, radius): (usize, usize, usize), divide: Divide) -> usize {
    let image = Random::new(w as u64).elements::<u8>(h * w);
    let op = Blur::new(h, w, radius).divide(divide);
    let padded = (h * w).next_multiple_of(4);
    let mut want = blur(&op, &image);
    want.resize(padded, 0xee);
    let input = device.gpu.upload(&image).unwrap();
    let ran = names().filter(|variant| {
        let plan = match op.clone().variant(variant).plan::<u8>(&device.gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported && *variant != "auto" => return false,
            plan => plan.unwrap(),
        };
        let output = device.gpu.upload(&vec![0xee_u8; padded]).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &input, output.slice(..h * w).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = output.read().unwrap();
        let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
        let what = format!("{}: {variant}, {h} x {w}, radius {radius}, {divide:?}", device.label);
        assert!(wrong.is_none(), "{what}: pixel {wrong:?}");
        true
    });
    ran.count()
}

#[test]
fn blur_matches_reference() {
    let shapes = [
        (1, 1, 1),
        (1, 77, 2),
        (77, 1, 3),
        (3, 3, 1),
        (33, 64, 1),
        (50, 67, 2),
        (31, 130, 5),
        (64, 32, 0),
        (5, 6, 9),
        (100, 45, 16),
    ];
    for device in devices() {
        for &shape in if device.main { &shapes[..] } else { &shapes[4..6] } {
            for divide in Divide::ALL {
                assert_eq!(check(device, shape, divide), names().count(), "{shape:?}");
            }
        }
    }
}

#[test]
fn blur_by_large_radii_takes_what_fits() {
    let Some(device) = devices().first() else { return };
    assert!(check(device, (60, 61, 40), Divide::Inside) >= 3);
    assert!(check(device, (40, 44, 300), Divide::Inside) >= 2);
    assert!(check(device, (4, 5, 1448), Divide::Window) >= 2);
}

#[test]
fn blur_of_white_is_white() {
    let Some(device) = devices().first() else { return };
    let white = device.gpu.upload(&[255u8; 35]).unwrap();
    for (variant, radius) in names().flat_map(|v| [0, 1, 3, 16].map(|r| (v, r))) {
        let plan = Blur::new(5, 7, radius).variant(variant).plan::<u8>(&device.gpu).unwrap();
        let output = device.gpu.alloc::<u8>(35).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &white, &output).unwrap();
        rec.submit().unwrap();
        assert_eq!(output.read().unwrap(), [255; 35], "{variant} {radius}");
    }
}

#[test]
fn blur_refuses_what_is_not_defined() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Blur| op.plan::<u8>(gpu).unwrap_err().kind();
    assert_eq!(kind(Blur::new(3, 3, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Blur::new(3, 3, 1449)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new(3, 3, usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new(usize::MAX, 3, 1)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new(1 << 20, 1 << 20, 1)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new(3, 3, 500).variant("tiled")), ErrorKind::Unsupported);
    assert_eq!(Blur::new(3, 3, 1).plan::<f32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Blur::new(0, 3, 1).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
    let nine = gpu.alloc::<u8>(9).unwrap();
    let plan = Blur::new(3, 3, 1).plan::<u8>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &nine, &nine).unwrap_err().kind(), ErrorKind::Aliasing);
}
