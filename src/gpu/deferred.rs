//! Error scopes whose results come later: a browser answers only after the script has returned to it.

use super::{from_wgpu_error, lock};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

type Popped = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;

/// Popped error scopes that have not answered, and the first error of those that have.
#[derive(Default)]
pub(super) struct Deferred {
    state: Mutex<DeferredState>,
}

#[derive(Default)]
struct DeferredState {
    /// What each call did, and its scope, oldest first.
    pending: VecDeque<(String, Popped)>,
    failed: Option<Error>,
}

impl DeferredState {
    /// Takes the answers that are there, in order. Pending when the oldest scope has none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some((doing, popped)) = self.pending.front_mut() {
            let Poll::Ready(error) = popped.as_mut().poll(cx) else { return Poll::Pending };
            if let Some(error) = error
                && self.failed.is_none()
            {
                self.failed = Some(from_wgpu_error(doing, &error));
            }
            self.pending.pop_front();
        }
        Poll::Ready(())
    }
}

impl Deferred {
    /// Keeps a popped scope of the call that does `doing`. Forgets older ones that reported nothing.
    pub(super) fn add(&self, doing: &str, popped: impl Future<Output = Option<wgpu::Error>> + Send + 'static) {
        let mut state = lock(&self.state);
        let _ = state.poll(&mut Context::from_waker(Waker::noop()));
        state.pending.push_back((doing.to_owned(), Box::pin(popped)));
    }

    /// Waits for the answers of all scopes so far. Returns the first error, once.
    pub(super) async fn settled(&self) -> Result<()> {
        std::future::poll_fn(|cx| lock(&self.state).poll(cx)).await;
        lock(&self.state).failed.take().map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Deferred({} pending, {:?})", state.pending.len(), state.failed)
    }
}

#[cfg(test)]
mod tests;
