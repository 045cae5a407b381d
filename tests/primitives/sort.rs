//! Every variant and form of `RadixSort` against the reference.

use crate::support::coverage::{all, sample, turn};
use crate::support::{Device, Random, Sample, as_card, devices, supported};
use std::ops::Range;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::sort_positions;
use tilework::{Element, ErrorKind, Result};

/// The options of a sort.
#[derive(Clone)]
struct Ask {
    descending: bool,
    bits: Option<Range<u32>>,
    variant: &'static str,
    tile: Option<(u32, u32)>,
    leave_out: u32,
}

const PLAIN: Ask = Ask { descending: false, bits: None, variant: "auto", tile: None, leave_out: 0 };

impl Ask {
    fn sort(&self, n: usize) -> RadixSort {
        let mut sort = RadixSort::new(n).when(self.descending, |op| op.descending()).variant(self.variant);
        if let Some(bits) = &self.bits {
            sort = sort.bits(bits.clone());
        }
        if let Some((threads, items)) = self.tile {
            sort = sort.tile(threads, items);
        }
        if self.leave_out > 0 {
            sort = sort.leave_out_posts(self.leave_out);
        }
        sort
    }

    fn wanted<T: Element>(&self, keys: &[T]) -> Vec<usize> {
        let bits = self.bits.clone().unwrap_or(0..8 * size_of::<T>() as u32);
        sort_positions(keys, self.descending, bits)
    }
}

fn keys_of<T: Element>(gpu: &Gpu, ask: &Ask, keys: &[T]) -> Result<Vec<T>> {
    let (input, output) = (gpu.upload(keys)?, gpu.alloc::<T>(keys.len())?);
    let plan = ask.sort(keys.len()).plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, &output)?;
    rec.submit()?;
    output.read()
}

fn pairs_of<T: Element>(gpu: &Gpu, ask: &Ask, keys: &[T], values: &[u32]) -> Result<(Vec<T>, Vec<u32>)> {
    let n = keys.len();
    let (input, values) = (gpu.upload(keys)?, gpu.upload(values)?);
    let (keys_out, values_out) = (gpu.alloc::<T>(n)?, gpu.alloc::<u32>(n)?);
    let plan = ask.sort(n).with_values().plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.with_values(&values, &values_out).record(&mut rec, &input, &keys_out)?;
    rec.submit()?;
    Ok((keys_out.read()?, values_out.read()?))
}

fn describe<T: Element>(device: &Device, ask: &Ask, keys: &[T]) -> String {
    format!(
        "{}: {} {}, descending {}, bits {:?}, {}, tile {:?}, posts left out {}",
        device.label,
        keys.len(),
        T::DTYPE,
        ask.descending,
        ask.bits,
        ask.variant,
        ask.tile,
        ask.leave_out
    )
}

/// Sorts keys with their positions and compares bits; skips variants that the device lacks.
fn check<T: Element>(device: &Device, ask: &Ask, keys: &[T]) {
    let what = describe(device, ask, keys);
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    let (got, values) = match pairs_of(&device.gpu, ask, keys, &positions) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let order = ask.wanted(keys);
    same(&format!("{what}, keys"), &got, &order.iter().map(|&i| keys[i]).collect::<Vec<_>>());
    same(&format!("{what}, values"), &values, &order.iter().map(|&i| i as u32).collect::<Vec<_>>());
}

#[track_caller]
fn same<T: Element>(what: &str, got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "{what}");
    let differs = (0..got.len()).find(|&i| bytemuck::bytes_of(&got[i]) != bytemuck::bytes_of(&want[i]));
    if let Some(i) = differs {
        panic!("{what}: element {i} is {:?}, wanted {:?}", got[i], want[i]);
    }
}

fn variants() -> impl Iterator<Item = &'static str> {
    RadixSort::variants().iter().map(|v| v.name)
}

