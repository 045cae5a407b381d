//! Every variant and form of `RadixSort` against the reference.

use crate::support::{Device, Random, Sample, devices};
use std::ops::Range;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::sort_positions;
use tilework::{Element, ErrorKind, Result};

/// What is asked of a sort.
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
        let mut sort = RadixSort::new(n).descending(self.descending).variant(self.variant);
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
    plan.record(&mut rec, &input, &values, &keys_out, &values_out)?;
    rec.submit()?;
    Ok((keys_out.read()?, values_out.read()?))
}

/// Runs keys alone and with values, and compares bits; what the device lacks is skipped.
fn check<T: Element>(device: &Device, ask: &Ask, keys: &[T]) {
    let n = keys.len();
    let what = format!(
        "{}: {n} {}, descending {}, bits {:?}, {}, tile {:?}, posts left out {}",
        device.label,
        T::DTYPE,
        ask.descending,
        ask.bits,
        ask.variant,
        ask.tile,
        ask.leave_out
    );
    let positions: Vec<u32> = (0..n as u32).collect();
    let got = match keys_of(&device.gpu, ask, keys) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let order = ask.wanted(keys);
    let want: Vec<T> = order.iter().map(|&i| keys[i]).collect();
    same(&what, &got, &want);
    let (got, values) = pairs_of(&device.gpu, ask, keys, &positions).unwrap_or_else(|e| panic!("{what}: {e}"));
    same(&format!("{what}, keys of pairs"), &got, &want);
    let want: Vec<u32> = order.iter().map(|&i| i as u32).collect();
    same(&format!("{what}, values"), &values, &want);
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
fn keys_and_pairs_match_reference_at_every_length() {
    let lengths = [0, 1, 2, 31, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 5_000, 40_001];
    for device in devices() {
        for variant in variants() {
            for (i, &n) in lengths.iter().enumerate().filter(|(i, _)| device.main || i % 5 == 4) {
                let keys: Vec<u32> = Random::new(i as u64).elements(n);
                check(device, &Ask { variant, descending: i % 2 == 1, ..PLAIN }, &keys);
            }
        }
    }
}
