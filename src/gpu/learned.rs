//! Results of tuning: winners, and variants that failed, in memory and on disk.

use super::{Gpu, lock};
use crate::program::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Whether planning uses times measured on the device instead of an op's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tuning {
    /// No: only policies choose, so that the same program plans the same on equal devices. Denied variants are
    /// still not used.
    Off,
    /// Uses winners known from this run or the cache directory. Planning measures nothing.
    #[default]
    Cached,
    /// As `Cached`; planning an op of an unknown kind and size first measures its variants on generated data. This
    /// takes seconds, and other work on the device disturbs it.
    #[cfg(feature = "tune")]
    Measure,
}

/// The result of measuring a class of shapes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Winner {
    /// Variant and row, if they are faster than the policy's choice.
    pub(crate) better: Option<(String, Option<String>)>,
    /// Seconds of the policy's choice.
    pub(crate) before: f64,
    /// Seconds of the faster one, or the same.
    pub(crate) after: f64,
}

impl Winner {
    pub(crate) fn choice(&self) -> Option<Choice> {
        let (variant, row) = self.better.clone()?;
        let why = format!(
            "tuned on this device: {} us against {} us of the default",
            micros(self.after),
            micros(self.before)
        );
        Some(Choice { variant, row, by: DecidedBy::Tuned, why })
    }
}

fn micros(seconds: f64) -> String {
    let us = seconds * 1e6;
    if us < 100.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) tuning: Tuning,
    state: Mutex<Option<LearnedState>>,
}

impl Learned {
    pub(super) fn new(tuning: Tuning) -> Self {
        Self { tuning, state: Mutex::default() }
    }

    #[cfg(feature = "disk-cache")]
    pub(super) fn forget(&self) {
        *lock(&self.state) = None;
    }
}

#[derive(Debug)]
struct LearnedState {
    /// The device's profile with the denied variants.
    profile: Arc<DeviceProfile>,
    winners: HashMap<String, HashMap<String, Winner>>,
    /// Programs of policies with the tuned programs that replace them, the most recently used first.
    tuned: Vec<Arc<[Program; 2]>>,
}

impl LearnedState {
    #[must_use = "to be dropped when nothing is locked"]
    fn outdated(&mut self) -> Vec<Arc<[Program; 2]>> {
        std::mem::take(&mut self.tuned)
    }
}

/// Number of tuned programs to remember.
const REMEMBERED: usize = 32;
/// Maximum of winners in a file; the oldest go first.
const MAX_WINNERS: usize = 1024;
const HEAD: &str = "tilework learned 1";

impl Gpu {
    /// Returns whether planning on this device uses measured times.
    pub fn tuning(&self) -> Tuning {
        self.inner.learned.tuning
    }

    /// Returns the variants that planning never uses on this device, because they gave wrong results or lost the
    /// device. `tune` found them, in this run or an earlier one. [`clear_cache`](Self::clear_cache) empties the list.
    pub fn denied(&self) -> Vec<Denied> {
        self.learned(|state| state.profile.choices.denied.clone())
    }

    pub(crate) fn planning_profile(&self) -> Arc<DeviceProfile> {
        self.learned(|state| state.profile.clone())
    }

    /// The winner among the variants of `op` for a class of shapes. `class` is called only if the op has winners.
    pub(crate) fn winner(&self, op: &str, class: impl FnOnce() -> String) -> Option<Winner> {
        self.learned(|state| state.winners.get(op)?.get(&class()).cloned())
    }

    /// The tuned program that replaces this one of a policy, if it was lowered before.
    pub(crate) fn tuned(&self, default: &Program) -> Option<Program> {
        let found = self.learned(|state| {
            let at = state.tuned.iter().position(|pair| pair[0] == *default)?;
            state.tuned[..=at].rotate_right(1);
            state.tuned.first().cloned()
        })?;
        Some(found[1].clone())
    }

    /// Remembers the tuned program for a policy's program, until a new result arrives.
    pub(crate) fn keep_tuned(&self, default: Program, tuned: &Program) {
        let pair = Arc::new([default, tuned.clone()]);
        let oldest = self.learned(|state| {
            state.tuned.insert(0, pair);
            (state.tuned.len() > REMEMBERED).then(|| state.tuned.pop())
        });
        drop(oldest);
    }

    pub(crate) fn remember(&self, op: &str, class: &str, winner: &Winner, save: bool) {
        let outdated = self.learned(|state| {
            state.winners.entry(op.to_owned()).or_default().insert(class.to_owned(), winner.clone());
            state.outdated()
        });
        drop(outdated);
        if save {
            // Keeps what other processes have added since.
            self.store().update("tuning", &self.ways(), |bytes| {
                let mut kept = winners_in(bytes);
                kept.retain(|(o, c, _)| (o.as_str(), c.as_str()) != (op, class));
                kept.push((op.to_owned(), class.to_owned(), winner.clone()));
                kept.drain(..kept.len().saturating_sub(MAX_WINNERS));
                write_winners(&kept).into_bytes()
            });
        }
    }

