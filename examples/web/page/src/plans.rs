//! Programs for the page's pictures.

use tilework::prelude::*;
use tilework::program::{DeviceClass, DeviceProfile, Op, Program, Quirks};

/// Plans an op for WebGPU's default limits, on a device of this class:
///
/// | op | extents | `number` |
/// |---|---|---|
/// | `sort`, of pairs of u32 | n | bits of the keys that count |
/// | `histogram`, of bytes | n | bins |
/// | `grey`, of three bytes a pixel; `sobel`, `equalize` of bytes | h, w | - |
/// | `gaussian`, of bytes | h, w | sigma |
/// | `median`, of bytes | h, w | size |
pub(crate) fn program(
    op: &str,
    extents: &[usize],
    number: f64,
    class: DeviceClass,
) -> tilework::Result<Program> {
    let quirks = Quirks::of(class, "webgpu");
    let device = DeviceProfile { class, quirks, ..DeviceProfile::webgpu_defaults() };
    let n = extents.first().copied().unwrap_or_default();
    let image = [n, extents.get(1).copied().unwrap_or_default()];
    match op {
        "sort" => Op::<u32>::lower(&RadixSort::new(n).bits(0..number as u32).with_values(), &device),
        "histogram" => Op::<u8>::lower(&Histogram::new(n, number as usize), &device),
        "grey" => Op::<u8>::lower(&Grey::new([image[0], image[1], 3]), &device),
        "gaussian" => Op::<u8>::lower(&Gaussian::new(image, number).boundary(Boundary::Clamp), &device),
        "median" => Op::<u8>::lower(&Median::new(image, number as usize), &device),
        "sobel" => Op::<u8>::lower(&Sobel::new(image), &device),
        _ => Op::<u8>::lower(&Equalize::new(image), &device),
    }
}
