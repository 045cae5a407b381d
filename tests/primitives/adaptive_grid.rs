//! Every variant of `AdaptiveGrid` against the reference.

use super::select::cases;
use crate::support::coverage::sample;
use crate::support::{Random, devices, gpu};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::{adaptive_grid, adaptive_grid_bound, adaptive_grid_pixel};
use tilework::{ErrorKind, Result};

type Cells = (Vec<[u32; 4]>, Vec<[f32; 2]>);

/// The cells that a device makes, of an image or a function.
fn make(gpu: &Gpu, op: &AdaptiveGrid, image: Option<&[f32]>) -> Result<Cells> {
    make_given(gpu, op, image, None)
}

/// As [`make`], with the threshold as an operand.
fn make_given(gpu: &Gpu, op: &AdaptiveGrid, image: Option<&[f32]>, threshold: Option<f32>) -> Result<Cells> {
    let most = op.max_nodes();
    let plan = op.plan::<f32>(gpu)?;
    let (nodes, values) = (gpu.upload(&vec![77u32; 4 * most])?, gpu.upload(&vec![77f32; 2 * most])?);
    let count = gpu.upload(&[99u32])?;
    let mut rec = gpu.recorder();
    let threshold = threshold.map(|range| gpu.uniform(&[range])).transpose()?;
    let with = match &threshold {
        Some(range) => plan.with_threshold(range),
        None => plan.with(),
    };
    match image {
        Some(image) => with.record(&mut rec, &gpu.upload(image)?, &nodes, &values, &count)?,
        None => with.record_function(&mut rec, &nodes, &values, &count)?,
    }
    rec.submit()?;
    let count = count.read()?[0] as usize;
    let (nodes, values) = (nodes.read()?, values.read()?);
    assert!(nodes[4 * count..].iter().all(|x| *x == 77), "nodes past the count were written");
    assert!(values[2 * count..].iter().all(|x| *x == 77.0), "values past the count were written");
    Ok((nodes[..4 * count].as_chunks().0.to_vec(), values[..2 * count].as_chunks().0.to_vec()))
}

/// Compares cells; means within `bound`, NaN with NaN.
fn compare(what: &str, got: &Cells, want: &Cells, bound: f64) {
    assert_eq!(got.0, want.0, "cells, {what}");
    for (i, (got, want)) in got.1.iter().zip(&want.1).enumerate() {
        let near = (f64::from(got[0]) - f64::from(want[0])).abs() <= bound && got[1] == want[1];
        let none = got.iter().chain(want).all(|x| x.is_nan());
        assert!(near || none, "cell {i} has {got:?} and not {want:?}, {what}");
    }
}

#[test]
fn grids_of_images_match_the_reference() {
    let rules = [(3, 6, 0.1, usize::MAX), (0, 5, 0.9, 50), (0, 0, 0.1, 1), (2, 4, 0.0, 20), (1, 5, 9.0, 4)];
    for (device, variant) in cases() {
        let mut random = Random::new(2);
        for &[h, w] in sample(&[[37usize, 23], [1, 1], [16, 200], [1, 70]], if device.main { 4 } else { 1 }) {
            let mut image: Vec<f32> = (0..h * w).map(|i| (i % w / 9) as f32 + 0.2 * random.unit() as f32).collect();
            if w > 100 {
                (image[5], image[190]) = (f32::NAN, f32::NEG_INFINITY);
            }
            for &(first, depth, threshold, limit) in sample(&rules, 4) {
                let op = AdaptiveGrid::of_image([h, w]).levels(first, depth).threshold(threshold);
                let op = op.limit(limit.max(1 << (2 * first))).variant(variant);
                let got = match make(&device.gpu, &op, Some(&image)) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                    other => other.unwrap(),
                };
                let field = |x, y| image[adaptive_grid_pixel([h, w], x, y)];
                let want =
                    adaptive_grid(field, first..=depth, |_, range| range > threshold, limit.max(1 << (2 * first)));
                let what = format!("{}: {h} x {w} by {variant}, {op:?}", device.label);
                compare(&what, &got, &want, adaptive_grid_bound(&image));
                let given = op.threshold(7.0).with_threshold();
                let got = make_given(&device.gpu, &given, Some(&image), Some(threshold)).unwrap();
                compare(&what, &got, &want, adaptive_grid_bound(&image));
            }
        }
    }
}

#[test]
fn grids_of_functions_match_the_reference() {
    // Dyadic numbers: exact on every device.
    let text = "fn field(p: vec2<f32>) -> f32 { return select(p.x * p.y, 2.0, p.x + p.y > 1.25); }";
    let field = |x: f64, y: f64| if x + y > 1.25 { 2.0 } else { (x * y) as f32 };
    for device in devices() {
        for (first, depth, threshold) in [(2, 6, 0.25), (0, 4, 0.5)] {
            let op = AdaptiveGrid::of_function(text).levels(first, depth).threshold(threshold);
            let want = adaptive_grid(field, first..=depth, |_, range| range > threshold, usize::MAX);
            assert!(want.0.len() > 20, "the function varies");
            let what = format!("{}: {op:?}", device.label);
            compare(&what, &make(&device.gpu, &op, None).unwrap(), &want, 1e-6);
        }
    }
}

#[test]
fn rejects_bad_rules_images_and_functions() {
    let profile = DeviceProfile::webgpu_defaults();
    let image = || AdaptiveGrid::of_image([4, 4]);
    for (op, kind, says) in [
        (image().levels(3, 2), ErrorKind::InvalidArgument, "must not be above"),
        (image().levels(3, 13), ErrorKind::InvalidArgument, "at most 12"),
        (image().threshold(f32::NAN), ErrorKind::InvalidArgument, "must be a number from 0"),
        (image().threshold(-1.0), ErrorKind::InvalidArgument, "must be a number from 0"),
        (image().limit(63), ErrorKind::InvalidArgument, "level 3 alone has 64"),
        (AdaptiveGrid::of_image([0, 4]), ErrorKind::InvalidArgument, "at least one"),
        (AdaptiveGrid::of_image([4, 20_000_000]), ErrorKind::TooLarge, "at most 16777216"),
        (image().levels(3, 12), ErrorKind::TooLarge, "set a limit of cells"),
    ] {
        let e = Op::<f32>::lower(&op, &profile).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(says), "{e}");
    }
    let Some(gpu) = gpu() else { return };
    let e = AdaptiveGrid::of_function("fn field(p: vec2<f32>) -> f32 { return q; }").plan::<f32>(gpu);
    assert_eq!(e.unwrap_err().kind(), ErrorKind::Shader);
}
