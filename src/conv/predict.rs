//! Predicts the times of the ways to run a layer. Constants are fitted to 58 drawn layers on an H100 (Vulkan, driver
//! 580.159.04). On 60 others `auto` took 1.02 times the best time found in the mean, 1.43 times at worst; rules by
//! size took 1.31 and 3.90 on the first.

use super::coop::CoopLayer;
use super::correlate::{DIRECT, columns_at_once};
use super::layer::Correlation;
use super::product::LayerProduct;
use super::tiled::Tiled;
use super::winograd;
use crate::dense::batch_seconds;
use crate::dense::predict::Rates;
use crate::program::DeviceProfile;

/// Seconds of a thread of `direct` for each product, which waits for its loads, and of one that does nothing.
const DIRECT_WAIT: f64 = 0.27e-6;
const DIRECT_LAUNCH: f64 = 4.7e-6;

/// f32 operations that the address and the end of an output of `direct` cost, and a product with its loads.
const DIRECT_END: f64 = 400.0;
const DIRECT_PRODUCT: f64 = 25.0;

/// Seconds of the pass that unrolls windows to columns, and of writing and reading them over a copy's.
const UNROLL: f64 = 2.7e-6;
const UNROLL_RATE: f64 = 1.6;

/// The same for the transforms of `winograd`.
const TRANSFORMS: f64 = 9.5e-6;
const TRANSFORM_RATE: f64 = 1.2;

/// Channels from which `winograd` is taken.
const WINOGRAD: usize = 32;

/// Cells of a window from which `tiled` is taken.
const TILED: usize = 25;

pub(super) fn fastest(c: &Correlation, profile: &DeviceProfile) -> (&'static str, String) {
    let implicit = LayerProduct::windows(c, c.images, None, profile);
    let mut times = vec![("implicit", implicit.seconds)];
    if c.terms() <= DIRECT {
        times.push(("direct", direct(c, profile)));
    }
    if let Some(seconds) = CoopLayer::predicted(c, profile) {
        times.push(("coop", seconds));
    }
    if c.is_plain() {
        times.extend(plain(c, profile));
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let us = |(_, seconds): (&str, f64)| format!("{:.1} us", seconds * 1e6);
    let next = times.get(1).map(|next| format!(", `{}` {}", next.0, us(*next))).unwrap_or_default();
    (times[0].0, format!("predicted {}{next}", us(times[0])))
}

/// The variants that take f32 in the order of a layer alone.
fn plain(c: &Correlation, profile: &DeviceProfile) -> Vec<(&'static str, f64)> {
    let mut times = Vec::new();
    let columns = columns_at_once(c, profile).min((c.images * c.pixels()).div_ceil(4).saturating_mul(4));
    if columns > 0 {
        times.push(("im2col", im2col(c, columns, profile)));
    }
    if winograd::fits(c) && c.from.min(c.to) >= WINOGRAD {
        times.push(("winograd", by_transforms(c, profile)));
    }
    if Tiled::check(c).is_ok() && c.kernel[0] * c.kernel[1] >= TILED {
        times.push(("tiled", Tiled::new(c, profile).seconds(c, &Rates::of(profile))));
    }
    times
}

fn direct(c: &Correlation, profile: &DeviceProfile) -> f64 {
    let rates = Rates::of(profile);
    let outputs = (c.images * c.image()[1]) as f64;
    let terms = c.terms() as f64;
    let compute = outputs * (DIRECT_END + DIRECT_PRODUCT * terms) / (rates.flop * rates.processors);
    DIRECT_LAUNCH + compute.max(DIRECT_WAIT * terms)
}

fn im2col(c: &Correlation, columns: usize, profile: &DeviceProfile) -> f64 {
    let passes = (c.images * c.pixels()).div_ceil(columns) as f64;
    let bytes = 4.0 * (c.groups * c.terms() * columns) as f64 + 4.0 * (c.images * c.image()[0]) as f64 / passes;
    let unroll = UNROLL + UNROLL_RATE * Rates::of(profile).copy(bytes);
    passes * (unroll + LayerProduct::columns(c, columns, profile).seconds)
}

fn by_transforms(c: &Correlation, profile: &DeviceProfile) -> f64 {
    let rates = Rates::of(profile);
    let tiles = (c.images * winograd::tiles(c)).div_ceil(4).saturating_mul(4);
    let [x, output] = c.image().map(|elements| 4.0 * (c.images * elements) as f64);
    let transformed = |channels: usize| 4.0 * winograd::PLACES as f64 * (c.groups * channels) as f64 * tiles as f64;
    let weights = 4.0 * (c.groups * c.to * c.terms()) as f64;
    let passes = [5.0 * weights, x + transformed(c.from), output + transformed(c.to)];
    let transforms: f64 = passes.into_iter().map(|bytes| rates.copy(bytes)).sum();
    let products = batch_seconds(winograd::PLACES * c.groups, [c.to, tiles, c.from], profile);
    TRANSFORMS + TRANSFORM_RATE * transforms + products
}
