//! Bytes that memory moves for the accesses of a warp.

use crate::error::{Result, err};
use std::collections::BTreeSet;

/// Counts the aligned segments of `segment` bytes that accesses of `size` bytes at `addresses` touch.
///
/// ```
/// use tilework::analysis::segments;
///
/// let neighbours = || (0..32).map(|lane| 4 * lane);
/// assert_eq!((segments(neighbours(), 4, 128)?, segments(neighbours(), 4, 32)?), (1, 4));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `segment` is 0.
pub fn segments(addresses: impl IntoIterator<Item = u64>, size: u64, segment: u64) -> Result<u64> {
    if segment == 0 {
        return Err(err!(InvalidArgument, "segments: segments of 0 bytes; take at least 1"));
    }
    let last = |a: u64| a.saturating_add(size.max(1) - 1) / segment;
    let touched = addresses.into_iter().flat_map(|a| a / segment..=last(a));
    Ok(touched.collect::<BTreeSet<_>>().len() as u64)
}

/// A DRAM channel and its banks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dram {
    /// Width of the bus in bits.
    pub bus_bits: u32,
    /// Clock rate in hertz. Each clock moves two words.
    pub clock: f64,
    /// Latency of an access divided by its transfer time.
    pub latency_to_transfer: f64,
}

impl Dram {
    /// Returns the peak bytes per second of the channel.
    ///
    /// ```
    /// use tilework::analysis::Dram;
    ///
    /// let channel = Dram { bus_bits: 64, clock: 1e9, latency_to_transfer: 20.0 };
    /// assert_eq!(channel.bandwidth(), 16e9);
    /// assert_eq!((channel.channels_for(32e9), channel.channels_for(128e9)), (2, 8));
    /// ```
    pub fn bandwidth(&self) -> f64 {
        f64::from(self.bus_bits) / 8.0 * 2.0 * self.clock
    }

    /// Returns the number of channels for `bandwidth` bytes per second.
    pub fn channels_for(&self, bandwidth: f64) -> u64 {
        (bandwidth / self.bandwidth()).ceil() as u64
    }

    /// Returns the share of the peak that `banks` banks reach.
    pub fn busy(&self, banks: u32) -> f64 {
        (f64::from(banks) / (self.latency_to_transfer + 1.0)).min(1.0)
    }

    /// Returns the number of banks that reach the peak.
    pub fn banks_to_fill(&self) -> u64 {
        (self.latency_to_transfer + 1.0).ceil() as u64
    }

    /// Returns the used share of bursts of `burst` bytes, if `used` bytes of every `stride` are needed; 0 if none are.
    pub fn burst_efficiency(used: u64, stride: u64, burst: u64) -> f64 {
        let pieces = burst.checked_div(stride.max(used)).unwrap_or(0).max(1);
        pieces.saturating_mul(used).min(burst) as f64 / burst.max(1) as f64
    }
}

/// The layout of addresses in DRAM: consecutive bursts alternate between channels, then between their banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleaving {
    /// Bytes per burst.
    pub burst: u64,
    /// Number of channels.
    pub channels: u64,
    /// Banks per channel.
    pub banks: u64,
}

impl Interleaving {
    /// Returns the channel, `address / burst` modulo `channels`, and the bank, `address / (burst channels)` modulo
    /// `banks`, of an address.
    ///
    /// ```
    /// use tilework::analysis::Interleaving;
    ///
    /// let memory = Interleaving { burst: 64, channels: 4, banks: 2 };
    /// assert_eq!([0, 64, 256, 512].map(|address| memory.place(address).unwrap()), [(0, 0), (1, 0), (0, 1), (0, 0)]);
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if a field is 0.
    pub fn place(&self, address: u64) -> Result<(u64, u64)> {
        let Self { burst, channels, banks } = *self;
        if [burst, channels, banks].contains(&0) {
            return Err(err!(
                InvalidArgument,
                "bursts of {burst} bytes over {channels} channels of {banks} banks; take at least 1 of each"
            ));
        }
        Ok((address / burst % channels, address / burst / channels % banks))
    }
}

#[cfg(test)]
mod tests;
