use crate::program::DeviceProfile;

/// Constants that depend on the device.
pub(in crate::primitives) struct ScanPolicy {
    pub(in crate::primitives) workgroup_size: u32,
    /// vec4 that a thread holds: 1, 2, 4 or 8.
    pub(in crate::primitives) vec4s: u32,
}

impl ScanPolicy {
    /// Takes the threads and vec4 that suit a GPU, within the limits of this device.
    pub(in crate::primitives) fn of(profile: &DeviceProfile, (workgroup_size, vec4s): (u32, u32)) -> Self {
        if profile.quirks.serial_workgroups {
            // On processors barriers are costly, and long kernels compile slowly.
            return Self { workgroup_size: 64, vec4s: 2 };
        }
        let most = if profile.features.subgroups { profile.limits.max_invocations } else { 256 };
        Self { workgroup_size: workgroup_size.min(most), vec4s }
    }
}

/// Threads of a workgroup of which each walks a tile of its own.
pub(super) const WALKERS: u32 = 8;

/// The vec4 of a thread that walks a tile of its own, for `vec4s` in all; `None` where a workgroup shares a tile.
pub(super) fn walked(profile: &DeviceProfile, vec4s: u64) -> Option<u32> {
    // Barriers are costly on processors. Shorter arrays are one tile of a workgroup.
    (profile.quirks.serial_workgroups && vec4s > 128).then(|| 1 << (vec4s / 256).clamp(16, 4096).ilog2())
}

pub(super) fn policy(profile: &DeviceProfile, words: u64) -> ScanPolicy {
    // Exclusive sums of u32 on an H100 (Vulkan, driver 580.159.04): 2^16 in 10.1 us (512 x 4 10.4, 1024 x 8 14.0);
    // 2^20 in 12.2 us (256 x 2 14.0, 1024 x 8 14.8); 2^28 at 2680 GB/s (512 x 8 2504, 256 x 8 2372, 1024 x 4 2302).
    let tile = match words {
        0..0x4_0000 => (256, 2),
        0x4_0000..0x40_0000 => (512, 4),
        _ => (1024, 8),
    };
    ScanPolicy::of(profile, tile)
}

/// The tiles of a scan of states, `alone` in one pass without segments: vec4 are units of one vector.
pub(super) fn state_policy(profile: &DeviceProfile, words: u64, alone: bool) -> ScanPolicy {
    // A thread holds the prefix of each unit beside it, which takes more registers than `policy` allows for.
    //
    // Scans of 2^27 elements by `lookback` on an H100 (Vulkan, driver 580.159.04), in microseconds, of affine maps,
    // recurrence, min-max, mean and variance, log-sum-exp: 953, 866, 949, 1374, 742 with 512 x 8; 1255, 1192, 1062,
    // 1774, 915 with 512 x 4; 1069, 898, 887, 1332, 750 with 512 x 10; 1024, 900, 993, 1341, 759 with 1024 x 8. Affine
    // maps and recurrence later: 929, 767 with 512 x 8; 962, 800 with 256 x 8; 992, 795 with 256 x 16; 1003, 847 with
    // 512 x 6; 1030, 952 with 384 x 8; 1153, 954 with 1024 x 4.
    //
    // Totals of units that threads exchange in workgroup memory, to join neighbours one after the other, in place of a
    // scan over the subgroup for each, on an H200: 853, 779, 831 of affine maps, recurrence, min-max, and 861, 711, 852
    // by shuffles (512 x 8; other tiles are slower). CUB takes 1591 for the affine maps.
    let tile = match words {
        0..0x4_0000 => (256, 2),
        0x40_0000.. if alone => (512, 8),
        _ => (512, 4),
    };
    let ScanPolicy { workgroup_size, vec4s } = ScanPolicy::of(profile, tile);
    // Without subgroups all items are in workgroup memory twice: up to 32 bytes each.
    let most = if profile.features.subgroups { workgroup_size } else { 128 };
    ScanPolicy { workgroup_size: workgroup_size.min(most), vec4s }
}

/// Whether a lane of a scan of states in one pass takes two adjacent units at a time, for operators with elements and
/// results of this many words: half as many scans over a subgroup, but its vectors lie two apart in memory.
///
/// Microseconds of recurrence, min-max, mean and variance, log-sum-exp of 2^27 elements on an H100 (Vulkan, driver
/// 580.159.04): 767, 902, 1136, 633 in pairs; 849, 921, 1358, 730 one by one. Affine maps, which have two words on both
/// sides: 986 and 931. Four at a time are slower, and so are pairs of a state of one word: 2^28 squares in 920 and 888.
pub(super) fn pairs_units(inputs: usize, outputs: usize) -> bool {
    inputs + outputs < 4
}
