//! What tests share: devices, random data, comparison.

pub(crate) mod onnx;

use half::f16;
use std::sync::OnceLock;
use tilework::gpu::AdapterFilter;
use tilework::program::DeviceProfile;
use tilework::{Element, Gpu, GpuOptions, reference::Number};

/// A device that tests run on.
pub(crate) struct Device {
    pub(crate) gpu: Gpu,
    /// Adapter and how it was opened.
    pub(crate) label: String,
    /// The first device of the list gets the long lists of sizes.
    pub(crate) main: bool,
}

/// Every adapter (those that TILEWORK_ADAPTER names, if set), with kernels unchecked and checked, and the
/// portable floor: WebGPU's default limits and no optional features.
///
/// Empty if there is none, with a line that says so; REQUIRE_GPU=1 makes that a failure.
pub(crate) fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let wanted = std::env::var("TILEWORK_ADAPTER").unwrap_or_default().to_lowercase();
        let fits = |p: &DeviceProfile| format!("{} {}", p.name, p.driver).to_lowercase().contains(&wanted);
        let mut devices = Vec::new();
        for (index, profile) in Gpu::adapters().iter().enumerate().filter(|(_, p)| fits(p)) {
            let ways: &[(&str, bool, bool)] = if devices.is_empty() {
                &[("unchecked", false, false), ("checked", true, false), ("WebGPU defaults", false, true)]
            } else {
                &[("unchecked", false, false)]
            };
            for &(way, checked, webgpu_defaults) in ways {
                let adapter = AdapterFilter::Index(index);
                let options = GpuOptions { adapter, backend: None, checked, webgpu_defaults };
                let gpu = pollster::block_on(Gpu::request(options)).expect("an adapter that is listed opens");
                let label = format!("{} ({}, {way})", profile.name, profile.backend);
                devices.push(Device { gpu, label, main: devices.is_empty() });
            }
        }
        if devices.is_empty() {
            assert!(
                std::env::var_os("REQUIRE_GPU").is_none(),
                "REQUIRE_GPU is set and no adapter fits `{wanted}`"
            );
            eprintln!("skipped: no adapter on this machine; tests that need one do nothing");
        }
        devices
    })
}

/// The first device, if there is any.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    devices().first().map(|d| &d.gpu)
}

/// Profiles written by hand, and those of the adapters at hand.
pub(crate) fn profiles() -> Vec<DeviceProfile> {
    vec![
        DeviceProfile::webgpu_defaults(),
        DeviceProfile::swiftshader(),
        DeviceProfile::mesa(),
        DeviceProfile::h100(),
    ]
}

/// A small generator with a fixed start: splitmix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [-1, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-52) - 1.0
    }

    /// `n` elements: floats uniform in [-1, 1), integers over their whole range.
    pub(crate) fn elements<T: Sample>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::sample(self)).collect()
    }
}

/// Types that random data can be drawn of.
pub(crate) trait Sample: Element + Number {
    fn sample(random: &mut Random) -> Self;
}

impl Sample for f32 {
    fn sample(random: &mut Random) -> Self {
        random.unit() as f32
    }
}

impl Sample for f16 {
    fn sample(random: &mut Random) -> Self {
        f16::from_f64(random.unit())
    }
}

macro_rules! sample_bits {
    ($($t:ty),*) => {$(
        impl Sample for $t {
            fn sample(random: &mut Random) -> Self {
                random.next() as $t
            }
        }
    )*};
}
sample_bits!(i32, u32, u8, i8);

/// Asserts that each element is within its bound of what is wanted; NaN is wanted where NaN is.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: &[f64], want: &[f64], bound: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, ((g, w), b)) in got.iter().zip(want).zip(bound).enumerate() {
        let close = if w.is_nan() { g.is_nan() } else { g == w || (g - w).abs() <= *b };
        assert!(close, "{what}: element {i} is {g}, wanted {w} within {b}");
    }
}

/// Elements as numbers.
pub(crate) fn numbers<T: Number>(elements: &[T]) -> Vec<f64> {
    elements.iter().map(|x| x.to_f64()).collect()
}
