//! Shared by tests: devices, coverage, random data, comparison.

pub(crate) mod by_name;
pub(crate) mod coverage;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod matrices;
pub(crate) mod onnx;
mod recording;

pub(crate) use crate::examples::common::Random;
use half::f16;
use std::fs::File;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use tilework::gpu::{AdapterFilter, Tuning};
use tilework::program::{DeviceClass, DeviceProfile, Quirks};
use tilework::{DType, Element, Gpu, GpuOptions, reference::Number};

/// A device that tests run on.
pub(crate) struct Device {
    pub(crate) gpu: Gpu,
    /// Adapter and how it was opened.
    pub(crate) label: String,
    /// The first device of the list gets the long lists of sizes.
    pub(crate) main: bool,
    options: GpuOptions,
}

impl Device {
    /// Whether kernels have runtime checks.
    pub(crate) fn checks(&self) -> bool {
        self.options.checked
    }

    /// The bound of a product of `T`: four times as wide where cooperative matrices, which truncate sums, may compute
    /// it.
    pub(crate) fn product_bound<T: Element>(&self, bound: Vec<f64>) -> Vec<f64> {
        let matrices = T::DTYPE == DType::F16 && self.gpu.profile().cooperative_side().is_some();
        bound.into_iter().map(|b| if matrices { 4.0 * b } else { b }).collect()
    }

    /// The same device opened again. Its pipelines, of which a software driver keeps megabytes each, are freed with it.
    pub(crate) fn again(&self) -> Self {
        let (options, label) = (self.options.clone(), self.label.clone());
        let gpu = pollster::block_on(Gpu::request(options.clone())).expect("an adapter that opened opens again");
        Self { gpu, label, main: self.main, options }
    }
}

/// The profile of `gpu` as a card, to run kernels for cards. Its driver still ends long loops.
pub(crate) fn as_card(gpu: &Gpu) -> DeviceProfile {
    let profile = gpu.profile().clone();
    let class = DeviceClass::Discrete;
    let max_loop_rounds = profile.quirks.max_loop_rounds;
    let quirks = Quirks { max_loop_rounds, ..Quirks::of(class, &profile.backend) };
    DeviceProfile { class, quirks, ..profile }
}

/// The devices that tests run on: each adapter whose name or driver contains TILEWORK_ADAPTER (any, if unset).
///
/// The first adapter is opened with kernels unchecked and, in the complete run, also as the portable floor: WebGPU's
/// default limits and no optional features. TILEWORK_ONE_WAY=NAME opens it only that way.
/// TILEWORK_RECORDING=FILE records the variants that run (see `tests/matrix.rs`).
///
/// Without an adapter the list is empty and a line says so; with REQUIRE_GPU=1 that is a failure.
pub(crate) fn devices() -> &'static [Device] {
    let all = devices_of_every_way();
    let checked_too = all.len() > 1 && all.last().is_some_and(Device::checks);
    &all[..all.len() - usize::from(checked_too)]
}

/// [`devices`] and last, in the complete run, the first adapter with runtime checks in its kernels, which compile
/// slowly: each variant, and random cases of each op, run there too.
pub(crate) fn devices_of_every_way() -> &'static [Device] {
    static SETS: [OnceLock<Vec<Device>>; 2] = [const { OnceLock::new() }; 2];
    let first = SETS[0].get_or_init(open_devices);
    // Software drivers compile on the one thread of a device's queue, so that tests of one device use one core: tests
    // on other threads get the same devices opened again.
    let slow = |d: &Device| ["llvmpipe", "SwiftShader"].iter().any(|name| d.gpu.profile().name.contains(name));
    if !first.iter().any(slow) {
        return first;
    }
    SETS[SET.with(|set| set.0)].get_or_init(open_devices)
}

/// The set of devices that a test's thread uses: the one that fewer threads use.
struct DeviceSet(usize);

static IN_USE: Mutex<[usize; 2]> = Mutex::new([0; 2]);

thread_local! {
    static SET: DeviceSet = {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let set = usize::from(in_use[1] < in_use[0]);
        in_use[set] += 1;
        DeviceSet(set)
    };
}

