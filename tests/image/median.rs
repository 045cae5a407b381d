//! Every variant of `Median` against the reference.

use crate::support::coverage::turn;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Ask, Settings};
use tilework::reference::{median, wanted};
use tilework::{ErrorKind, HostArray};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Median::variants().iter().map(|v| v.name))
}

/// The bits of elements; one pattern for every NaN.
fn bits<T: Sample>(elements: &[T]) -> Vec<Option<u64>> {
    let bits = |x: &T| (!x.to_f64().is_nan()).then(|| x.to_f64().to_bits());
    elements.iter().map(bits).collect()
}

/// Runs every variant that accepts the op; returns their number.
#[track_caller]
fn compare<T: Sample>(device: &Device, op: &Median, input: &[T]) -> usize {
    let want = bits(&median(op, input));
    let fill = T::from_f64(77.0);
    let mut ran = 0;
    for variant in names() {
        let what = format!("{}: {variant} of {}, {op:?}", device.label, T::DTYPE);
        let plan = match op.clone().variant(variant).plan::<T>(&device.gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap_or_else(|e| panic!("{what}: {e}")),
        };
        let x = device.gpu.upload(input).unwrap();
        let y = device.gpu.upload(&vec![fill; want.len().next_multiple_of(4)]).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &x, y.slice(..want.len()).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = y.read().unwrap();
        let wrong = bits(&got[..want.len()]).iter().zip(&want).position(|(got, want)| got != want);
        assert_eq!(wrong, None, "{what}: the first wrong element");
        assert!(got[want.len()..].iter().all(|v| *v == fill), "{what}: wrote past the image");
        ran += 1;
    }
    ran
}

fn random<T: Sample>(image: Image) -> Vec<T> {
    Random::new((image.h * 1000 + image.w) as u64).any(image.h * image.w * image.channels)
}

#[test]
fn median_matches_reference_with_large_windows() {
    for device in devices().iter().filter(|d| d.main) {
        // Larger than the image, larger than a tile, and the largest that every driver accepts.
        let windows = [
            (Image::grey([3, 5]), 9),
            (Image::grey([40, 37]), 1),
            (Image::rgb([34, 35]), 7),
            (Image::new([9, 11], 2), 15),
            (Image::grey([20, 34]), 31),
            (Image::grey([5, 6]), 43),
        ];
        for (i, (image, size)) in windows.into_iter().enumerate() {
            // Each boundary and each type compiles other kernels.
            for (b, boundary) in Boundary::ALL.into_iter().enumerate().filter(|(b, _)| turn(b + i, 2)) {
                let op = Median::new(image, size).boundary(boundary);
                let types: [&dyn Fn() -> usize; 3] = [
                    &|| compare::<u8>(device, &op, &random(image)),
                    &|| compare::<f16>(device, &op, &random(image)),
                    &|| compare::<f32>(device, &op, &random(image)),
                ];
                let of_turn = types.iter().enumerate().filter(|(t, _)| turn(t + b / 2 + i, 3));
                of_turn.for_each(|(_, compared)| assert!(compared() >= 2));
            }
        }
        compare::<u8>(device, &Median::new([4, 5], 89), &random(Image::grey([4, 5])));
    }
}

/// The 0-1 principle: a network that selects correctly among zeros and ones does so among all numbers.
#[test]
fn median_matches_reference_on_zeros_and_ones() {
    for device in devices().iter().filter(|d| d.main) {
        let image = Image::grey([60, 64]);
        let bits: Vec<u8> = random::<u8>(image).into_iter().map(|x| x & 1).collect();
        for size in [3, 5] {
            compare(device, &Median::new(image, size), &bits);
        }
    }
}

#[test]
fn median_orders_zeros_infinities_and_nan() {
    for device in devices() {
        let image = Image::grey([24, 25]);
        let special = [-0.0, 0.0, f32::INFINITY, -f32::INFINITY, f32::NAN, -f32::NAN, 1e-40, -1e-40, 1.0, -2.5];
        let mut random = Random::new(3);
        // Surrounded by equal values, so that each is the median somewhere.
        let mut input: Vec<f32> = (0..24 * 25).map(|_| special[random.next() as usize % special.len()]).collect();
        input[..100].fill(-0.0);
        input[100..200].fill(f32::NAN);
        for size in [3, 5, 7] {
            for boundary in [Boundary::Clamp, Boundary::Zero] {
                compare(device, &Median::new(image, size).boundary(boundary), &input);
            }
        }
    }
}

#[test]
fn median_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Median| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Median::new([3, 3], 3).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Median::new([3, 3], 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Median::new([3, 3], 0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Median::new([3, 3, 0], 3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Median::new([9, 9], 7).variant("network")), ErrorKind::Unsupported);
    assert_eq!(kind(Median::new([9, 9], 45)), ErrorKind::TooLarge);
    assert_eq!(kind(Median::new([1 << 20, 1 << 20], 3)), ErrorKind::TooLarge);
    assert_eq!(Median::new([3, 3], 3).plan::<u32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Median::new([0, 3], 3).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
}

#[test]
fn median_by_name_defaults_to_size_3_and_clamps() {
    let x = [9u8, 2, 3, 4, 5, 6, 7, 8, 1];
    let want = [5u8, 4, 3, 7, 5, 3, 7, 6, 5];
    let op = tilework::operations().find(|op| op.name == "median").unwrap();
    let settings = Settings::new(op);
    let call = op.build(Ask::new(&settings).input(HostArray::new(&[3, 3], x.to_vec()).unwrap())).unwrap();
    let wanted = wanted(op, &call).unwrap().unwrap();
    assert_eq!(wanted[0].array, HostArray::new(&[3, 3], want.to_vec()).unwrap());
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&x).unwrap();
    assert_eq!(gpu.median(&x, [3, 3], 3).unwrap().read().unwrap(), want);
}
