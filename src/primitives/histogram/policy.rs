//! Workgroups and counters of a histogram, and the limits of each variant, by device.

use crate::program::DeviceProfile;

/// Constants that depend on the device.
pub(super) struct HistogramPolicy {
    /// Threads of a workgroup that counts in its own memory.
    pub(super) workgroup_size: u32,
    /// Maximum of workgroups that walk a chunk of the input.
    pub(super) workgroups: u64,
    /// Counters that one workgroup keeps, a power of two.
    pub(super) counters: u32,
    /// Maximum of copies of a workgroup's counters, a power of two.
    pub(super) copies: u32,
    /// Passes of `multipass` above which elements are partitioned, or, if they are fewer than the next, bins cached.
    pub(super) passes: u64,
    pub(super) partitioned: u64,
    /// Maximum of words of two counters in a workgroup of `multipass`.
    pub(super) packed_words: u32,
    /// Threads of such a workgroup, and number of workgroups.
    pub(super) packed_size: u32,
    pub(super) packed_workgroups: u64,
    /// vec4 that a thread of it has in flight.
    pub(super) packed_loads: u32,
    /// Minimum of elements for each of its counters.
    pub(super) packed_elements_per_slot: u64,
    /// Maximum of words of two counters in a workgroup that counts one bucket of `partitioned`.
    pub(super) bucket_words: u64,
    /// Minimum of elements of a workgroup for each of its counters.
    pub(super) elements_per_slot: u64,
    /// Keeps four loads of a thread in flight.
    pub(super) wide: bool,
}

pub(super) fn policy(profile: &DeviceProfile) -> HistogramPolicy {
    if profile.quirks.serial_workgroups {
        // Threads of a processor do not collide, and long kernels compile slowly.
        return HistogramPolicy {
            workgroup_size: 256,
            workgroups: 64,
            counters: 4096,
            copies: 4,
            passes: 1,
            partitioned: u64::MAX,
            packed_words: 2048,
            packed_size: 256,
            packed_workgroups: 64,
            packed_loads: 1,
            packed_elements_per_slot: 4,
            bucket_words: 3840,
            elements_per_slot: 4,
            wide: false,
        };
    }
    // GB/s of 2^28 items on an H100 80GB HBM3, Vulkan, driver 580.159.04, random, equal, Zipf: u8 in 256 bins 2625,
    // 2622, 2619; u32 in 8192 bins 2886, 2908, 2888, in 65536 multipass 1154, 1023, 1139.
    // At most a third of the memory, so that three workgroups hide each other's latency.
    let counters = (profile.limits.max_workgroup_bytes / 4).clamp(1, 8192);
    let packed_size = profile.limits.max_invocations.clamp(1, 1024);
    HistogramPolicy {
        workgroup_size: profile.limits.max_invocations.clamp(1, 512),
        workgroups: 528,
        counters: 1 << counters.ilog2(),
        copies: 32,
        passes: 6,
        partitioned: 1 << 22,
        packed_words: (profile.limits.max_workgroup_bytes / 4).clamp(1, 12288),
        packed_size,
        packed_workgroups: u64::from(264 * 1024 / packed_size),
        packed_loads: 4,
        packed_elements_per_slot: 1,
        bucket_words: 12032,
        elements_per_slot: 4,
        wide: true,
    }
}