#[test]
fn every_type_sorts_in_its_order() {
    for device in devices() {
        for (v, variant) in variants().enumerate() {
            // Both directions in the complete run, one of them for each variant and type otherwise.
            for descending in [false, true] {
                let both = |i: usize| turn(i + v + usize::from(descending), 2);
                let ask = Ask { variant, descending, ..PLAIN };
                let mut random = Random::new(1);
                let n = if device.main { 6_000 } else { 700 };
                if both(0) && (device.main || descending) {
                    check::<f32>(device, &ask, &random.any(n));
                    check(device, &ask, &[f32::extremes(), f32::extremes()].concat());
                }
                if both(1) && (device.main || !descending) {
                    check::<i32>(device, &ask, &random.elements(n));
                    check(device, &ask, &random.elements::<i32>(n).iter().map(|k| k % 7).collect::<Vec<_>>());
                    check(device, &ask, &[i32::extremes(), i32::extremes()].concat());
                }
                if both(0) && device.main && device.gpu.profile().features.int64 {
                    check(device, &ask, &(0..n).map(|_| random.next()).collect::<Vec<_>>());
                    let few = |random: &mut Random| random.next() & 0x0300_0002_0000_0001;
                    check(device, &ask, &(0..n).map(|_| few(&mut random)).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn nan_sorts_last_and_keeps_bits_and_order() {
    let nans = [0x7fc0_0000u32, 0xffc0_0001, 0x7f80_0001, 0xffff_ffff, 0x7fff_ffff].map(f32::from_bits);
    let keys = [&nans[..], &[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY], &nans[1..3]].concat();
    let bits = |keys: &[f32]| keys.iter().map(|k| k.to_bits()).collect::<Vec<_>>();
    for device in devices().iter().filter(|d| d.main) {
        for variant in variants() {
            let ask = Ask { variant, ..PLAIN };
            let (up, down) = match keys_of(&device.gpu, &ask, &keys) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                up => (up, keys_of(&device.gpu, &Ask { descending: true, ..ask }, &keys)),
            };
            let tail = [&nans[..], &nans[1..3]].concat();
            let numbers = [f32::NEG_INFINITY, -0.0, 0.0, f32::INFINITY];
            assert_eq!(bits(&up.unwrap()), bits(&[&numbers[..], &tail].concat()), "{}", device.label);
            let numbers = [f32::INFINITY, 0.0, -0.0, f32::NEG_INFINITY];
            assert_eq!(bits(&down.unwrap()), bits(&[&numbers[..], &tail].concat()), "{}", device.label);
        }
    }
}

#[test]
fn a_bit_range_sorts_by_those_bits_only() {
    for device in devices().iter().filter(|d| d.main) {
        let keys: Vec<u32> = Random::new(2).elements(1500);
        let floats: Vec<f32> = Random::new(3).any(1500);
        for variant in variants() {
            let ranges = [5..5, 4..12, 3..20, 0..24, 7..32, 0..0, 32..32, 0..1, 31..32];
            for (i, bits) in sample(&ranges, 3).iter().enumerate() {
                let ask = Ask { bits: Some(bits.clone()), variant, descending: i % 2 == 0, ..PLAIN };
                check(device, &ask, &keys);
                if turn(i, 2) {
                    check(device, &ask, &floats);
                }
            }
            if all() && device.gpu.profile().features.int64 {
                let mut random = Random::new(4);
                let wide: Vec<u64> = (0..900).map(|_| random.next()).collect();
                for bits in [20..44, 0..64, 32..40, 63..64, 64..64, 30..33] {
                    check(device, &Ask { bits: Some(bits), variant, ..PLAIN }, &wide);
                }
            }
        }
    }
}

#[test]
fn sorted_equal_and_skewed_keys_stay_stable() {
    let n = 9_000;
    let mut random = Random::new(5);
    let inputs: [Vec<u32>; 5] = [
        vec![7; n],
        vec![u32::MAX; n],
        (0..n as u32).collect(),
        (0..n as u32).rev().collect(),
        (0..n).map(|_| (random.next() % 100).saturating_sub(90) as u32 * 0x0101_0101).collect(),
    ];
    for device in devices().iter().filter(|d| d.main) {
        for variant in variants() {
            for keys in &inputs {
                check(device, &Ask { variant, ..PLAIN }, keys);
            }
        }
    }
}

#[test]
fn a_million_keys_match_reference() {
    let keys: Vec<u32> = Random::new(10).elements(1_000_001);
    let Some(device) = devices().first() else { return };
    for variant in variants() {
        let ask = Ask { variant, ..PLAIN };
        match keys_of(&device.gpu, &ask, &keys) {
            Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}"),
            Ok(got) => same(variant, &got, &ask.wanted(&keys).iter().map(|&i| keys[i]).collect::<Vec<_>>()),
        }
    }
}

/// Many small tiles, some or all of which other workgroups must count.
#[test]
fn lookback_is_correct_when_tiles_never_post() {
    let keys: Vec<u32> = Random::new(6).elements(20_000);
    for device in devices() {
        let (_, largest) = device.gpu.profile().subgroup_sizes;
        for leave_out in [0, 1, 2, 8, 64, 512] {
            // One in 1: no tile posts, so each counts all before it.
            let n = if leave_out == 1 || !device.main { 3_000 } else { keys.len() };
            let tile = Some((largest.max(32), 2));
            let ask = Ask { variant: "onesweep", tile, leave_out, ..PLAIN };
            check(device, &ask, &keys[..n]);
        }
    }
}

#[test]
fn sorts_in_place_and_by_device_counts() {
    let n = 3_000;
    let keys: Vec<u32> = Random::new(7).elements(n);
    let values: Vec<u32> = (0..n as u32).collect();
    let gather = |order: &[usize], from: &[u32]| order.iter().map(|&i| from[i]).collect::<Vec<_>>();
    for device in devices().iter().filter(|d| d.main) {
        let gpu = &device.gpu;
        for variant in variants() {
            for bits in [0..32, 0..8, 5..6, 4..23] {
                let ask = Ask { variant, bits: Some(bits.clone()), ..PLAIN };
                if let Err(e) = ask.sort(n).plan::<u32>(gpu) {
                    assert_eq!(e.kind(), ErrorKind::Unsupported);
                    continue;
                }
                let what = format!("{}: {variant}, bits {bits:?}", device.label);
                let order = ask.wanted(&keys);
                let (x, y) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
                let mut rec = gpu.recorder();
                ask.sort(n).in_place().plan::<u32>(gpu).unwrap().record_in_place(&mut rec, &x).unwrap();
                rec.submit().unwrap();
                same(&what, &x.read().unwrap(), &gather(&order, &keys));
                let x = gpu.upload(&keys).unwrap();
                let mut rec = gpu.recorder();
                let plan = ask.sort(n).with_values().in_place().plan::<u32>(gpu).unwrap();
                plan.with_values_in_place(&y).record_in_place(&mut rec, &x).unwrap();
                rec.submit().unwrap();
                same(&what, &x.read().unwrap(), &gather(&order, &keys));
                same(&what, &y.read().unwrap(), &gather(&order, &values));
            }
            let ask = Ask { variant, ..PLAIN };
            if ask.sort(n).plan::<u32>(gpu).is_err() {
                continue;
            }
            for count in [0, 1, 1_234, n as u32, u32::MAX] {
                let what = format!("{}: {variant}, {count} counted", device.label);
                let m = n.min(count as usize);
                let order = ask.wanted(&keys[..m]);
                let with_rest = |sorted: Vec<u32>, rest: &[u32]| [sorted, rest[m..].to_vec()].concat();
                let (x, y, c) =
                    (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap(), gpu.upload(&[count]).unwrap());
                let (kx, ky) = (gpu.upload(&vec![9u32; n]).unwrap(), gpu.upload(&vec![8u32; n]).unwrap());
                let mut rec = gpu.recorder();
                let plan = ask.sort(n).with_values().counted().plan::<u32>(gpu).unwrap();
                plan.with_values(&y, &ky).with_length(&c).record(&mut rec, &x, &kx).unwrap();
                let plan = ask.sort(n).with_values().in_place().counted().plan::<u32>(gpu).unwrap();
                plan.with_values_in_place(&y).with_length(&c).record_in_place(&mut rec, &x).unwrap();
                rec.submit().unwrap();
                same(&what, &kx.read().unwrap(), &with_rest(gather(&order, &keys), &vec![9; n]));
                same(&what, &ky.read().unwrap(), &with_rest(gather(&order, &values), &vec![8; n]));
                same(&what, &x.read().unwrap(), &with_rest(gather(&order, &keys), &keys));
                same(&what, &y.read().unwrap(), &with_rest(gather(&order, &values), &values));
                let (x, kx) = (gpu.upload(&keys).unwrap(), gpu.upload(&vec![9u32; n]).unwrap());
                let mut rec = gpu.recorder();
                ask.sort(n).counted().plan::<u32>(gpu).unwrap().with_length(&c).record(&mut rec, &x, &kx).unwrap();
                ask.sort(n)
                    .in_place()
                    .counted()
                    .plan::<u32>(gpu)
                    .unwrap()
                    .with_length(&c)
                    .record_in_place(&mut rec, &x)
                    .unwrap();
                rec.submit().unwrap();
                same(&what, &kx.read().unwrap(), &with_rest(gather(&order, &keys), &vec![9; n]));
                same(&what, &x.read().unwrap(), &with_rest(gather(&order, &keys), &keys));
            }
        }
    }
}

/// A profile with bindings of 64 KiB, so that a few thousand keys need several bindings.
#[test]
fn keys_larger_than_one_binding_are_split() {
    let n = 40_001;
    let keys: Vec<f32> = Random::new(8).any(n);
    let values: Vec<u32> = (0..n as u32).collect();
    let order = sort_positions(&keys, false, 0..32);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let gpu = &device.gpu;
        let mut profile = gpu.profile().clone();
        profile.limits.max_storage_binding = 64 << 10;
        let sort = RadixSort::new(n).with_values();
        let program = Op::<f32>::lower(&sort.clone().counted(), &profile).unwrap();
        assert_eq!(program.variant(), "counting");
        assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= 64 << 10));
        let refused = Op::<f32>::lower(&sort.variant("onesweep"), &profile).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::TooLarge | ErrorKind::Unsupported), "{refused}");
        for count in [n, 20_000] {
            let (x, y) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
            let c = gpu.upload(&[count as u32]).unwrap();
            let (kx, ky) = (gpu.alloc::<f32>(n).unwrap(), gpu.alloc::<u32>(n).unwrap());
            let executable = gpu.prepare(program.clone()).unwrap();
            let raw = [Slice::from(&x).untyped(), Slice::from(&y).untyped(), Slice::from(&c).untyped()];
            let raw = [&raw[..], &[Slice::from(&kx).untyped(), Slice::from(&ky).untyped()]].concat();
            let mut rec = gpu.recorder();
            executable.record(&mut rec, &raw).unwrap();
            rec.submit().unwrap();
            let order: Vec<usize> = order.iter().copied().filter(|&i| i < count).collect();
            let what = format!("{}: {count} of {n} in pieces", device.label);
            let want: Vec<f32> = order.iter().map(|&i| keys[i]).collect();
            same(&what, &kx.read().unwrap()[..count], &want);
            let want: Vec<u32> = order.iter().map(|&i| i as u32).collect();
            same(&what, &ky.read().unwrap()[..count], &want);
        }
    }
}

