//! Building blocks for an op's facts: the results of the formulas of [`analysis`](crate::analysis).

use super::{Kernel, Program};
use crate::analysis::segments;
use crate::shader::Interface;
use std::fmt;

/// A number that a formula of [`analysis`](crate::analysis) gives for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The quantity, in a few words.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// The unit or the subject.
    pub of: String,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, of } = self;
        let whole = value.fract() == 0.0;
        let decimals = if whole { 0 } else { 2 };
        write!(f, "{name} {value:.decimals$} ({of})")
    }
}

/// Bytes of a memory transaction.
const SEGMENT: u64 = 128;

/// A program to which the formulas apply.
pub(crate) struct Subject<'a> {
    pub(crate) program: &'a Program,
    pub(crate) interfaces: &'a [&'a Interface],
    pub(crate) subgroup: u32,
}

pub(crate) fn fact(name: &'static str, value: f64, of: impl Into<String>) -> Fact {
    Fact { name, value, of: of.into() }
}

impl Subject<'_> {
    pub(crate) fn kernel(&self, entry: &str) -> Option<(&Kernel, &Interface)> {
        let at = self.program.kernels.iter().position(|k| k.entry == entry)?;
        Some((&self.program.kernels[at], self.interfaces.get(at)?))
    }

    /// A parameter of the first dispatch that has it.
    pub(crate) fn param(&self, name: &str) -> Option<u64> {
        self.program.dispatches.iter().find_map(|d| d.param(name)).map(u64::from)
    }

    pub(crate) fn element_bytes(&self) -> u64 {
        self.program.operands.first().map_or(4, |o| o.dtype.size() as u64)
    }

    /// Segments that one access of a subgroup touches, if its lanes access these elements.
    pub(crate) fn transactions(&self, name: &'static str, element_of: impl Fn(u64) -> u64) -> Option<Fact> {
        let bytes = self.element_bytes();
        let addresses = (0..u64::from(self.subgroup)).map(|lane| element_of(lane) * bytes);
        Some(fact(name, segments(addresses, bytes, SEGMENT).ok()? as f64, self.of_accesses()))
    }

    fn of_accesses(&self) -> String {
        format!("segments of {SEGMENT} bytes for an access of {} threads", self.subgroup)
    }

    /// The bytes that workgroups request, as a multiple of the minimum.
    pub(crate) fn asked(&self) -> Option<Fact> {
        let times = self.program.requested()? / self.program.cost.bytes;
        times.is_finite().then(|| fact("asked", times, "times the minimum bytes, from memory and its caches"))
    }
}
