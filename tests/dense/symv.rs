//! `Symv` against the reference, in each packing; and what the tests of matrices of level 2 share.

use crate::nn::training::refusal;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{symv, symv_bound};

/// How a triangle is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    Rows,
    /// With so many elements more than a row has.
    Apart(usize),
    Packed,
    Band(usize),
}

/// All ways for a side of n.
pub(crate) fn ways(n: usize) -> Vec<Way> {
    let band = [0, 1, 3, 40].into_iter().filter(|k| *k < n).map(Way::Band);
    [Way::Rows, Way::Apart(3), Way::Packed].into_iter().chain(band).collect()
}

impl Way {
    /// Random elements: NaN at places that are not read.
    pub(crate) fn matrix(self, random: &mut Random, n: usize, upper: bool, unit: bool) -> Vec<f32> {
        let (ld, len) = match self {
            Way::Rows => (n, n * n),
            Way::Apart(more) => (n + more, ((n + more) * n).saturating_sub(more)),
            Way::Packed => (0, n * (n + 1) / 2),
            Way::Band(k) => (k + 1, (k + 1) * n),
        };
        let mut places = vec![false; len];
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let inside = if upper { i <= j } else { i >= j } && !(unit && i == j);
            let at = match self {
                Way::Rows | Way::Apart(_) => inside.then_some(i * ld + j),
                Way::Packed if upper => inside.then(|| (0..i).map(|row| n - row).sum::<usize>() + j - i),
                Way::Packed => inside.then(|| i * (i + 1) / 2 + j),
                Way::Band(k) if upper => (inside && j - i <= k).then(|| i * ld + j - i),
                Way::Band(k) => (inside && i - j <= k).then(|| i * ld + j + k - i),
            };
            if let Some(at) = at {
                places[at] = true;
            }
        }
        places.iter().map(|read| if *read { random.unit() as f32 } else { f32::NAN }).collect()
    }
}

fn check(device: &Device, n: usize, way: Way, upper: bool, [alpha, beta]: [f32; 2]) {
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let op = Symv::new(n).alpha(alpha).beta(beta).when(upper, Symv::upper);
    let op = match way {
        Way::Rows => op,
        Way::Apart(more) => op.lda(n + more),
        Way::Packed => op.packed(),
        Way::Band(k) => op.banded(k),
    };
    let a = way.matrix(&mut random, n, upper, false);
    let (x, mut y): (Vec<f32>, Vec<f32>) = (random.elements(n), random.elements(n));
    if beta == 0.0 {
        y.fill(f32::NAN);
    }
    let (da, dx, dy) = (gpu.upload(&a).unwrap(), gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu).unwrap().record(&mut rec, &da, &dx, &dy).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {n} {way:?} upper: {upper} by {alpha}, {beta}", device.label);
    let (want, bound) = (symv(&op, &a, &x, &y).unwrap(), symv_bound(&op, &a, &x, &y).unwrap());
    assert_close(&what, &numbers(&dy.read().unwrap()), &want, &bound.iter().map(|b| 2.0 * b).collect::<Vec<_>>());
}

#[test]
fn products_match_the_reference_in_every_packing() {
    for device in devices() {
        for n in [1, 2, 31, 33, 200] {
            for way in ways(n) {
                for upper in [false, true] {
                    check(device, n, way, upper, [1.0, 0.0]);
                }
            }
        }
        check(device, 1000, Way::Packed, true, [-0.5, 2.0]);
        check(device, 1000, Way::Rows, false, [0.5, 1.0]);
        check(device, 5, Way::Rows, false, [0.0, 2.0]);
        check(device, 0, Way::Rows, false, [1.0, 0.0]);
    }
}

#[test]
fn a_factor_of_0_reads_nothing() {
    for device in devices() {
        let gpu = &device.gpu;
        let nan = gpu.upload(&[f32::NAN; 9]).unwrap();
        let (x, y) = (gpu.upload(&[f32::NAN; 3]).unwrap(), gpu.upload(&[1.0f32, 2.0, 3.0]).unwrap());
        let mut rec = gpu.recorder();
        let op = Symv::new(3).alpha(0.0).beta(2.0);
        op.plan::<f32>(gpu).unwrap().record(&mut rec, &nan, &x, &y).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), [2.0, 4.0, 6.0]);
    }
}

/// What each of these ops refuses.
pub(crate) fn refuses<D: Op<f32>>(gpu: &Gpu, of: impl Fn(&str) -> D) {
    for bad in ["variant", "lda", "lda of packed"] {
        assert_eq!(refusal::<f32>(gpu, &of(bad)), ErrorKind::InvalidArgument, "{bad}");
    }
    for large in ["large", "larger"] {
        assert_eq!(refusal::<f32>(gpu, &of(large)), ErrorKind::TooLarge, "{large}");
    }
}

#[test]
fn symv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Symv::new(4).variant("fast"),
        "lda" => Symv::new(4).lda(3),
        "lda of packed" => Symv::new(4).packed().lda(4),
        "large" => Symv::new(usize::MAX),
        _ => Symv::new(1 << 17).packed(),
    });
    assert_eq!(refusal::<f32>(gpu, &Symv::new(4).packed().banded(1)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Symv::new(4).banded(usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &Symv::new(4).incx(0)), ErrorKind::InvalidArgument);
}