/// Kernels for cards run here too: unrolled steps, and ballots for subgroups above 32 lanes.
#[test]
fn kernels_for_cards_match_reference_on_any_device() {
    let n = 5_000;
    let keys: Vec<f32> = Random::new(11).any(n);
    let values: Vec<u32> = (0..n as u32).collect();
    let order = sort_positions(&keys, true, 0..32);
    let Some(device) = devices().first() else { return };
    let gpu = &device.gpu;
    let card = as_card(gpu);
    let mut large = card.clone();
    large.subgroup_sizes.1 = 64;
    for profile in [card, large] {
        for variant in variants() {
            let sort = RadixSort::new(n).descending().variant(variant).tile(64, 3).with_values();
            let program = match Op::<f32>::lower(&sort, &profile) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let (x, y) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
            let (kx, ky) = (gpu.alloc::<f32>(n).unwrap(), gpu.alloc::<u32>(n).unwrap());
            let raw = [Slice::from(&x).untyped(), Slice::from(&y).untyped()];
            let raw = [&raw[..], &[Slice::from(&kx).untyped(), Slice::from(&ky).untyped()]].concat();
            let mut rec = gpu.recorder();
            gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
            rec.submit().unwrap();
            let what = format!("{}: {variant}, subgroups {:?}", device.label, profile.subgroup_sizes);
            same(&what, &kx.read().unwrap(), &order.iter().map(|&i| keys[i]).collect::<Vec<_>>());
            same(&what, &ky.read().unwrap(), &order.iter().map(|&i| i as u32).collect::<Vec<_>>());
        }
    }
}

