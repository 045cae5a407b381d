use super::*;
use crate::analysis::segments;

fn targets(addresses: impl IntoIterator<Item = u32>) -> Targets {
    let mut all = Targets::default();
    for (lane, address) in addresses.into_iter().enumerate() {
        all.push(lane, address);
    }
    all
}

#[test]
fn sectors_are_the_segments_of_the_analysis() {
    let cases: [Vec<u32>; 6] = [
        (0..32).map(|l| 4 * l).collect(),
        (0..32).map(|l| 4000 * l).collect(),
        (0..32).map(|l| 512 + 4 * l).collect(),
        (0..32).map(|l| 124 - 4 * l).collect(),
        vec![126, 126, 3],
        vec![],
    ];
    for addresses in cases {
        for (size, segment) in [(4, 32), (4, 128), (16, 64), (1, 32)] {
            let wanted = segments(addresses.iter().map(|a| u64::from(*a)), size.into(), segment.into()).unwrap();
            assert_eq!(targets(addresses.iter().copied()).sectors(size, segment).0, wanted);
        }
    }
    assert_eq!(targets([0, 0, 2]).sectors(4, 32), (1, 6));
}

#[test]
fn banks() {
    let passes = |stride: u32, size| targets((0..32).map(|l| stride * l)).passes(size, 32);
    assert_eq!((passes(4, 4), passes(8, 4), passes(128, 4), passes(132, 4)), ((1, 0), (2, 1), (32, 31), (1, 0)));
    assert_eq!((passes(0, 4), passes(16, 16), passes(20, 16)), ((1, 0), (4, 0), (8, 4)));
    assert_eq!((passes(2, 2), targets([8, 8, 8, 12]).contended()), ((1, 0), 2));
}

#[test]
fn races() {
    let scope = |group: u32| Scope { first: 64 * group, threads: 64 };
    let mut stamps = Stamps::new(1, 10);
    let mut at = |epoch, atomic| stamps.stamp(epoch, if atomic { 8 } else { 7 }, atomic);
    let (one, two, three, atomic) = (at(1, false), at(2, false), at(3, false), at(1, true));
    let mut r = Records::new(1);
    assert!(!r.is_written(0) && r.write(0, 0, one, scope(0), &stamps).is_none() && r.is_written(0));
    assert!(r.read(0, 0, one, scope(0), &stamps).is_none(), "its own");
    assert_eq!(r.read(0, 1, one, scope(0), &stamps), Some((7, 0)), "no barrier");
    assert!(r.read(0, 1, two, scope(0), &stamps).is_none(), "a barrier");
    assert!(r.read(0, 64, two, scope(1), &stamps).is_some(), "another workgroup's barrier");
    assert!(r.write(0, 2, three, scope(0), &stamps).is_some(), "the reader of the other workgroup");
    r.split(2);
    assert!(r.len() == 2 && r.is_written(1) && r.is_touched(1));
    let mut later = Stamps::new(stamps.next(), 10);
    let now = later.stamp(1, 7, false);
    assert!(r.write(1, 64, now, scope(1), &later).is_none(), "another dispatch");
    let mut r = Records::new(1);
    assert!(r.write(0, 0, atomic, scope(0), &stamps).is_none());
    assert!(r.write(0, 64, atomic, scope(1), &stamps).is_none());
    assert_eq!(r.read(0, 3, one, scope(0), &stamps), Some((8, 64)));
}
