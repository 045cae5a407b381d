use super::super::schedule;
use super::*;
use crate::error::ErrorKind;

const LINK: Link = Link { latency: 1e-6, bandwidth: 1e9 };

#[test]
fn messages_and_bytes_of_collectives_are_those_of_the_formulas() {
    for p in [1usize, 2, 3, 4, 5, 8, 16, 33, 64] {
        let n = 1 << 20;
        let ranks = p as u64;
        let ring = count(p, LINK, 4, |r| schedule::all_reduce(r, p, n, 4)).unwrap();
        assert_eq!(ring.messages, 2 * ranks * (ranks - 1), "{p}");
        assert_eq!(ring.bytes, 2 * (ranks - 1) * 4 * n as u64, "{p}");
        let tree = count(p, LINK, 4, |r| schedule::all_reduce(r, p, 2, 4)).unwrap();
        assert_eq!((tree.messages, tree.bytes), (2 * (ranks - 1), 16 * (ranks - 1)), "{p}");
        let parts: Vec<_> = (0..p).map(|i| schedule::part(n, p, i)).collect();
        let gathered = count(p, LINK, 4, |r| schedule::all_gather(r, &parts)).unwrap();
        assert_eq!(gathered.messages, ranks * (ranks - 1));
        assert_eq!(gathered.bytes, (ranks - 1) * 4 * n as u64);
        for root in [0, p - 1, p / 2] {
            let small = count(p, LINK, 4, |r| schedule::broadcast(r, p, root, 8, 4)).unwrap();
            assert_eq!((small.messages, small.bytes), (ranks - 1, 32 * (ranks - 1)), "{p} from {root}");
            let large = count(p, LINK, 4, |r| schedule::broadcast(r, p, root, n, 4)).unwrap();
            assert_eq!(large.bytes, (ranks - 1) * 4 * n as u64, "{p} from {root}");
        }
        let barrier = count(p, LINK, 4, |r| schedule::barrier(r, p)).unwrap();
        let rounds = u64::from(p.next_power_of_two().trailing_zeros());
        assert_eq!((barrier.messages, barrier.bytes), (ranks * rounds, 0), "{p}");
        let even: Vec<_> = (0..p).map(|i| 10 * i..10 * (i + 1)).collect();
        let all = count(p, LINK, 4, |r| schedule::all_to_all(r, &even, &even)).unwrap();
        assert_eq!((all.messages, all.bytes), (ranks * (ranks - 1), 40 * ranks * (ranks - 1)), "{p}");
    }
}

#[test]
fn predicted_times_are_those_of_the_clock() {
    let device = Ceilings { copy_bytes_per_second: 1e12, fma_flop_per_second: 1e12 };
    let predicted = Prediction { device, link: LINK };
    for p in [2usize, 4, 8, 16, 32, 64] {
        for n in [2usize, 1 << 20] {
            let clock = count(p, LINK, 4, |r| schedule::all_reduce(r, p, n, 4)).unwrap().seconds;
            let formula = predicted.all_reduce(p, 4.0 * n as f64);
            assert!((clock - formula).abs() < 0.02 * formula, "{p} ranks, {n}: {clock} and {formula}");
        }
    }
}

#[test]
fn rejects_schedules_that_do_not_match() {
    let waiting = |_| vec![Step::Receive { from: 0, range: 0..1, combine: false }];
    let sending = |_| vec![Step::Send { to: 0, range: 0..1 }];
    let unequal = |rank| match rank {
        0 => vec![Step::Send { to: 1, range: 0..2 }],
        _ => vec![Step::Receive { from: 0, range: 0..1, combine: false }],
    };
    for (steps, text) in [
        (&waiting as &dyn Fn(usize) -> Vec<Step>, "waits for ever"),
        (&sending, "never takes"),
        (&unequal, "expects 1 elements"),
    ] {
        let e = count(2, LINK, 4, steps).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(text), "{e}");
    }
}
