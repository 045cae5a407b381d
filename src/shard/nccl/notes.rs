//! Notes between threads about copies from device to device: where to copy to, and when.

use crate::cuda::CudaEvent;
use crate::error::{Result, err, make_room};
use crate::shard::local::{awake_for, next_awake};
use crate::shard::transport::Header;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A note about a message of this header.
pub(super) struct CopyNote {
    pub(super) header: Header,
    /// Where to copy to, in notes of receivers.
    pub(super) address: u64,
    /// What must be done before.
    pub(super) event: Arc<CudaEvent>,
}

/// The notes that a rank sends and takes: a channel from each rank to each.
pub(super) struct NoteLinks {
    to: Vec<Sender<CopyNote>>,
    from: Vec<Receiver<CopyNote>>,
    /// Notes that came before those that were wanted.
    early: Vec<RefCell<VecDeque<CopyNote>>>,
    timeout: Duration,
    /// How long a thread stays awake for a note.
    awake: Duration,
}

impl NoteLinks {
    pub(super) fn group(size: usize, timeout: Duration) -> Result<Vec<Self>> {
        let mut ranks = Vec::new();
        make_room("nccl: a group", &mut ranks, size)?;
        for _ in 0..size {
            let early = (0..size).map(|_| RefCell::default()).collect();
            ranks.push(Self { to: Vec::new(), from: Vec::new(), early, timeout, awake: awake_for(size) });
        }
        for from in 0..size {
            for to in 0..size {
                let (sender, receiver) = channel();
                ranks[from].to.push(sender);
                ranks[to].from.push(receiver);
            }
        }
        Ok(ranks)
    }

    pub(super) fn send(&self, to: usize, note: CopyNote) -> Result<()> {
        let call = note.header.call;
        let sent = self.to.get(to).is_some_and(|to| to.send(note).is_ok());
        if sent { Ok(()) } else { Err(err!(Io, "{call}: rank {to} has ended; see its error")) }
    }

    /// Waits for the next note of this rank about the call of `header`.
    pub(super) fn take(&self, from: usize, header: &Header) -> Result<CopyNote> {
        let number = header.number;
        let Some((receiver, early)) = self.from.get(from).zip(self.early.get(from)) else {
            return Err(err!(InvalidArgument, "{}: there is no rank {from}", header.call));
        };
        let mut early = early.borrow_mut();
        if let Some(at) = early.iter().position(|note| note.header.number == number)
            && let Some(note) = early.remove(at)
        {
            return Ok(note);
        }
        loop {
            let note = next_awake(receiver, self.awake, self.timeout).map_err(|e| match e {
                std::sync::mpsc::RecvTimeoutError::Timeout => err!(
                    Timeout,
                    "{}: waited {:?} for rank {from}; it is late or makes other calls",
                    header.call,
                    self.timeout
                ),
                std::sync::mpsc::RecvTimeoutError::Disconnected => {
                    err!(Io, "{}: rank {from} has ended; see its error", header.call)
                }
            })?;
            if note.header.number == number {
                return Ok(note);
            }
            early.push_back(note);
        }
    }
}
