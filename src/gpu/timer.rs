//! Timing on the device, by timestamps around passes.

#[cfg(not(target_arch = "wasm32"))]
use super::Timing;
use super::recorder::PassStamps;
use super::{Clock, Gpu, Measurement, Recorder, Slice, Waiting};
use crate::error::Result;
use crate::program::{batch, warm_up};
use web_time::Instant;

/// Gives each run of a recorder a pair of timestamps: at the start of its first pass and at the end of its last.
#[derive(Debug)]
pub(super) struct PassClock {
    queries: wgpu::QuerySet,
    capacity: u32,
    used: u32,
    running: bool,
    /// Whether something was recorded after the last pass.
    pub(super) unstamped: bool,
}

impl PassClock {
    /// Timestamps for the pass that is opened now.
    pub(super) fn next(&mut self) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        if !self.running && self.used < self.capacity {
            self.used += 2;
        } else if !self.running {
            return None;
        }
        let beginning = Some(self.used - 2).filter(|_| !self.running);
        self.running = true;
        self.unstamped = false;
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: beginning,
            // Each pass of the run writes here, so the last one's time stays.
            end_of_pass_write_index: Some(self.used - 1),
        })
    }

    pub(super) fn running(&self) -> bool {
        self.running
    }

    pub(super) fn end_run(&mut self) {
        (self.running, self.unstamped) = (false, false);
    }
}

/// Maximum of timed runs in one submission: WebGPU's query sets have 4096 entries.
const MAX_RUNS: u32 = 2048;

