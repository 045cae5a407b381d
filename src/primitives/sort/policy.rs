use super::RadixSort;
use crate::program::prelude::*;

pub(super) const RADIX: u64 = 256;
/// Maximum of keys of `onesweep`: counts have 30 bits beside two bits of flags.
const MAX_SWEEP: u64 = (1 << 30) - 1;
/// Maximum of keys of a thread whose steps are unrolled.
const MAX_ITEMS: u32 = 64;

/// Keys of a thread that make up for its counters.
const SHORTEST_RUN: u64 = 512;

/// Constants that depend on the device.
pub(super) struct SortPolicy {
    /// Threads of a tile of `counting`, and keys of a thread.
    pub(super) block_tile: (u32, u32),
    /// Blocks that share the keys in `counting`.
    pub(super) blocks: u64,
    /// A block of `counting` belongs to one thread; if not, to a workgroup.
    pub(super) runs: bool,
    /// Threads of a tile of `onesweep`, and keys of a thread.
    pub(super) sweep_tile: (u32, u32),
    /// Workgroups that count digits for `onesweep`.
    pub(super) counters: u64,
    /// Threads of a workgroup of the kernels that walk keys, counts or words without a tile.
    pub(super) walkers: u32,
    /// Unrolls the steps over the keys of a thread.
    pub(super) written_out: bool,
}

pub(super) fn policy(profile: &DeviceProfile, key_size: u64, keys: u64) -> SortPolicy {
    let (_, largest) = profile.subgroup_sizes;
    if profile.quirks.serial_workgroups {
        // On processors each thread pays for a barrier; more workgroups than cores gain nothing.
        let sweep_tile = (2 * largest.clamp(4, 32), 16);
        return SortPolicy {
            block_tile: (8, 64),
            // Their counts fit a binding.
            blocks: keys.div_ceil(SHORTEST_RUN).min(profile.limits.max_storage_binding / (8 * RADIX)).clamp(1, 256),
            runs: true,
            sweep_tile,
            counters: 32,
            walkers: 8,
            written_out: false,
        };
    }
    // Keys of u32 on an H100 (Vulkan, driver 580.159.04): 2^16 in 41 us (512 x 16 52); 2^20 in 70 us (256 x 8 92);
    // 2^28 33.6 G/s (768 x 14 32.7).
    let (threads, items) = match (key_size, keys) {
        (_, 0..0x4_0000) => (256, 8),
        (4, 0x4_0000..0x40_0000) => (512, 16),
        (4, _) => (512, 22),
        _ => (512, 10),
    };
    let block_items = if key_size == 4 { 8 } else { 4 };
    let mut sweep_tile = (threads, items);
    while !fits(profile, sweep_tile, key_size) && sweep_tile.1 > 1 {
        sweep_tile = if sweep_tile.0 > 256 { (256, sweep_tile.1) } else { (256, sweep_tile.1 - 1) };
    }
    while !fits(profile, sweep_tile, key_size) && sweep_tile.0 > largest.max(1) {
        sweep_tile.0 /= 2;
    }
    // 2^24 keys of u32 on the same card: 938 us (128 x 8 1298, 256 x 4 1179).
    let large = key_size == 4 && profile.limits.max_workgroup_bytes >= 32_768;
    let block_tile = if large { (256, 8) } else { (128, block_items) };
    SortPolicy { block_tile, blocks: 1056, runs: false, sweep_tile, counters: 1056, walkers: 256, written_out: true }
}

pub(super) fn check_tile((threads, items): (u32, u32), profile: &DeviceProfile) -> Result<()> {
    let most = profile.limits.max_invocations;
    let rows = threads.is_multiple_of(32) || matches!(threads, 8 | 16);
    if rows && (8..=most).contains(&threads) && (1..=MAX_ITEMS).contains(&items) {
        return Ok(());
    }
    Err(err!(
        InvalidArgument,
        "sort: a tile of {threads} threads with {items} keys each; threads must be 8, 16 or a multiple of 32 up to \
         {most}, and keys 1 to {MAX_ITEMS}"
    ))
}

/// Rejects `onesweep` if the keys, its posts or its tile do not fit the device.
pub(super) fn check_sweep(desc: &RadixSort, dtype: DType, policy: &SortPolicy, profile: &DeviceProfile) -> Result<()> {
    let (op, key_size) = (desc.form.op(), dtype.size() as u64);
    let limits = &profile.limits;
    let largest = limits.max_storage_binding.min(MAX_SWEEP * 4);
    let bytes = (desc.n as u64).saturating_mul(key_size);
    // Bytes of the counts that tiles post.
    let posts = sweep_tiles(desc.n as u64, policy.sweep_tile).saturating_mul(4 * RADIX);
    if !profile.features.subgroups {
        Err(err!(Unsupported, "{op}: no subgroup operations"))
    } else if posts > largest {
        Err(err!(
            TooLarge,
            "{op}: the variant `onesweep` posts counts of {posts} bytes for {} keys; the limit on {} is {largest}; use \
             `counting`",
            desc.n,
            profile.name
        ))
    } else if bytes > largest {
        Err(err!(
            TooLarge,
            "{op}: the variant `onesweep` binds all {} keys of {dtype} at once, {bytes} bytes; the limit on {} is \
             {largest}; use `counting`",
            desc.n,
            profile.name
        ))
    } else if !fits(profile, policy.sweep_tile, key_size)
        || !policy.sweep_tile.0.is_multiple_of(profile.subgroup_sizes.1.max(1))
    {
        Err(err!(
            Unsupported,
            "{op}: the variant `onesweep` has no tile for {}, with subgroups of {} to {} and {} bytes of workgroup \
             memory; use `counting`",
            profile.name,
            profile.subgroup_sizes.0,
            profile.subgroup_sizes.1,
            limits.max_workgroup_bytes
        ))
    } else {
        Ok(())
    }
}

/// Rows of the counts of a tile of `onesweep`: the maximum of its subgroups.
pub(super) fn sweep_rows(profile: &DeviceProfile, workgroup_size: u32) -> u32 {
    workgroup_size / profile.subgroup_sizes.0.max(1)
}

pub(super) fn sweep_tiles(n: u64, (workgroup, each): (u32, u32)) -> u64 {
    n.div_ceil((u64::from(workgroup) * u64::from(each)).max(1))
}

/// Returns true if the device has the threads and workgroup memory for a tile of `onesweep`.
fn fits(profile: &DeviceProfile, (workgroup_size, items): (u32, u32), key_size: u64) -> bool {
    let rows = u64::from(sweep_rows(profile, workgroup_size));
    let keys = u64::from(workgroup_size) * u64::from(items);
    // Counts of rows or the tile, sums of rows, three words for each digit, and a few more words.
    let bytes = (rows * 4 * RADIX).max(keys * key_size) + rows * 4 + 12 * RADIX + 32;
    workgroup_size <= profile.limits.max_invocations.min(profile.limits.max_workgroup_size[0])
        && bytes <= u64::from(profile.limits.max_workgroup_bytes)
}
