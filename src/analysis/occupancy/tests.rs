use super::*;

fn of(threads: u32, shared_bytes: u32, registers: u32) -> Block {
    Block { threads, shared_bytes, registers }
}

#[test]
fn registers_and_threads_bound() {
    let m = Multiprocessor {
        threads: Some(1536),
        blocks: Some(8),
        registers: Some(16384),
        shared_bytes: Some(16 << 10),
        shared_bytes_reserved: 0,
    };
    let full = |registers: &u32| occupancy(&m, &of(256, 0, registers * 256)).threads() == Some(1536);
    assert_eq!((1..=64).filter(full).max(), Some(10));
    assert_eq!(occupancy(&m, &of(256, 0, 10 * 256)).blocks, Some(6));
    assert_eq!(occupancy(&m, &of(256, 0, 12 * 256)).threads(), Some(1280));
    let large = occupancy(&m, &of(512, 0, 11 * 512));
    assert_eq!((large.blocks, large.threads()), (Some(2), Some(1024)));
    let small = occupancy(&m, &of(128, 0, 0));
    assert_eq!((small.by_threads, small.blocks, small.threads()), (Some(12), Some(8), Some(1024)));
    let shared = occupancy(&m, &of(256, 2 << 10, 0));
    assert_eq!((shared.by_shared, shared.by_threads), (Some(8), Some(6)));
    assert_eq!(shared.shared_bytes(), Some(12 << 10));
}

#[test]
fn the_best_of_four_blocks() {
    let m = Multiprocessor {
        threads: Some(32 * WARP),
        blocks: Some(8),
        shared_bytes: Some(16 << 10),
        registers: Some(16 << 10),
        shared_bytes_reserved: 0,
    };
    let k = 1 << 10;
    let blocks = [of(160, 7 * k, k), of(224, 8 * k, 6 * k), of(288, 10 * k, 9 * k), of(96, 4 * k, 2 * k)];
    let all = blocks.map(|b| occupancy(&m, &b));
    assert_eq!(all.map(|o| o.warps().unwrap()), [10, 14, 9, 12]);
    assert_eq!(all[1].fraction(), Some(0.4375));
}

#[test]
fn loads_in_flight_and_full_houses() {
    let m = Multiprocessor { threads: Some(2048), shared_bytes: Some(64 << 10), ..Default::default() };
    let o = occupancy(&m, &of(256, 2 << 10, 0));
    assert_eq!((o.by_shared, o.by_threads, o.by_registers), (Some(32), Some(8), None));
    // A 16-wide tile of each matrix: two loads per thread.
    assert_eq!(o.threads().unwrap() * 2, 4096);
    let m = Multiprocessor { threads: Some(1536), blocks: Some(16), ..Default::default() };
    let o = occupancy(&m, &of(1536 / 16, 0, 0));
    assert_eq!((o.by_blocks, o.by_threads, o.warps_per_block), (Some(16), Some(16), 3));
    // 100 threads take 4 warps: 8 blocks fill 32.
    let m = Multiprocessor { threads: Some(1024), ..Default::default() };
    let o = occupancy(&m, &of(100, 0, 0));
    assert_eq!((o.blocks, o.warps(), o.fraction()), (Some(8), Some(32), Some(1.0)));
    // No room for a warp.
    let none = occupancy(&Multiprocessor { threads: Some(31), ..Default::default() }, &of(1, 0, 0));
    assert_eq!((none.blocks, none.fraction()), (Some(0), None));
    let unknown = occupancy(&Multiprocessor::default(), &of(64, 0, 0));
    assert_eq!((unknown.blocks, unknown.bound(), unknown.fraction()), (None, None, None));
}

#[test]
fn cards_by_name() {
    let known = |name: &str| Multiprocessor::of_adapter(name).map(|m| (m.threads.unwrap(), m.blocks.unwrap()));
    assert_eq!(known("NVIDIA H200"), Some((2048, 32)));
    assert_eq!(known("NVIDIA A100-SXM4-80GB"), Some((2048, 32)));
    assert_eq!(known("NVIDIA GeForce RTX 4090 Laptop GPU"), Some((1536, 24)));
    assert_eq!(known("Tesla T4"), None);
    for other in ["", "NVIDIA", "NVIDIA GeForce GTX 950", "llvmpipe (LLVM 15.0.6, 256 bits)", "H100"] {
        assert_eq!(known(other), None, "{other}");
    }
    // 48 KiB plus the reserved 1 KiB: four blocks of 49 KiB fit in 228.
    let h100 = Multiprocessor::of_adapter("NVIDIA H100 PCIe").unwrap();
    let large = occupancy(&h100, &of(256, 48 << 10, 0));
    assert_eq!((large.by_shared, large.bound(), large.fraction()), (Some(4), Some("shared memory"), Some(0.5)));
    assert_eq!(occupancy(&h100, &of(256, 0, 0)).bound(), Some("threads"));
}