impl Gpu {
    /// Submits the work that `record` records and waits. The time runs from the start of the first op to the end of
    /// the last, on the device's own clock if it has timestamps.
    ///
    /// # Errors
    /// Those of `record`; device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn time(&self, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<Timing> {
        let mut record = Some(record);
        let mut once = |rec: &mut Recorder| record.take().map_or(Ok(()), |r| r(rec));
        let m = Waiting::block(|waiting| self.passes(waiting, 1, &mut once))?;
        Ok(Timing { seconds: m.seconds.iter().sum(), clock: m.clock })
    }

    /// Measures `runs` runs (1 to 2048) of the work that `record` records. On a card, half a second of the same
    /// work precedes them: an idle card lowers its clocks (to a fifth on an H100) and takes 0.4 s of work to raise
    /// them. A tenth of a second is enough right after another measurement.
    ///
    /// # Errors
    /// Those of `record`; device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn measure(&self, runs: usize, record: impl FnMut(&mut Recorder) -> Result<()>) -> Result<Measurement> {
        Waiting::block(|waiting| self.measure_by(waiting, runs, record))
    }

    /// As [`measure`](Self::measure), without blocking the thread.
    ///
    /// Browsers round timestamps, Chrome to about 0.1 ms: record enough repetitions in each run.
    ///
    /// # Errors
    /// Those of `record`; device lost.
    pub async fn measure_async(
        &self, runs: usize, record: impl FnMut(&mut Recorder) -> Result<()>,
    ) -> Result<Measurement> {
        self.measure_by(Waiting::Yielding, runs, record).await
    }

    pub(super) async fn measure_by(
        &self, waiting: Waiting, runs: usize, mut record: impl FnMut(&mut Recorder) -> Result<()>,
    ) -> Result<Measurement> {
        let runs = runs.clamp(1, MAX_RUNS as usize);
        let start = Instant::now();
        self.repeat(waiting, 1, &mut record).await?;
        // Software drivers have no clocks to raise.
        if !self.profile().is_cpu() {
            let warm_up = warm_up(*super::lock(&self.inner.measured), start);
            let mut times = 1;
            while start.elapsed() < warm_up {
                let begin = Instant::now();
                self.repeat(waiting, times, &mut record).await?;
                times = batch(begin.elapsed(), times);
            }
        }
        let measured = self.passes(waiting, runs, &mut record).await;
        *super::lock(&self.inner.measured) = Some(Instant::now());
        measured
    }

    /// Submits `times` runs at once and waits for them.
    async fn repeat(
        &self, waiting: Waiting, times: usize, record: &mut impl FnMut(&mut Recorder) -> Result<()>,
    ) -> Result<()> {
        let mut rec = self.recorder();
        for _ in 0..times {
            record(&mut rec)?;
            rec.end_run();
        }
        rec.submit()?;
        self.wait_by(waiting).await
    }

    /// Records `runs` runs into one submission and times each.
    async fn passes(
        &self, waiting: Waiting, runs: usize, record: &mut impl FnMut(&mut Recorder) -> Result<()>,
    ) -> Result<Measurement> {
        if !self.profile().features.timestamps {
            return self.passes_by_wall_clock(waiting, runs, record).await;
        }
        let capacity = 2 * runs as u32;
        let queries = self.timestamps(capacity)?;
        let clock = PassClock { queries: queries.clone(), capacity, used: 0, running: false, unstamped: false };
        let mut rec = self.record_into(self.encoder(), Some(PassStamps::Runs(clock)));
        for _ in 0..runs {
            record(&mut rec)?;
            rec.end_run();
        }
        let (encoder, clock, keep) = rec.into_parts();
        let used = match clock {
            Some(PassStamps::Runs(clock)) => clock.used,
            _ => 0,
        };
        if used == 0 {
            return Ok(Measurement { seconds: vec![0.0; runs], clock: Clock::Device });
        }
        let ticks = self.submit_stamped(waiting, encoder, &[(queries, used)]).await?;
        drop(keep);
        let period = self.tick_seconds();
        let mut seconds: Vec<f64> = ticks.chunks_exact(2).map(|t| t[1].saturating_sub(t[0]) as f64 * period).collect();
        // Runs that recorded nothing.
        seconds.resize(runs, 0.0);
        seconds.sort_by(f64::total_cmp);
        Ok(Measurement { seconds, clock: Clock::Device })
    }

    pub(super) fn timestamps(&self, count: u32) -> Result<wgpu::QuerySet> {
        let desc = wgpu::QuerySetDescriptor { label: Some("tilework timer"), ty: wgpu::QueryType::Timestamp, count };
        self.scoped("timing", || self.inner.device.create_query_set(&desc))
    }

    /// Seconds from one tick of the device's clock to the next.
    pub(super) fn tick_seconds(&self) -> f64 {
        f64::from(self.inner.queue.get_timestamp_period()) * 1e-9
    }

    /// Submits the work and returns the first timestamps of each query set, as many as its number says, in ticks.
    /// All sets but the last use a multiple of 32 timestamps, as WebGPU requires for the offset.
    pub(super) async fn submit_stamped(
        &self, waiting: Waiting, mut encoder: wgpu::CommandEncoder, sets: &[(wgpu::QuerySet, u32)],
    ) -> Result<Vec<u64>> {
        let stamps: u64 = sets.iter().map(|(_, used)| u64::from(*used)).sum();
        let resolved = self.scoped("timing", || {
            self.inner.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("tilework timer"),
                size: stamps * 8,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        })?;
        self.scoped("timing", || {
            let mut at = 0;
            for (queries, used) in sets {
                encoder.resolve_query_set(queries, 0..*used, &resolved, at);
                at += u64::from(*used) * 8;
            }
            self.inner.queue.submit([encoder.finish()]);
        })?;
        let resolved = self.wrap::<u32>(resolved)?;
        let words = Slice::from(&resolved).read_by(waiting).await?;
        Ok(words.chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect())
    }

    async fn passes_by_wall_clock(
        &self, waiting: Waiting, runs: usize, record: &mut impl FnMut(&mut Recorder) -> Result<()>,
    ) -> Result<Measurement> {
        let mut seconds = Vec::with_capacity(runs);
        for _ in 0..runs {
            let mut rec = self.recorder();
            record(&mut rec)?;
            self.wait_by(waiting).await?;
            let start = Instant::now();
            rec.submit()?;
            self.wait_by(waiting).await?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        Ok(Measurement { seconds, clock: Clock::Wall })
    }
}
