use super::rank::Rank;
use super::transport::Transport;
use crate::error::Result;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What happened in a [`RankSpan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// The device worked, or waited in its queue for elements of other ranks.
    Device,
    /// Elements were under way between ranks: from the begin of the call until the device may use them.
    Link,
}

/// A time in which a rank was busy, in seconds since [`Rank::watch`] began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSpan {
    /// With what.
    pub activity: Activity,
    /// Start.
    pub begin: f64,
    /// End.
    pub end: f64,
}

#[derive(Debug, Clone)]
pub(super) struct LinkSpans {
    begin: Instant,
    spans: Arc<Mutex<Vec<(f64, f64)>>>,
}

/// The watched time of a rank, if it is watched.
pub(super) type WatchedLink = RefCell<Option<LinkSpans>>;

impl<L: Transport> Rank<L> {
    /// Runs `work`, and returns its result and what this rank was busy with: spans of its device, which do not overlap,
    /// and of its link, in the order of their begins. Times are the host's, and some 20 us late. All ranks call it at
    /// once; those of one process that share a device see each other's work.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let gpus = vec![Gpu::new()?; 2];
    /// let spans = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let x = rank.upload(&[1.0f32; 1000])?;
    ///     let (_, spans) = rank.watch(|| rank.all_reduce_slice(&x, shard::Combine::Sum))?;
    ///     Ok(spans)
    /// })?;
    /// assert!(spans.iter().flatten().any(|span| span.activity == shard::Activity::Link && span.end > span.begin));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`, and of starting a thread.
    pub fn watch<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, Vec<RankSpan>)> {
        self.wait()?;
        self.barrier()?;
        let begin = Instant::now();
        let link = LinkSpans { begin, spans: Arc::default() };
        let device = self.gpu().watch(begin)?;
        *self.watched().borrow_mut() = Some(link.clone());
        let result = work();
        *self.watched().borrow_mut() = None;
        let result = result?;
        self.wait()?;
        let of = |activity| move |(begin, end)| RankSpan { activity, begin, end };
        let mut spans: Vec<RankSpan> = device.end()?.into_iter().map(of(Activity::Device)).collect();
        let link = std::mem::take(&mut *link.spans.lock().unwrap_or_else(PoisonError::into_inner));
        spans.extend(link.into_iter().map(of(Activity::Link)));
        spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        Ok((result, spans))
    }

    /// Notes that elements were under way since `start`, until the device has passed the place where it waits for them.
    pub(super) fn note_link(&self, start: Instant) -> Result<()> {
        let Some(LinkSpans { begin, spans }) = self.watched().borrow().clone() else { return Ok(()) };
        let from = start.saturating_duration_since(begin).as_secs_f64();
        self.gpu().when_done(begin, move |end| {
            spans.lock().unwrap_or_else(PoisonError::into_inner).push((from, end));
        })
    }
}
