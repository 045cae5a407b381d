//! All-reduces of two devices over memory of the host that both reach. Each device owns half of the elements. In a step
//! it sends a unit of the other half, combines a unit of its own with what has arrived, and takes a unit of the other
//! half back, in one kernel: the bus carries both directions at once.

use super::local::{Local, Message, MessageBody, stray};
use super::regions::{Lease, REGION_BYTES};
use super::schedule::part;
use super::transport::{Header, Transport};
use crate::element::Element;
use crate::elementwise::ZipFn;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::primitives::pass_sums::pass_sums;
use std::ops::Range;
use std::sync::Arc;

/// Steps between a unit's way down and its sum, and from there to its way up: one is under way while the host waits
/// for the one before.
const LAG: usize = 2;
/// Regions of each kind that a rank takes turns with.
const SLOTS: usize = 2 * LAG;
const UNIT_BYTES: usize = REGION_BYTES;

impl Local {
    /// Reduces a slice, or returns false on both ranks if a device does not reach memory of the host.
    pub(super) fn reduce_both_ways<T: Element>(
        &self, header: &Header, slice: &Slice<'_, T>, function: &ZipFn,
    ) -> Result<bool> {
        let leases = self.regions_of(slice.gpu())?;
        let reduced = self.reduce_over(&leases, header, slice, function);
        if reduced.is_err() {
            // Steps under way may still write to the regions. A lost device does not.
            let _ = slice.gpu().wait();
        }
        reduced
    }

    fn reduce_over<T: Element>(
        &self, leases: &[Arc<Lease>], header: &Header, slice: &Slice<'_, T>, function: &ZipFn,
    ) -> Result<bool> {
        let (gpu, own, other) = (slice.gpu(), self.rank(), 1 - self.rank());
        let Some((theirs, views)) = self.agree_on(header, gpu, other, leases)? else { return Ok(false) };
        // Sent elements, then sums: of this rank, and of the other.
        let [mine, others]: [Vec<Buffer<u32>>; 2] = views;
        let unit = UNIT_BYTES / T::DTYPE.size();
        let halves = [own, other].map(|rank| part(slice.len(), 2, rank));
        let units = halves.iter().map(|half| half.len().div_ceil(unit)).max().unwrap_or(0);
        let of = |half: usize, step: usize, late: usize| -> Range<usize> {
            let Range { start, end } = halves[half].clone();
            match step.checked_sub(late) {
                Some(i) if i < units => end.min(start + i * unit)..end.min(start + (i + 1) * unit),
                _ => start..start,
            }
        };
        let slot = |step: usize, late: usize| (step + SLOTS - late) % SLOTS;
        let steps = units + 2 * LAG;
        for step in 0..steps {
            if step >= LAG {
                self.wait_for_step(header, other)?;
            }
            let ranges = [of(1, step, 0), of(0, step, LAG), of(1, step, 2 * LAG)];
            let program = pass_sums(T::DTYPE, function, (slice.len(), REGION_BYTES / 4), ranges, gpu.profile())?;
            let regions = [
                &mine[slot(step, 0)],
                &others[slot(step, LAG)],
                &mine[SLOTS + slot(step, LAG)],
                &others[SLOTS + slot(step, 2 * LAG)],
            ];
            let mut operands = vec![slice.untyped()];
            operands.extend(regions.iter().map(|region| Slice::from(*region).untyped()));
            let mut rec = gpu.recorder();
            gpu.prepare_lowered(program)?.record(&mut rec, &operands)?;
            rec.submit()?;
            let kept = (step + 1 == steps).then(|| (leases.to_vec(), theirs.clone()));
            let submitted = gpu.submitted(kept)?;
            self.post(other, Message { header: *header, body: MessageBody::Step(submitted) })?;
        }
        for _ in 0..LAG {
            self.wait_for_step(header, other)?;
        }
        Ok(true)
    }

    fn wait_for_step(&self, header: &Header, other: usize) -> Result<()> {
        let Message { header: arrived, body } = self.next(other)?;
        header.check(self.rank(), other, &arrived, 0)?;
        match body {
            MessageBody::Step(submitted) => submitted.wait(),
            _ => Err(stray(&arrived)),
        }
    }

    /// Regions that a device reaches, or none.
    fn regions_of(&self, gpu: &Gpu) -> Result<Vec<Arc<Lease>>> {
        gpu.poll_finished()?;
        let mut leases = Vec::new();
        while gpu.imports_host() && leases.len() < 2 * SLOTS {
            let lease = self.regions.take()?;
            if lease.view(gpu).is_err() {
                return Ok(Vec::new());
            }
            leases.push(Arc::new(lease));
        }
        Ok(leases)
    }

    /// Tells the other rank which regions this one has, and returns those of the other, with the buffers of both, if
    /// both devices reach all.
    #[allow(clippy::type_complexity)]
    fn agree_on(
        &self, header: &Header, gpu: &Gpu, other: usize, leases: &[Arc<Lease>],
    ) -> Result<Option<(Vec<Arc<Lease>>, [Vec<Buffer<u32>>; 2])>> {
        let tell = |leases: &[Arc<Lease>]| {
            self.post(other, Message { header: *header, body: MessageBody::Regions(leases.to_vec()) })?;
            let Message { header: arrived, body } = self.next(other)?;
            header.check(self.rank(), other, &arrived, 0)?;
            match body {
                MessageBody::Regions(theirs) => Ok(theirs),
                _ => Err(stray(&arrived)),
            }
        };
        let theirs = tell(leases)?;
        let views = |of: &[Arc<Lease>]| of.iter().filter_map(|l| l.view(gpu).ok().flatten()).collect::<Vec<_>>();
        let views = [leases, &theirs].map(views);
        let able = views.iter().all(|of| of.len() == 2 * SLOTS);
        let agreed = tell(if able { leases } else { &[] })?;
        Ok((able && !agreed.is_empty()).then_some((theirs, views)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests;