impl Drop for DeviceSet {
    fn drop(&mut self) {
        IN_USE.lock().unwrap_or_else(PoisonError::into_inner)[self.0] -= 1;
    }
}

fn open_devices() -> Vec<Device> {
    let wanted = std::env::var("TILEWORK_ADAPTER").unwrap_or_default().to_lowercase();
    let fits = |p: &DeviceProfile| format!("{} {}", p.name, p.driver).to_lowercase().contains(&wanted);
    let (mut devices, mut last) = (Vec::new(), None);
    // wgpu panics if another thread holds OpenGL's only context for six seconds, as a software driver does while
    // it compiles: OpenGL runs only if requested (one test at a time), or if there is nothing else.
    let all = Gpu::adapters();
    let steady = |p: &DeviceProfile| !wanted.is_empty() || p.backend != "gl";
    let only_gl = !all.iter().any(steady);
    for (index, profile) in all.iter().enumerate().filter(|(_, p)| fits(p) && (only_gl || steady(p))) {
        if !coverage::all() && !devices.is_empty() {
            break;
        }
        let ways = [("unchecked", false, false), ("WebGPU defaults", false, true), ("checked", true, false)];
        let one_way = std::env::var("TILEWORK_ONE_WAY").ok();
        let every_way = coverage::all() && devices.is_empty() && one_way.is_none();
        let asked = one_way.and_then(|name| ways.iter().position(|(way, ..)| *way == name));
        let chosen = match asked {
            Some(one) => &ways[one..=one],
            None if every_way => &ways,
            None => &ways[..1],
        };
        for &(way, checked, webgpu_defaults) in chosen {
            let adapter = AdapterFilter::Index(index);
            // The user's tuning must not affect the tests.
            let tuning = Tuning::Off;
            let options = GpuOptions { adapter, checked, webgpu_defaults, tuning, ..Default::default() };
            let gpu = Gpu::request(options.clone());
            let gpu = pollster::block_on(gpu).expect("an adapter that is listed opens");
            let label = format!("{} ({}, {way})", profile.name, profile.backend);
            if let Some(path) = std::env::var_os("TILEWORK_RECORDING") {
                let open = || File::create(path).expect("TILEWORK_RECORDING can be written");
                recording::begin(|| Box::new(open()), gpu.profile(), way);
            }
            let device = Device { gpu, label, main: devices.is_empty(), options };
            if checked && every_way {
                last = Some(device);
            } else {
                devices.push(device);
            }
        }
    }
    devices.extend(last);
    if devices.is_empty() {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set and no adapter fits `{wanted}`");
        eprintln!("skipped: no adapter on this machine; tests that need one do nothing");
    }
    devices
}

/// A result, or nothing where the device lacks what a variant needs.
#[track_caller]
pub(crate) fn supported<T>(result: tilework::Result<T>) -> Option<T> {
    match result {
        Err(e) if e.kind() == tilework::ErrorKind::Unsupported => None,
        other => Some(other.unwrap()),
    }
}

/// The first device, if there is any.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    devices().first().map(|d| &d.gpu)
}

/// Profiles written by hand: a card, a software driver, the portable floor, and another software driver.
pub(crate) fn profiles() -> Vec<DeviceProfile> {
    vec![DeviceProfile::h100(), DeviceProfile::mesa(), DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader()]
}

impl Random {
    /// Uniform in [-1, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-52) - 1.0
    }

    /// `n` elements: floats uniform in [-1, 1), integers over their whole range.
    pub(crate) fn elements<T: Sample>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::sample(self)).collect()
    }

    /// `n` elements of any bits.
    pub(crate) fn any<T: Sample>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::any(self)).collect()
    }
}

/// Types that random data can be drawn of.
pub(crate) trait Sample: Element + Number {
    /// Floats uniform in [-1, 1), integers over their whole range.
    fn sample(random: &mut Random) -> Self;

    /// Any bits: floats of every magnitude, and NaN.
    fn any(random: &mut Random) -> Self;

    /// Extreme values, at which arithmetic fails first.
    fn extremes() -> Vec<Self>;
}

