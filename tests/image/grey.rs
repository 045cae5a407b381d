//! Every variant of `Grey` against the reference.

use super::pixels::check;
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::prelude::*;
use tilework::program::{Ask, Settings};
use tilework::reference::{grey, grey_bound};
use tilework::{ErrorKind, HostArray};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Grey::variants().iter().map(|v| v.name))
}

fn compare<T: Sample>(device: &Device, image: Image) {
    let input = Random::new(image.w as u64).elements::<T>(image.h * image.w * image.channels);
    for weights in GreyWeights::ALL {
        let op = Grey::new(image).weights(weights);
        let (want, bound) = (grey(&op, &input), grey_bound(&op, &input));
        for variant in names() {
            let what = format!("{variant}, {image:?}, {weights:?}, {}", T::DTYPE);
            assert!(check(device, &what, &op.clone().variant(variant), &input, (&want, &bound)), "{what}");
        }
    }
}

#[test]
fn grey_matches_reference_and_keeps_bytes_after_its_output() {
    for device in devices() {
        for (h, w) in [(1, 1), (1, 2), (1, 3), (2, 2), (1, 5), (7, 13), (64, 33), (100, 300)] {
            for image in
                [Image::rgb([h, w]), Image::rgba([h, w]), Image::rgb([h, w]).planar(), Image::rgba([h, w]).planar()]
            {
                compare::<u8>(device, image);
                compare::<f32>(device, image);
            }
        }
    }
}

#[test]
fn grey_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Grey| op.plan::<u8>(gpu).unwrap_err().kind();
    assert_eq!(kind(Grey::new([3, 3, 3]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Grey::new([3, 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Grey::new([3, 3, 2])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Grey::new([3, 3, 5])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Grey::new(Image::rgb([usize::MAX, 3]))), ErrorKind::TooLarge);
    assert_eq!(kind(Grey::new(Image::rgb([1 << 20, 1 << 20]))), ErrorKind::TooLarge);
    assert_eq!(Grey::new([3, 3, 3]).plan::<i32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Grey::new([0, 3, 3]).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
    let plan = Grey::new([2, 2, 3]).plan::<u8>(gpu).unwrap();
    let (rgb, pixels) = (gpu.alloc::<u8>(12).unwrap(), gpu.alloc::<u8>(5).unwrap());
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &rgb, &pixels).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &rgb, rgb.slice(..4).unwrap()).unwrap_err().kind(), ErrorKind::Aliasing);
}

#[test]
fn the_reference_rejects_images_that_grey_rejects() {
    let op = tilework::operations().find(|op| op.name == "grey").unwrap();
    let settings = Settings::new(op);
    let image = HostArray::new(&[4, 4, 1], vec![7u8; 16]).unwrap();
    let call = op.build(Ask::new(&settings).input(image)).unwrap();
    let e = tilework::reference::wanted(op, &call).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Shape | ErrorKind::InvalidArgument), "{e}");
}
