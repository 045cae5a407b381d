//! How many workgroups fit on a multiprocessor.

/// Threads per warp.
const WARP: u32 = 32;

/// The resources of a multiprocessor. wgpu does not report them; `None` is unknown and limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Multiprocessor {
    /// Resident threads.
    pub threads: Option<u32>,
    /// Resident blocks.
    pub blocks: Option<u32>,
    /// Bytes of shared memory.
    pub shared_bytes: Option<u32>,
    /// Number of registers.
    pub registers: Option<u32>,
    /// Bytes of shared memory reserved per block.
    pub shared_bytes_reserved: u32,
}

/// NVIDIA's multiprocessors: words of which the name contains one, then threads, blocks, KiB of shared memory, and
/// reserved KiB per block, from the table of compute capabilities in the CUDA programming guide. All have 65536
/// registers.
const NVIDIA: &[(&[&str], [u32; 4])] = &[
    // 10.0
    (&["B100", "B200", "GB200"], [2048, 32, 228, 1]),
    // 9.0
    (&["H100", "H200", "H800", "GH200", "H20"], [2048, 32, 228, 1]),
    // 8.9
    (&["L4", "L40", "L40S"], [1536, 24, 100, 1]),
    (&["4050", "4060", "4070", "4080", "4090"], [1536, 24, 100, 1]),
    // 8.6
    (&["A2", "A10", "A10G", "A16", "A40"], [1536, 16, 100, 1]),
    (&["A2000", "A4000", "A4500", "A5000", "A5500", "A6000"], [1536, 16, 100, 1]),
    (&["3050", "3060", "3070", "3080", "3090"], [1536, 16, 100, 1]),
    // 8.0
    (&["A100", "A30", "A800"], [2048, 32, 164, 1]),
    // 7.5
    (&["T4"], [1024, 16, 64, 0]),
    (&["1650", "1660", "2060", "2070", "2080"], [1024, 16, 64, 0]),
    // 7.0
    (&["V100"], [2048, 32, 96, 0]),
];

impl Multiprocessor {
    /// Returns the multiprocessor of an adapter, if its name is that of an NVIDIA card from 2017 or later in the table.
    ///
    /// ```
    /// use tilework::analysis::Multiprocessor;
    ///
    /// let h100 = Multiprocessor::of_adapter("NVIDIA H100 80GB HBM3").unwrap();
    /// assert_eq!((h100.threads, h100.shared_bytes), (Some(2048), Some(228 << 10)));
    /// assert_eq!(Multiprocessor::of_adapter("AMD Radeon RX 7900 XTX"), None);
    /// ```
    pub fn of_adapter(name: &str) -> Option<Self> {
        let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        if !words.next()?.eq_ignore_ascii_case("NVIDIA") {
            return None;
        }
        let (_, [threads, blocks, shared, reserved]) =
            words.find_map(|word| NVIDIA.iter().find(|(names, _)| names.contains(&word)))?;
        Some(Self {
            threads: Some(*threads),
            blocks: Some(*blocks),
            shared_bytes: Some(shared << 10),
            registers: Some(1 << 16),
            shared_bytes_reserved: reserved << 10,
        })
    }

    /// Returns what WGSL kernels have of it through NVIDIA's Vulkan driver: at most 48 KiB of shared memory for all
    /// blocks together. On an H100 (driver 580.159.04) blocks of 24,576 bytes run two at a time, of 24,832 one: a
    /// product takes 940 us in place of 581.
    #[must_use]
    pub fn through_vulkan(self) -> Self {
        let shared_bytes = self.shared_bytes.map(|bytes| bytes.min(48 << 10));
        Self { shared_bytes, shared_bytes_reserved: 0, ..self }
    }

    /// Returns whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Resources of a block (a workgroup).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Threads.
    pub threads: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Registers of all threads.
    pub registers: u32,
}