    /// Stops using a variant, and saves that to disk if `save` is set.
    pub(crate) fn deny(&self, denied: &Denied, save: bool) {
        let same = |d: &Denied| d.op == denied.op && d.variant == denied.variant && d.row == denied.row;
        let (new, outdated) = self.learned(|state| {
            let new = !state.profile.choices.denied.iter().any(same);
            if new {
                Arc::make_mut(&mut state.profile).choices.denied.push(denied.clone());
            }
            (new, state.outdated())
        });
        drop(outdated);
        if new {
            let DeviceProfile { name, driver, .. } = self.profile();
            log::warn!(target: "tilework", "{denied}: denied on {name} ({driver})");
        }
        if save {
            self.store().update("denied", b"", |bytes| {
                let mut kept = denied_in(bytes);
                kept.retain(|d| !same(d));
                kept.push(denied.clone());
                write_denied(&kept).into_bytes()
            });
        }
    }

    fn learned<R>(&self, look: impl FnOnce(&mut LearnedState) -> R) -> R {
        let mut state = lock(&self.inner.learned.state);
        look(state.get_or_insert_with(|| {
            let mut profile = self.profile().clone();
            profile.choices.denied = denied_in(self.store().load("denied", b""));
            let mut winners: HashMap<String, HashMap<String, Winner>> = HashMap::new();
            if self.tuning() != Tuning::Off {
                for (op, class, winner) in winners_in(self.store().load("tuning", &self.ways())) {
                    winners.entry(op).or_default().insert(class, winner);
                }
            }
            LearnedState { profile: Arc::new(profile), winners, tuned: Vec::new() }
        }))
    }

    /// The settings that times, and so winners, depend on: features, limits, runtime checks, and determinism.
    fn ways(&self) -> Vec<u8> {
        let DeviceProfile { features, limits, subgroup_sizes, deterministic, .. } = self.profile();
        let checked = self.inner.options.checked;
        format!("{features:?} {limits:?} {subgroup_sizes:?} {checked} {deterministic}").into_bytes()
    }
}

/// The winners of a file; none if it is missing or malformed.
fn winners_in(file: Option<Vec<u8>>) -> Vec<(String, String, Winner)> {
    let text = file.and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| read_winners(&text)).unwrap_or_default()
}

fn denied_in(file: Option<Vec<u8>>) -> Vec<Denied> {
    let text = file.and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| read_denied(&text)).unwrap_or_default()
}

/// A field of a line; tabs separate fields.
fn field(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn lines<const N: usize>(text: &str) -> Option<Vec<[&str; N]>> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEAD {
        return None;
    }
    lines.map(|line| <[&str; N]>::try_from(line.split('\t').collect::<Vec<_>>()).ok()).collect()
}

/// An empty field means none.
fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn write_winners(winners: &[(String, String, Winner)]) -> String {
    let line = |(op, class, w): &(String, String, Winner)| {
        let (variant, row) = w.better.clone().unwrap_or_default();
        let fields = [op, class, &variant, &row.unwrap_or_default()].map(|f| field(f)).join("\t");
        format!("{fields}\t{:e}\t{:e}\n", w.before, w.after)
    };
    format!("{HEAD}\n{}", winners.iter().map(line).collect::<String>())
}

/// All lines of a file, or none if any is malformed.
fn read_winners(text: &str) -> Option<Vec<(String, String, Winner)>> {
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0);
    let winner = |[op, class, variant, row, before, after]: [&str; 6]| {
        let better = optional(variant).map(|variant| (variant, optional(row)));
        if op.is_empty() || class.is_empty() || better.is_none() && !row.is_empty() {
            return None;
        }
        let winner = Winner { better, before: seconds(before)?, after: seconds(after)? };
        Some((op.to_owned(), class.to_owned(), winner))
    };
    lines(text)?.into_iter().map(winner).collect()
}

fn write_denied(denied: &[Denied]) -> String {
    let line = |d: &Denied| {
        let row = d.row.clone().unwrap_or_default();
        [&d.op, &d.variant, &row, &d.why].map(|f| field(f)).join("\t") + "\n"
    };
    format!("{HEAD}\n{}", denied.iter().map(line).collect::<String>())
}

fn read_denied(text: &str) -> Option<Vec<Denied>> {
    let denied = |[op, variant, row, why]: [&str; 4]| {
        let named = !op.is_empty() && !variant.is_empty();
        named.then(|| Denied {
            op: op.to_owned(),
            variant: variant.to_owned(),
            row: optional(row),
            why: why.to_owned(),
        })
    };
    lines(text)?.into_iter().map(denied).collect()
}

#[cfg(test)]
mod tests;