#[test]
fn slices_are_sorted_and_neighbours_kept() {
    for device in devices() {
        let keys: Vec<i32> = Random::new(9).elements(1000);
        let (x, y) = (device.gpu.upload(&keys).unwrap(), device.gpu.upload(&[7i32; 1000]).unwrap());
        let mut rec = device.gpu.recorder();
        let plan = RadixSort::new(300).plan::<i32>(&device.gpu).unwrap();
        plan.record(&mut rec, x.slice(64..364).unwrap(), y.slice(128..428).unwrap()).unwrap();
        rec.submit().unwrap();
        let mut want = vec![7; 1000];
        want[128..428].copy_from_slice(&keys[64..364]);
        want[128..428].sort_unstable();
        assert_eq!(y.read().unwrap(), want, "{}", device.label);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let h100 = DeviceProfile::h100();
    let webgpu = DeviceProfile::webgpu_defaults();
    let error = |r: Result<tilework::program::Program>| {
        let e = r.unwrap_err();
        (e.kind(), e.to_string())
    };
    let kind = |r| error(r).0;
    assert_eq!(kind(Op::<half::bf16>::lower(&RadixSort::new(9), &h100)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<u32>::lower(&RadixSort::new(9).bits(0..33), &h100)), ErrorKind::InvalidArgument);
    #[allow(clippy::reversed_empty_ranges, reason = "it is to be refused")]
    let reversed = RadixSort::new(9).bits(8..4);
    assert_eq!(kind(Op::<u32>::lower(&reversed, &h100)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Op::<u32>::lower(&RadixSort::new(9).variant("bubble"), &h100)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Op::<u32>::lower(&RadixSort::new(9).variant("onesweep"), &webgpu)), ErrorKind::Unsupported);
    let (kind, text) = error(Op::<u32>::lower(&RadixSort::new(1 << 32), &h100));
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(text.contains("keys of 4294967296 u32"), "{text}");
    let (kind, text) = error(Op::<u32>::lower(&RadixSort::new(1 << 29).variant("onesweep"), &h100));
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(text.contains("use `counting`"), "{text}");
    assert_eq!(Op::<u32>::lower(&RadixSort::new(1 << 30), &h100).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(Op::<u32>::lower(&RadixSort::new((1 << 30) - (1 << 20)), &h100).unwrap().variant(), "counting");
    assert_eq!(Op::<u32>::lower(&RadixSort::new(1 << 28), &h100).unwrap().variant(), "onesweep");
    // Keys that fit a binding, with posts of small tiles that do not.
    let posts = RadixSort::new(1 << 28).variant("onesweep");
    let (kind, text) = error(Op::<u32>::lower(&posts, &DeviceProfile::swiftshader()));
    assert!(kind == ErrorKind::TooLarge && text.contains("posts counts of 2147483648 bytes"), "{text}");
    assert!(Op::<u32>::lower(&RadixSort::new(0), &webgpu).unwrap().dispatches.is_empty());
}

/// Keys of 8 and 16 bits: every order, forms in place and counted, lengths that fill words in part.
#[test]
fn narrow_keys_sort_in_their_order() {
    fn narrow<T: Sample>(device: &Device, ask: &Ask, n: usize)
    where
        RadixSort: Op<T>,
    {
        let mut random = Random::new(n as u64);
        let keys = random.any::<T>(n);
        check(device, ask, &keys);
        check(device, ask, &T::extremes());
        // In place, the first of the keys only, and the values with them.
        let gpu = &device.gpu;
        let there = n / 2;
        let values: Vec<u32> = (0..n as u32).collect();
        let behind = [keys.clone(), T::extremes()].concat();
        let (input, moved) = (gpu.upload(&behind).unwrap(), gpu.upload(&values).unwrap());
        let length = gpu.upload(&[there as u32]).unwrap();
        let plan = ask.sort(n).with_values().in_place().counted().plan::<T>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let with = plan.with_values_in_place(&moved).with_length(&length);
        with.record_in_place(&mut rec, input.slice(..n).unwrap()).unwrap();
        rec.submit().unwrap();
        let order = ask.wanted(&keys[..there]);
        let want: Vec<T> = order.iter().map(|&i| keys[i]).chain(behind[there..].iter().copied()).collect();
        same(&format!("{}, in place", describe(device, ask, &keys)), &input.read().unwrap(), &want);
        let want: Vec<u32> = order.iter().map(|&i| i as u32).chain(there as u32..n as u32).collect();
        assert_eq!(moved.read().unwrap(), want, "{}", device.label);
    }
    for device in devices() {
        for (i, descending) in [false, true].into_iter().enumerate() {
            let ask = Ask { descending, variant: "counting", ..PLAIN };
            narrow::<half::f16>(device, &ask, if device.main { 5_001 } else { 301 });
            narrow::<i8>(device, &ask, if device.main { 5_003 } else { 303 - i });
            narrow::<u8>(device, &Ask { bits: Some(2..7), ..ask.clone() }, 1_001 + i);
        }
        let gpu = &device.gpu;
        let halves = Random::new(3).any::<half::f16>(777);
        let (keys, indices) = (gpu.upload(&halves).unwrap(), gpu.alloc::<u32>(777).unwrap());
        let mut rec = gpu.recorder();
        Argsort::new(777).plan::<half::f16>(gpu).unwrap().record(&mut rec, &keys, &indices).unwrap();
        rec.submit().unwrap();
        let want: Vec<u32> = sort_positions(&halves, false, 0..16).iter().map(|&i| i as u32).collect();
        assert_eq!(indices.read().unwrap(), want, "{}", device.label);
    }
}

/// Keys of i16, u16, i64 and f64. Numbers ascend with keys; NaN has the largest and is last either way.
#[test]
fn keys_sort_by_the_number_that_their_bits_are() {
    #[track_caller]
    fn check<T: Element>(gpu: &Gpu, keys: &[T], bits: KeyBits, number: impl Fn(&T) -> i128) {
        let Ok(given) = gpu.upload(keys) else { return };
        for (variant, descending) in variants().flat_map(|variant| [(variant, false), (variant, true)]) {
            let sort = RadixSort::new(keys.len()).keys_as(bits).variant(variant);
            let sort = sort.when(descending, RadixSort::descending);
            let Some(plan) = supported(sort.plan::<T>(gpu)) else { continue };
            let sorted = gpu.alloc::<T>(keys.len()).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &given, &sorted).unwrap();
            rec.submit().unwrap();
            let mut want = keys.to_vec();
            want.sort_by_key(|key| match number(key) {
                number if descending && number < i128::MAX => -number,
                number => number,
            });
            same(&format!("{bits:?} by {variant}"), &sorted.read().unwrap(), &want);
        }
    }
    for device in devices() {
        let mut random = Random::new(5);
        let halves: Vec<half::f16> = (0..3001).map(|_| half::f16::from_bits(random.next() as u16)).collect();
        check(&device.gpu, &halves, KeyBits::Signed, |x| i128::from(x.to_bits() as i16));
        check(&device.gpu, &halves, KeyBits::Unsigned, |x| i128::from(x.to_bits()));
        let special =
            [0.0, -0.0, 1.0, -1.0, f64::INFINITY, -f64::INFINITY, f64::NAN, -f64::NAN, 5e-324].map(f64::to_bits);
        let words: Vec<u64> = (0..3001).map(|_| random.next()).chain(special).collect();
        check(&device.gpu, &words, KeyBits::Signed, |&x| i128::from(x as i64));
        check(&device.gpu, &words, KeyBits::Float, |&x| match x as i64 {
            _ if f64::from_bits(x).is_nan() => i128::MAX,
            bits => i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64),
        });
        let refused = |sort: RadixSort| Op::<u8>::lower(&sort, device.gpu.profile()).map_err(|e| e.kind());
        assert_eq!(refused(RadixSort::new(9).keys_as(KeyBits::Float)).err(), Some(ErrorKind::Unsupported));
        let mapped = RadixSort::new(9).mapped(MapFn::Neg).keys_as(KeyBits::Signed);
        assert_eq!(refused(mapped).err(), Some(ErrorKind::InvalidArgument));
    }
}

