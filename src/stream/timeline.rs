use crate::program::Clock;

/// A stage of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The host filled it: the caller's `fill`.
    Fill,
    /// The host recorded and submitted its work.
    Submit,
    /// The chunk was on the device: from the begin of the upload to the end of the download.
    Device,
    /// The device copied from staging. This and the next two are parts of [`Device`](Self::Device), known only with
    /// timestamps.
    Upload,
    /// The device ran its kernels.
    Kernels,
    /// The device copied to staging.
    Download,
    /// The host drained it: the caller's `drain`.
    Drain,
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 7] =
        [Self::Fill, Self::Submit, Self::Device, Self::Upload, Self::Kernels, Self::Download, Self::Drain];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Submit => "submit",
            Self::Device => "device",
            Self::Upload => "upload",
            Self::Kernels => "kernels",
            Self::Download => "download",
            Self::Drain => "drain",
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One stage of one chunk, in seconds since the stream began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// The chunk's number, from 0.
    pub chunk: usize,
    /// The stage.
    pub stage: Stage,
    /// Start.
    pub begin: f64,
    /// End.
    pub end: f64,
}

/// When each stage of each chunk ran, on the host's clock.
/// With timestamps, the device's stages are its own times. The offset between its clock and the host's is narrowed down
/// by every chunk: none begins before its submission, and none ends after the host sees its end. Without, a chunk
/// counts as on the device from its submission, or the end of the chunk before, until the host sees its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// All events, in the order of chunks, at most seven per chunk.
    pub events: Vec<Event>,
    /// Seconds from the begin to the end of the stream.
    pub seconds: f64,
    /// Chunks that went through it.
    pub chunks: usize,
    /// Whose clock the device's stages were taken from.
    pub clock: Clock,
    /// Seconds by which the device's stages may lie earlier or later than stated.
    pub uncertainty: f64,
}

impl Timeline {
    /// Returns the seconds that a stage took, over all chunks.
    pub fn busy(&self, stage: Stage) -> f64 {
        // An empty sum is -0 in Rust.
        self.of(stage).fold(0.0, |sum, e| sum + (e.end - e.begin))
    }

    /// Returns the seconds per chunk in the steady state: from the end of draining the first chunk to the last, divided
    /// by the chunks after the first. `None` for fewer than two chunks.
    pub fn period(&self) -> Option<f64> {
        let first = self.of(Stage::Drain).next()?;
        let last = self.of(Stage::Drain).last()?;
        (self.chunks > 1).then(|| (last.end - first.end) / (self.chunks - 1) as f64)
    }

    fn of(&self, stage: Stage) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |e| e.stage == stage)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceTimes {
    pub(super) chunk: usize,
    pub(super) submitted: f64,
    pub(super) noticed: f64,
    pub(super) stamps: Option<[f64; 4]>,
}

#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) events: Vec<Event>,
    pub(super) device: Vec<DeviceTimes>,
}

impl Builder {
    pub(super) fn add(&mut self, chunk: usize, stage: Stage, (begin, end): (f64, f64)) {
        self.events.push(Event { chunk, stage, begin, end });
    }

    pub(super) fn finish(mut self, seconds: f64, copies: bool) -> Timeline {
        let stamped = self.device.iter().filter_map(|d| Some((d, d.stamps?)));
        // The clocks' offset is at least this, by each chunk's submission, and at most that.
        let (least, most) = stamped.fold((f64::NEG_INFINITY, f64::INFINITY), |(least, most), (d, t)| {
            (least.max(d.submitted - t[0]), most.min(d.noticed - t[3]))
        });
        let (offset, uncertainty) = ((least + most) / 2.0, (most - least).abs() / 2.0);
        let mut clock = Clock::Wall;
        let mut free = 0.0f64;
        for d in std::mem::take(&mut self.device) {
            match d.stamps {
                Some(stamps) => {
                    clock = Clock::Device;
                    let t = stamps.map(|t| t + offset);
                    self.add(d.chunk, Stage::Device, (t[0], t[3]));
                    if copies {
                        self.add(d.chunk, Stage::Upload, (t[0], t[1]));
                    }
                    self.add(d.chunk, Stage::Kernels, (t[1], t[2]));
                    if copies {
                        self.add(d.chunk, Stage::Download, (t[2], t[3]));
                    }
                }
                None => {
                    self.add(d.chunk, Stage::Device, (d.submitted.max(free).min(d.noticed), d.noticed));
                    free = d.noticed;
                }
            }
        }
        let chunks = self.events.iter().filter(|e| e.stage == Stage::Drain).count();
        // A stable sort keeps the order of a chunk's stages.
        self.events.sort_by_key(|e| (e.chunk, Stage::ALL.iter().position(|s| *s == e.stage)));
        let uncertainty = if clock == Clock::Device { uncertainty } else { 0.0 };
        Timeline { events: self.events, seconds, chunks, clock, uncertainty }
    }
}

#[cfg(test)]
mod tests;
