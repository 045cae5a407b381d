//! `Rope` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::nn::Rope;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::{rope, rope_bound};

/// With tables per token, and with positions.
fn check<T: Sample>(device: &Device, op: &Rope, shape: [usize; 4], rotary: usize)
where
    Rope: Op<T>,
{
    let (gpu, mut random) = (&device.gpu, Random::new(rotary as u64));
    let [batch, _, tokens, _] = shape;
    let x = random.elements::<T>(shape.iter().product());
    let angles = random.elements::<f32>((batch * tokens).max(9) * rotary / 2);
    let cos: Vec<f32> = angles.iter().map(|a| (4.0 * a).cos()).collect();
    let sin: Vec<f32> = angles.iter().map(|a| (4.0 * a).sin()).collect();
    // One position lies beyond the tables.
    let positions: Vec<u32> = (0..batch * tokens).map(|i| (5 * i % 10) as u32).collect();
    let (dx, dp) = (gpu.upload(&x).unwrap(), gpu.upload(&positions).unwrap());
    for rows in [tokens, batch * tokens, 9] {
        let len = rows * rotary / 2;
        let (dc, ds) = (gpu.upload(&cos[..len]).unwrap(), gpu.upload(&sin[..len]).unwrap());
        let output = gpu.upload(&vec![T::from_f64(7.0); x.len() + 3]).unwrap();
        let y = output.slice(..x.len()).unwrap();
        let mut rec = gpu.recorder();
        let (op, positions) = if rows == 9 {
            let at = op.clone().with_positions(rows);
            at.plan::<T>(gpu).unwrap().with_positions(&dp).record(&mut rec, &dx, &dc, &ds, y).unwrap();
            (at.clone(), Some(positions.as_slice()))
        } else {
            let op = op.clone().tables(rows);
            op.plan::<T>(gpu).unwrap().record(&mut rec, &dx, &dc, &ds, y).unwrap();
            (op, None)
        };
        rec.submit().unwrap();
        let mut got = output.read().unwrap();
        let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
        assert_eq!(got.split_off(x.len()), [T::from_f64(7.0); 3], "{what}");
        let want = rope(&op, &x, [&cos, &sin], positions);
        let bound = rope_bound(&op, &x, [&cos, &sin], positions);
        assert_close(&what, &numbers(&got), &numbers(&want), &bound);
    }
}

#[test]
fn matches_reference_in_every_layout() {
    for device in devices() {
        for (shape, rotary) in
            [([2, 3, 5, 16], 16), ([2, 3, 5, 16], 8), ([1, 2, 3, 7], 6), ([2, 2, 4, 6], 6), ([2, 1, 3, 4], 0)]
        {
            let [batch, heads, tokens, size] = shape;
            for (interleaved, tokens_first) in [(false, false), (true, true)] {
                // Other devices compile one kernel of vectors and one of elements.
                if !device.main && (interleaved || rotary != size && rotary != 6) {
                    continue;
                }
                let op = Rope::new([batch, heads, tokens, size]).rotary(rotary);
                let op = op.when(interleaved, |op| op.interleaved()).when(tokens_first, |op| op.tokens_first());
                check::<f32>(device, &op, shape, rotary);
                if device.main {
                    check::<f16>(device, &op, shape, rotary);
                }
            }
        }
        check::<f16>(device, &Rope::new([1, 1, 3, 7]).rotary(6), [1, 1, 3, 7], 6);
    }
}

#[test]
fn empty_input_returns_empty() {
    for device in devices() {
        check::<f32>(device, &Rope::new([0, 2, 3, 4]), [0, 2, 3, 4], 4);
        check::<f32>(device, &Rope::new([2, 0, 3, 4]), [2, 0, 3, 4], 4);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |op: Rope| Op::<f32>::lower(&op, &profile).unwrap_err().kind();
    assert_eq!(kind(Rope::new([1, 2, 3, 8]).rotary(5)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Rope::new([1, 2, 3, 8]).rotary(10)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Rope::new([1, 2, 3, 7])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Rope::new([2, 2, 3, 8]).tables(5)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Rope::new([2, 2, 3, 8]).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Rope::new([usize::MAX, 2, 3, 8])), ErrorKind::TooLarge);
    assert_eq!(kind(Rope::new([1 << 8, 1 << 8, 1 << 8, 64])), ErrorKind::TooLarge);
    let at = Rope::new([1, 2, 3, 8]).with_positions(0);
    assert_eq!(Op::<f32>::lower(&at, &profile).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
