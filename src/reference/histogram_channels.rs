use super::histogram::histogram;
use super::prelude::*;
use crate::primitives::HistogramChannels;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<HistogramChannels>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let n = input::<T>(call, 0)?.len() / op.channels()[0];
        let x = front_of::<T>(call, 0, there(call, n)?)?;
        Ok(vec![Wanted::exact(&output_shape(call, 0), histogram_channels(op, x)?)?])
    })
}

/// Returns the exact counts of [`HistogramChannels`], channel by channel.
pub fn histogram_channels<T: Number>(desc: &HistogramChannels, input: &[T]) -> Result<Vec<u32>> {
    let [channels, active] = desc.channels();
    let of = |channel| {
        let own: Vec<T> = input.iter().copied().skip(channel).step_by(channels).collect();
        histogram(desc.bins(), &own)
    };
    Ok((0..active).map(of).collect::<Result<Vec<_>>>()?.concat())
}

#[cfg(test)]
#[path = "tests/histogram_channels.rs"]
mod tests;
