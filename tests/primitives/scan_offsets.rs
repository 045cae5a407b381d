//! `ScanOffsets` by its one-line call; `reduce_offsets` compares both ops with the references.

use crate::support::gpu;
use tilework::prelude::*;

#[test]
fn scans_restart_at_offsets() {
    let Some(gpu) = gpu() else { return };
    let (x, offsets) = (gpu.upload(&[1i32, 2, 3, 4]).unwrap(), gpu.upload(&[0u32, 3, 3, 4]).unwrap());
    assert_eq!(gpu.scan_offsets(&x, &offsets, Sum).unwrap().read().unwrap(), [1, 3, 6, 4]);
    assert_eq!(gpu.reduce_offsets(&x, &offsets, Max).unwrap().read().unwrap(), [3, i32::MIN, 4]);
}
