//! Every variant of `Frontier` against the reference, and a search level by level.

use super::select::{cases, flags, read_counted};
use crate::support::coverage::sample;
use crate::support::{Random, devices};
use tilework::prelude::*;
use tilework::reference::frontier;
use tilework::{ErrorKind, Result};

/// List and number of children, or the error of a variant that the device lacks.
fn run(gpu: &Gpu, op: &Frontier, items: &[u32], f: &[u32], length: u32) -> Result<(Vec<u32>, u32, u32)> {
    let n = items.len();
    let plan = op.plan::<u32>(gpu)?;
    let (items, f, length) = (gpu.upload(items)?, gpu.upload(f)?, gpu.upload(&[length])?);
    let (list, children, wanted) = (gpu.upload(&vec![77; n])?, gpu.upload(&[9u32])?, gpu.upload(&[9u32])?);
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &items, &f, &length, &list, &children, &wanted)?;
    rec.submit()?;
    Ok((read_counted(&list, &wanted, 77)?, children.read()?[0], wanted.read()?[0]))
}

#[test]
fn lists_and_children_match_the_reference() {
    for (device, variant) in cases() {
        let mut random = Random::new(4);
        for &n in sample(&[10_000usize, 0, 1, 255, 4097, 70_001], if device.main { 6 } else { 1 }) {
            let (items, f) = (random.any::<u32>(n), flags(&mut random, n, 3));
            for (each, room, length) in
                [(1, u32::MAX, u32::MAX), (4, 1000, n as u32), (3, 2, n as u32), (7, u32::MAX, n as u32 / 2)]
            {
                let op = Frontier::new(n).children(each).room(room).variant(variant);
                let (list, children, wanted) = match run(&device.gpu, &op, &items, &f, length) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                    other => other.unwrap(),
                };
                let want = frontier(&items[..n.min(length as usize)], &f, each, room);
                let what = format!("{}: {n} by {variant}, {each} each in {room}", device.label);
                assert!(list == want.0 && wanted as usize == want.0.len(), "{what}");
                assert_eq!(children, want.1, "{what}");
            }
        }
    }
}

/// Item `i` has the children `2 i + 1` and `2 i + 2`; those that 5 divides, and those from 500 on, have none.
const HALVES: &str = "
#import workgroup/index
@group(0) @binding(0) var<storage, read> count: array<u32>;
@group(0) @binding(1) var<storage, read> list: array<u32>;
@group(0) @binding(2) var<storage, read_write> items: array<u32>;
@group(0) @binding(3) var<storage, read_write> flags: array<u32>;
@compute @workgroup_size(64)
fn halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = 64u * workgroup_index(group) + lane;
    if i >= count[0] { return; }
    items[i] = 2u * list[i / 2u] + 1u + i % 2u;
    flags[i] = u32(items[i] % 5u != 0u && items[i] < 500u);
}";

#[test]
fn a_search_makes_its_levels_without_a_count_on_the_host() {
    const DEPTH: usize = 9;
    let mut level = vec![0u32];
    for _ in 0..DEPTH {
        let splits = |item: &&u32| !item.is_multiple_of(5) && **item < 500 || **item == 0;
        level = level.iter().filter(splits).flat_map(|item| [2 * item + 1, 2 * item + 2]).collect();
    }
    assert!(level.len() > 10);
    for device in devices() {
        let gpu = &device.gpu;
        let n = 1 << DEPTH;
        let [items, flags] = [0u32, 1].map(|first| {
            let mut all = vec![0; n];
            all[0] = first;
            gpu.upload(&all).unwrap()
        });
        let [length, children, wanted] = [1u32, 0, 0].map(|x| gpu.upload(&[x]).unwrap());
        let list = gpu.alloc_zeroed::<u32>(n).unwrap();
        let plan = Frontier::new(n).children(2).plan::<u32>(gpu).unwrap();
        let halves = gpu.kernel("halves.wgsl", HALVES, "halves").unwrap();
        let mut rec = gpu.recorder();
        for step in 0..DEPTH {
            // The children of one level are the items of the next.
            let [from, to] = if step % 2 == 0 { [&length, &children] } else { [&children, &length] };
            plan.record(&mut rec, &items, &flags, from, &list, to, &wanted).unwrap();
            let args = [Arg::from(to), Arg::from(&list), Arg::from(&items), Arg::from(&flags)];
            halves.record_counted(&mut rec, &args, to, 64, n).unwrap();
        }
        rec.submit().unwrap();
        let count = children.read().unwrap()[0] as usize;
        assert_eq!(items.slice(..count).unwrap().read().unwrap(), level, "{}", device.label);
    }
}

#[test]
fn rejects_items_without_children() {
    let profile = tilework::program::DeviceProfile::h100();
    let e = tilework::program::Op::<u32>::lower(&Frontier::new(4).children(0), &profile).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("0 children"), "{e}");
}
