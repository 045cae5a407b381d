//! Every variant of `Quadtree` against the reference.

use super::select::cases;
use crate::support::coverage::sample;
use crate::support::{Random, devices, gpu};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::{TreeSquare, quadtree, quadtree_square};
use tilework::{ErrorKind, Result};

/// The nodes and the order that a device makes.
fn build(gpu: &Gpu, op: Quadtree, points: &[[f32; 2]]) -> Result<(Vec<[u32; 6]>, Vec<u32>)> {
    let most = op.max_nodes();
    let plan = op.with_order().plan::<f32>(gpu)?;
    let input = gpu.upload(points.as_flattened())?;
    let (nodes, count) = (gpu.upload(&vec![77u32; 6 * most])?, gpu.upload(&[99u32])?);
    let order = gpu.alloc::<u32>(points.len())?;
    let mut rec = gpu.recorder();
    plan.with_order(&order).record(&mut rec, &input, &nodes, &count)?;
    rec.submit()?;
    let count = 6 * count.read()?[0] as usize;
    let all = nodes.read()?;
    assert!(all[count..].iter().all(|x| *x == 77), "nodes past the count were written");
    let order = if points.is_empty() { Vec::new() } else { order.read()? };
    Ok((all[..count].as_chunks().0.to_vec(), order))
}

/// Points in the unit square: spread out, in a few clusters, or on a coarse lattice, with many at one place.
fn points(random: &mut Random, n: usize, kind: usize) -> Vec<[f32; 2]> {
    let mut one = |i: usize| {
        let [x, y] = [random.unit(), random.unit()];
        let [a, b] = match kind {
            0 => [x, y],
            1 => [0.3 + 0.01 * x * (i % 7) as f64, 0.6 + 1e-4 * y],
            _ => [(3.0 * x).floor() / 3.0, (2.0 * y).floor() / 2.0],
        };
        [a as f32, b as f32]
    };
    (0..n).map(&mut one).collect()
}

#[test]
fn trees_match_the_reference() {
    let rules = [(16, 16, usize::MAX), (1, 5, usize::MAX), (3, 9, 101), (1, 0, usize::MAX), (2000, 12, 1)];
    for (device, variant) in cases() {
        let mut random = Random::new(3);
        for &n in sample(&[3000usize, 0, 1, 2, 17, 30_000], if device.main { 6 } else { 1 }) {
            for (i, &(capacity, depth, limit)) in sample(&rules, 3).iter().enumerate() {
                let points = points(&mut random, n, i % 3);
                let op = Quadtree::new(n).capacity(capacity).depth(depth).limit(limit).variant(variant);
                let got = match build(&device.gpu, op, &points) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                    other => other.unwrap(),
                };
                let want = quadtree(&points, quadtree_square(&points), capacity, depth, limit);
                let what = format!("{}: {n} points by {variant}, {capacity} to {depth}", device.label);
                assert_eq!(got.0, want.0, "nodes, {what}");
                assert_eq!(got.1, want.1, "order, {what}");
            }
        }
    }
}

#[test]
fn awkward_points_have_documented_places() {
    let (big, small) = (2f32.powi(126), 1e-40);
    let odd = [[f32::NAN, 0.0], [f32::INFINITY, 1.0], [-big, 0.0], [big.next_down(), 0.0], [small, -0.0]];
    let sets: [Vec<[f32; 2]>; 6] = [
        odd.to_vec(),
        odd[..3].to_vec(),
        vec![[5.0, -3.0]; 40],
        vec![[small, 0.0], [0.0, small]],
        // Sides with every kind of significand, a power of two among them.
        vec![[1.0, 1.0], [4.0, 2.5], [2.0, 7.0], [9.0, 9.0]],
        vec![[-0.1, 0.3], [0.7, 1.0], [0.333, 0.999], [0.6999999, 0.5]],
    ];
    for device in devices() {
        for points in &sets {
            let op = Quadtree::new(points.len()).capacity(1).depth(16);
            let got = build(&device.gpu, op, points).unwrap();
            let want = quadtree(points, quadtree_square(points), 1, 16, usize::MAX);
            assert_eq!(got, want, "{}: {points:?}", device.label);
        }
        // A given square: points outside belong to its border.
        let points = [[-5.0, 0.5], [0.1, 0.2], [3.0, 3.0], [0.9, 0.1]];
        for side in [1.0, 0.75, 2f32.powi(-100), big] {
            let op = Quadtree::new(4).capacity(1).square([0.0; 2], side);
            let want = quadtree(&points, TreeSquare { low: [0.0; 2], side }, 1, 16, usize::MAX);
            assert_eq!(build(&device.gpu, op, &points).unwrap(), want, "{}: side {side}", device.label);
        }
    }
}

#[test]
fn random_sides_scale_as_on_the_processor() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(8);
    for _ in 0..sample(&[(); 200], 25).len() {
        let side = f32::from_bits((((27 + random.next() % 200) << 23) | (random.next() % (1 << 23))) as u32);
        let points: Vec<_> = (0..64).map(|_| [random.unit() as f32 * side, side]).collect();
        let op = Quadtree::new(64).capacity(1).square([0.0; 2], side);
        let want = quadtree(&points, TreeSquare { low: [0.0; 2], side }, 1, 16, usize::MAX);
        assert_eq!(build(gpu, op, &points).unwrap(), want, "side {side:?}");
    }
}

#[test]
fn rejects_bad_rules_and_squares() {
    let profile = DeviceProfile::webgpu_defaults();
    let fails = |op: Quadtree| Op::<f32>::lower(&op, &profile).unwrap_err();
    for (op, says) in [
        (Quadtree::new(5).capacity(0), "the capacity is 0"),
        (Quadtree::new(5).depth(17), "use at most 16"),
        (Quadtree::new(5).limit(0), "the root takes one"),
        (Quadtree::new(5).square([0.0, f32::NAN], 1.0), "the square at"),
        (Quadtree::new(5).square([0.0; 2], 0.0), "the square at"),
        (Quadtree::new(5).square([0.0; 2], f32::INFINITY), "the square at"),
    ] {
        let e = fails(op);
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(says), "{e}");
    }
    let e = fails(Quadtree::new(10_000_000));
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("set a limit of nodes"), "{e}");
    assert!(Op::<f32>::lower(&Quadtree::new(10_000_000).limit(5_000_000), &profile).is_ok());
}