#[test]
fn wide_values_move_with_their_keys() {
    for device in devices() {
        let gpu = &device.gpu;
        let names: Vec<_> = variants().collect();
        for (words, variant) in [2, 3, 4, 16].into_iter().zip(names.iter().copied().cycle()) {
            let n = if device.main { 3_001 } else { 201 };
            let keys: Vec<u32> = Random::new(words as u64).elements::<u32>(n).iter().map(|k| k % 99).collect();
            let values: Vec<u32> = (0..(n * words) as u32).collect();
            let sort = RadixSort::new(n).with_wide_values(words).variant(variant);
            let plan = match sort.plan::<u32>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                plan => plan.unwrap(),
            };
            let (input, given) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
            let (keys_out, values_out) = (gpu.alloc::<u32>(n).unwrap(), gpu.alloc::<u32>(n * words).unwrap());
            let mut rec = gpu.recorder();
            plan.with_values(&given, &values_out).record(&mut rec, &input, &keys_out).unwrap();
            rec.submit().unwrap();
            let order = sort_positions(&keys, false, 0..32);
            let what = format!("{}: {n} values of {words} words, {variant}", device.label);
            same(&what, &keys_out.read().unwrap(), &order.iter().map(|&i| keys[i]).collect::<Vec<_>>());
            let want = order.iter().flat_map(|&i| values[i * words..(i + 1) * words].to_vec());
            same(&what, &values_out.read().unwrap(), &want.collect::<Vec<u32>>());
            // The first 100 of them, as the device says.
            let length = gpu.upload(&[100u32]).unwrap();
            let plan = sort.counted().plan::<u32>(gpu).unwrap();
            let mut rec = gpu.recorder();
            let call = plan.with_values(&given, &values_out).with_length(&length);
            call.record(&mut rec, &input, &keys_out).unwrap();
            rec.submit().unwrap();
            let order = sort_positions(&keys[..100], false, 0..32);
            let want = order.iter().flat_map(|&i| values[i * words..(i + 1) * words].to_vec());
            let got = values_out.slice(..100 * words).unwrap().read().unwrap();
            same(&format!("{what}, counted"), &got, &want.collect::<Vec<u32>>());
        }
    }
    let profile = DeviceProfile::webgpu_defaults();
    let refused = |sort: RadixSort| Op::<u32>::lower(&sort, &profile).unwrap_err().kind();
    assert_eq!(refused(RadixSort::new(9).with_wide_values(0)), ErrorKind::InvalidArgument);
    assert_eq!(refused(RadixSort::new(9).with_wide_values(2).in_place()), ErrorKind::Unsupported);
    assert_eq!(refused(RadixSort::new(9).with_wide_values(usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(
        Op::<u8>::lower(&RadixSort::new(9).bits(0..9), &profile).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

/// A function of the keys in the first pass, built in and the caller's, in every variant and form.
#[test]
fn mapped_keys_sort_by_the_function() {
    let mut random = Random::new(12);
    let keys: Vec<u32> = random.elements(5003);
    let floats: Vec<f32> = random.elements(3001);
    let halves: Vec<half::f16> = random.elements(1001);
    let positions: Vec<u32> = (0..5003).collect();
    let scramble = MapFn::custom("fn map(x: T) -> T { return (x * 2654435761u) >> 7u; }");
    for device in devices() {
        let gpu = &device.gpu;
        for (v, variant) in variants().enumerate() {
            if supported(RadixSort::new(9).variant(variant).plan::<u32>(gpu)).is_none() {
                continue;
            }
            for leave_out in [0, 2] {
                let mapped: Vec<u32> = keys.iter().map(|x| x.wrapping_mul(2654435761) >> 7).collect();
                let want = sort_positions(&mapped, false, 0..32);
                let sort = RadixSort::new(keys.len()).mapped(scramble.clone()).with_values().variant(variant);
                let sort = if leave_out > 0 { sort.leave_out_posts(leave_out) } else { sort };
                let (input, values) = (gpu.upload(&keys).unwrap(), gpu.upload(&positions).unwrap());
                let (out, values_out) = (gpu.alloc::<u32>(keys.len()).unwrap(), gpu.alloc(keys.len()).unwrap());
                let mut rec = gpu.recorder();
                let plan = sort.plan::<u32>(gpu).unwrap();
                plan.with_values(&values, &values_out).record(&mut rec, &input, &out).unwrap();
                rec.submit().unwrap();
                same("keys", &out.read().unwrap(), &want.iter().map(|i| mapped[*i]).collect::<Vec<_>>());
                same("values", &values_out.read().unwrap(), &want.iter().map(|i| *i as u32).collect::<Vec<_>>());
            }
            // In place, floats; and the order alone.
            let size: Vec<f32> = floats.iter().map(|x| x.abs()).collect();
            let want = sort_positions(&size, true, 0..32);
            let sort = RadixSort::new(floats.len()).mapped(MapFn::Abs).descending().in_place().variant(variant);
            let x = gpu.upload(&floats).unwrap();
            let order = gpu.alloc::<u32>(floats.len()).unwrap();
            let argsort = Argsort::new(floats.len()).mapped(MapFn::Abs).descending().variant(variant);
            let mut rec = gpu.recorder();
            argsort.plan::<f32>(gpu).unwrap().record(&mut rec, &x, &order).unwrap();
            sort.plan::<f32>(gpu).unwrap().record_in_place(&mut rec, &x).unwrap();
            rec.submit().unwrap();
            same("in place", &x.read().unwrap(), &want.iter().map(|i| size[*i]).collect::<Vec<_>>());
            same("order", &order.read().unwrap(), &want.iter().map(|i| *i as u32).collect::<Vec<_>>());
            if !turn(v, 2) {
                continue;
            }
            let sort = RadixSort::new(halves.len()).mapped(MapFn::Neg).variant(variant);
            let (x, out) = (gpu.upload(&halves).unwrap(), gpu.alloc::<half::f16>(halves.len()).unwrap());
            let mut rec = gpu.recorder();
            sort.plan::<half::f16>(gpu).unwrap().record(&mut rec, &x, &out).unwrap();
            rec.submit().unwrap();
            let negative: Vec<_> = halves.iter().map(|x| -*x).collect();
            let want = sort_positions(&negative, false, 0..16);
            same("halves", &out.read().unwrap(), &want.iter().map(|i| negative[*i]).collect::<Vec<_>>());
        }
    }
    let kind = |sort: RadixSort| Op::<u32>::lower(&sort, &DeviceProfile::mesa()).unwrap_err().kind();
    assert_eq!(kind(RadixSort::new(9).mapped(MapFn::Exp)), ErrorKind::Unsupported);
}
