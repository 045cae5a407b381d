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
    // 2^20 in 12.2 us (256 x 2 14.0, 1024 x 8 14.8); 2^28 at 2680 GB/s (512 x 8 2504, 1024 x 4 2302).
    let tile = match words {
        0..0x4_0000 => (256, 2),
        0x4_0000..0x40_0000 => (512, 4),
        _ => (1024, 8),
    };
    ScanPolicy::of(profile, tile)
}

/// The tiles of a scan of states in one pass, of all elements or of segments, or else in three kernels. vec4 are units
/// of one vector.
pub(super) fn state_policy(profile: &DeviceProfile, words: u64, one_pass: bool, segments: bool) -> ScanPolicy {
    // 2^27 affine maps, recurrence, min-max, mean and variance, log-sum-exp on an H100 (Vulkan, driver 580.159.04) in
    // 782, 599, 661, 715, 533 us (512 x 8: 815, 641, 658, 765, 560; affine maps 864 with 256 x 8, 934 with 1024 x 4).
    // Segments of min-max, affine maps: 807, 987 (512 x 8: 900, 1006; 512 x 4: 909, 1005; 1024 x 8: 867, 1267).
    let tile = match words {
        0..0x4_0000 => (256, 2),
        0x40_0000.. if one_pass && segments => (256, 8),
        0x40_0000.. if one_pass => (1024, 8),
        _ => (512, 4),
    };
    let ScanPolicy { workgroup_size, vec4s } = ScanPolicy::of(profile, tile);
    // Without subgroups all items are in workgroup memory twice: up to 32 bytes each.
    let most = if profile.features.subgroups { workgroup_size } else { 128 };
    ScanPolicy { workgroup_size: workgroup_size.min(most), vec4s }
}