macro_rules! sample_float {
    ($t:ident, $bits:ty, $special:expr) => {
        impl Sample for $t {
            fn sample(random: &mut Random) -> Self {
                $t::from_f64(random.unit())
            }

            fn any(random: &mut Random) -> Self {
                $t::from_bits(random.next() as $bits)
            }

            fn extremes() -> Vec<Self> {
                let (min, step) = ($t::MIN_POSITIVE, $t::EPSILON);
                let subnormal = $t::from_bits(min.to_bits() / 2);
                let odd = $t::from_bits(min.to_bits() - 1);
                let one = $t::from_f64(1.0);
                let sized = [one, one + step, one - step, min, subnormal, odd, $t::from_bits(1), $t::MAX];
                let special = $special.map($t::from_f64);
                let both = [sized.as_slice(), &special, &[$t::INFINITY, $t::NAN]].concat();
                both.into_iter().flat_map(|x| [x, -x]).collect()
            }
        }
    };
}
// The limits of exp's range, the boundary between two pieces of tanh, the largest exact integers.
sample_float!(f32, u32, [0.0, 0.5, 0.6249, 0.6251, 20.0, 88.5, 89.0, 103.9, 2f64.powi(24), 1e20, 2f64.powi(126)]);
sample_float!(f16, u16, [0.0, 0.5, 0.6245, 0.6255, 11.08, 11.1, 17.4, 2048.0, 255.9, 256.1]);

macro_rules! sample_bits {
    ($($t:ident),*) => {$(
        impl Sample for $t {
            fn sample(random: &mut Random) -> Self {
                random.next() as $t
            }

            fn any(random: &mut Random) -> Self {
                Self::sample(random)
            }

            fn extremes() -> Vec<Self> {
                // The square root of the maximum, and its neighbour.
                let root = $t::MAX.isqrt();
                let ends = [$t::MIN, $t::MIN + 1, $t::MAX, $t::MAX - 1];
                [ends.as_slice(), &[0, 1, 2, 7, root, root + 1, (0 as $t).wrapping_sub(1)]].concat()
            }
        }
    )*};
}
sample_bits!(i32, u32, u8, i8);

/// Asserts that each element is within its bound of the expected one. NaN must match NaN; an infinite bound accepts
/// anything.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: &[f64], want: &[f64], bound: &[f64]) {
    if let Some(wrong) = far(got, want, bound) {
        panic!("{what}: {wrong}");
    }
}

/// The first element that differs from the expected one by more than its bound.
pub(crate) fn far(got: &[f64], want: &[f64], bound: &[f64]) -> Option<String> {
    if [want.len(), bound.len()] != [got.len(); 2] {
        return Some(format!("{} elements, {} wanted within {}", got.len(), want.len(), bound.len()));
    }
    got.iter().zip(want).zip(bound).enumerate().find_map(|(i, ((g, w), b))| {
        let near = g == w || (g - w).abs() <= *b || g.is_nan() && w.is_nan();
        let close = near || *b == f64::INFINITY;
        (!close).then(|| format!("element {i} is {g}, wanted {w} within {b}"))
    })
}

/// Elements as numbers.
pub(crate) fn numbers<T: Number>(elements: &[T]) -> Vec<f64> {
    elements.iter().map(|x| x.to_f64()).collect()
}

/// Puts one `value` into each of some rows of `d` elements.
pub(crate) fn spoil<T: Number>(x: &mut [T], d: usize, rows: impl IntoIterator<Item = usize>, value: f64) {
    for row in rows {
        x[row * d + (3 * row + 1) % d] = T::from_f64(value);
    }
}

/// Runs an ignored test in its own process and prints its output. `limit` bounds the process's address space, in KiB.
pub(crate) fn alone(test: &str, limit: Option<u64>) {
    if gpu().is_none() {
        return;
    }
    let me = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(&me),
        Some(kib) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\"")]).arg(&me);
            shell
        }
    };
    // glibc gives each thread an arena, each of which grows to its working size. The recording belongs to this process.
    command.env("MALLOC_ARENA_MAX", "1").env_remove("TILEWORK_RECORDING");
    let output = command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test} alone:\n{text}");
    println!("{text}");
}