/// Returns the registers of a block whose threads have `each`: NVIDIA's multiprocessors allot them to whole warps, 256
/// at a time.
///
/// ```
/// use tilework::analysis::registers_of_block;
/// assert_eq!(registers_of_block(256, 32), 8192);
/// assert_eq!(registers_of_block(100, 33), 4 * 1280);
/// ```
pub fn registers_of_block(threads: u32, each: u32) -> u32 {
    each.saturating_mul(WARP).div_ceil(256).saturating_mul(256).saturating_mul(threads.div_ceil(WARP))
}

/// Blocks per multiprocessor, by each resource and by all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Limit by blocks.
    pub by_blocks: Option<u32>,
    /// Limit by threads.
    pub by_threads: Option<u32>,
    /// Limit by shared memory.
    pub by_shared: Option<u32>,
    /// Limit by registers.
    pub by_registers: Option<u32>,
    /// The smallest limit; `None` if none is known.
    pub blocks: Option<u32>,
    /// Warps per block.
    pub warps_per_block: u32,
    block: Block,
    most_threads: Option<u32>,
}

impl Occupancy {
    /// Names the resource with the smallest known limit; the first of equal ones.
    pub fn bound(&self) -> Option<&'static str> {
        let limits = [
            (self.by_threads, "threads"),
            (self.by_shared, "shared memory"),
            (self.by_registers, "registers"),
            (self.by_blocks, "blocks"),
        ];
        limits.into_iter().find(|(fit, _)| fit.is_some() && *fit == self.blocks).map(|(_, name)| name)
    }

    /// Returns the resident threads.
    pub fn threads(&self) -> Option<u32> {
        Some(self.blocks?.saturating_mul(self.block.threads))
    }

    /// Returns the resident warps.
    pub fn warps(&self) -> Option<u32> {
        Some(self.blocks?.saturating_mul(self.warps_per_block))
    }

    /// Returns the bytes of shared memory in use.
    pub fn shared_bytes(&self) -> Option<u32> {
        Some(self.blocks?.saturating_mul(self.block.shared_bytes))
    }

    /// Returns the share of the possible warps in use; `None` if they are unknown or the multiprocessor holds none.
    pub fn fraction(&self) -> Option<f64> {
        let most = Some(self.most_threads? / WARP).filter(|warps| *warps > 0)?;
        Some(f64::from(self.warps()?) / f64::from(most))
    }
}

/// Returns how many of `block` fit on a multiprocessor. A resource that the block does not use limits nothing.
///
/// ```
/// use tilework::analysis::{Block, Multiprocessor, occupancy};
///
/// let (threads, blocks, registers) = (Some(1536), Some(8), Some(16384));
/// let multiprocessor = Multiprocessor { threads, blocks, registers, ..Default::default() };
/// let twelve = occupancy(&multiprocessor, &Block { threads: 256, registers: 12 * 256, ..Default::default() });
/// assert_eq!((twelve.blocks, twelve.threads(), twelve.by_shared), (Some(5), Some(1280), None));
/// ```
pub fn occupancy(multiprocessor: &Multiprocessor, block: &Block) -> Occupancy {
    let fit = |room: Option<u32>, each: u32| room?.checked_div(each);
    let by_blocks = multiprocessor.blocks;
    let warps_per_block = block.threads.div_ceil(WARP);
    // A block takes whole warps.
    let by_threads = fit(multiprocessor.threads.map(|threads| threads / WARP), warps_per_block);
    let reserved = if block.shared_bytes > 0 { multiprocessor.shared_bytes_reserved } else { 0 };
    let by_shared = fit(multiprocessor.shared_bytes, block.shared_bytes.saturating_add(reserved));
    let by_registers = fit(multiprocessor.registers, block.registers);
    let blocks = [by_blocks, by_threads, by_shared, by_registers].into_iter().flatten().min();
    Occupancy {
        by_blocks,
        by_threads,
        by_shared,
        by_registers,
        blocks,
        warps_per_block,
        block: *block,
        most_threads: multiprocessor.threads,
    }
}

#[cfg(test)]
mod tests;
