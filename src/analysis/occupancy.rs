//! How many workgroups a multiprocessor holds.

/// Threads of a warp.
const WARP: u32 = 32;

/// What a multiprocessor has. wgpu does not report it; `None` is not known, and bounds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Multiprocessor {
    /// Threads at a time.
    pub threads: Option<u32>,
    /// Blocks at a time.
    pub blocks: Option<u32>,
    /// Bytes of shared memory.
    pub shared_bytes: Option<u32>,
    /// Registers.
    pub registers: Option<u32>,
}

/// What a block (a workgroup) takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Threads.
    pub threads: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Registers of all its threads.
    pub registers: u32,
}

/// Blocks that a multiprocessor holds by each of its limits, and by all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// By the number of blocks.
    pub by_blocks: Option<u32>,
    /// By the number of threads.
    pub by_threads: Option<u32>,
    /// By shared memory.
    pub by_shared: Option<u32>,
    /// By registers.
    pub by_registers: Option<u32>,
    /// The least of them; `None` if no limit is known.
    pub blocks: Option<u32>,
    /// Warps of one block.
    pub warps_per_block: u32,
    block: Block,
    most_threads: Option<u32>,
}

impl Occupancy {
    /// Threads at a time.
    pub fn threads(&self) -> Option<u32> {
        Some(self.blocks? * self.block.threads)
    }

    /// Warps at a time.
    pub fn warps(&self) -> Option<u32> {
        Some(self.blocks? * self.warps_per_block)
    }

    /// Bytes of shared memory in use.
    pub fn shared_bytes(&self) -> Option<u32> {
        Some(self.blocks? * self.block.shared_bytes)
    }

    /// Warps in use, of those that there is room for.
    pub fn fraction(&self) -> Option<f64> {
        Some(f64::from(self.warps()?) / f64::from(self.most_threads? / WARP))
    }
}

/// How many of `block` a multiprocessor holds. What a block does not need does not bound it.
///
/// ```
/// use tilework::analysis::{Block, Multiprocessor, occupancy};
///
/// let multiprocessor = Multiprocessor { threads: Some(1536), blocks: Some(8), registers: Some(16384), ..Default::default() };
/// let twelve = occupancy(&multiprocessor, &Block { threads: 256, registers: 12 * 256, ..Default::default() });
/// assert_eq!((twelve.blocks, twelve.threads(), twelve.by_shared), (Some(5), Some(1280), None));
/// ```
pub fn occupancy(multiprocessor: &Multiprocessor, block: &Block) -> Occupancy {
    let fit = |room: Option<u32>, each: u32| room?.checked_div(each);
    let by_blocks = multiprocessor.blocks;
    let by_threads = fit(multiprocessor.threads, block.threads);
    let by_shared = fit(multiprocessor.shared_bytes, block.shared_bytes);
    let by_registers = fit(multiprocessor.registers, block.registers);
    let blocks = [by_blocks, by_threads, by_shared, by_registers].into_iter().flatten().min();
    Occupancy {
        by_blocks,
        by_threads,
        by_shared,
        by_registers,
        blocks,
        warps_per_block: block.threads.div_ceil(WARP),
        block: *block,
        most_threads: multiprocessor.threads,
    }
}

#[cfg(test)]
mod tests {
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
        };
        assert_eq!(16384 / 1536, 10);
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
        // A tile 16 wide of each of two matrices: two loads a thread.
        assert_eq!(o.threads().unwrap() * 2, 4096);
        let m = Multiprocessor { threads: Some(1536), blocks: Some(16), ..Default::default() };
        let o = occupancy(&m, &of(1536 / 16, 0, 0));
        assert_eq!((o.by_blocks, o.by_threads, o.warps_per_block), (Some(16), Some(16), 3));
        assert_eq!(occupancy(&Multiprocessor::default(), &of(64, 0, 0)).blocks, None);
    }
}
