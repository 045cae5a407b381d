use super::*;
use crate::error::ErrorKind;

#[test]
fn warps() {
    let row_bytes = 4 * 1000;
    assert_eq!(segments((0..32).map(|lane| lane * row_bytes), 4, 128).unwrap(), 32);
    assert_eq!(segments((0..32).map(|lane| 512 + 4 * lane), 4, 128).unwrap(), 1);
    assert_eq!(segments([126], 4, 128).unwrap(), 2);
    assert_eq!(segments([], 4, 128).unwrap(), 0);
    assert_eq!(segments([u64::MAX], 4, 128).unwrap(), 1);
    assert_eq!(segments([126], 4, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn bursts_and_banks() {
    // First all words, then every second pair of words.
    assert_eq!(240.0 * Dram::burst_efficiency(8, 16, 512), 120.0);
    assert_eq!([(0, 0, 512), (0, 8, 512), (8, 8, 0)].map(|(u, s, b)| Dram::burst_efficiency(u, s, b)), [0.0; 3]);
    let channel = Dram { bus_bits: 64, clock: 1e9, latency_to_transfer: 20.0 };
    assert!((channel.busy(1) * 16.0 - 0.762).abs() < 5e-4);
    assert_eq!((channel.banks_to_fill(), channel.busy(21)), (21, 1.0));
}

#[test]
fn channels_of_a_tiled_product() {
    let memory = Interleaving { burst: 8, channels: 4, banks: 2 };
    let tile = |column: u64| -> BTreeSet<u64> {
        let cells = (0..2).flat_map(|row| (0..2).map(move |c| 4 * (4 * row + 2 * column + c)));
        cells.map(|address| memory.place(address).unwrap().0).collect()
    };
    assert_eq!((tile(0), tile(1)), (BTreeSet::from([0, 2]), BTreeSet::from([1, 3])));
    assert_eq!(memory.place(32).unwrap(), (0, 1));
    for none in [
        Interleaving { burst: 0, ..memory },
        Interleaving { channels: 0, ..memory },
        Interleaving { banks: 0, ..memory },
    ] {
        assert_eq!(none.place(32).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
