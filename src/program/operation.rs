//! What an op declares of itself, as plain data: an entry of the catalogue.

use super::facts::{Fact, Subject};
use super::{Asked, DeviceProfile, Form, Input, Program, Setting, Variant};
use crate::element::DType;
use crate::error::Result;

/// An op as its own file declares it: an entry of [`operations`](crate::operations).
#[derive(Debug)]
pub struct Operation {
    /// Name, as on the command line of the `op` example.
    pub name: &'static str,
    /// Other names for it on command lines.
    pub aliases: &'static [&'static str],
    /// The formula, in a line.
    pub about: &'static str,
    /// Inputs, in order, behind the sparse matrix if it takes one.
    pub inputs: &'static [Input],
    /// Types of the elements, where they are of the caller's choice.
    pub types: &'static [DType],
    /// Whether its first input is a sparse matrix.
    pub matrix: bool,
    /// Options besides the variant.
    pub options: &'static [Setting],
    /// Makes the op from inputs and options that are given by name: see [`Operation::form`].
    pub(crate) make: Option<fn(&mut Asked<'_>) -> Result<Form>>,
    /// A small case of it, from which a loop over all ops begins.
    pub example: Example,
    /// Every way to run it.
    pub variants: fn() -> &'static [Variant],
    /// Programs that together reach every shader of the variant in every form the device has: what
    /// shader validation and translation run over.
    pub samples: fn(&DeviceProfile, &'static str) -> Result<Vec<Program>>,
    /// Whether it drives ops until the device finds that it is done: its programs are steps, no whole work.
    pub solver: bool,
    /// What operands may hold, by name, where that is not any number.
    pub domains: &'static [(&'static str, Domain)],
    /// How results of two variants are held against each other. Without a rule the op is not tuned.
    pub comparison: Option<Comparison>,
    /// Whether its time depends on what is left in operands that it reads and writes.
    pub settles: bool,
    /// Names of the rows of a variant's table of tiles, for variants that have one.
    pub tiles: fn(&'static str, &DeviceProfile) -> Vec<String>,
    /// What the formulas of [`analysis`](crate::analysis) say of a program of the op.
    pub(crate) facts: fn(&Subject<'_>) -> Option<Vec<Fact>>,
}

impl Operation {
    /// What an op has that declares nothing more.
    pub(crate) const UNDECLARED: Self = Self {
        name: "",
        aliases: &[],
        about: "",
        inputs: &[],
        types: &[],
        matrix: false,
        options: &[],
        make: None,
        example: Example { shape: &[16, 16], options: &[] },
        variants: || &[],
        samples: |_, _| Ok(Vec::new()),
        solver: false,
        domains: &[],
        comparison: None,
        settles: false,
        tiles: |_, _| Vec::new(),
        facts: |_| None,
    };

    /// What an operand may hold.
    pub fn domain(&self, operand: &str) -> Domain {
        self.domains.iter().find(|(name, _)| *name == operand).map_or(Domain::Any, |(_, domain)| *domain)
    }
}

/// The first input of a small case of an op, of the first of its types, and options that it must have. Other inputs
/// follow from it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Extents.
    pub shape: &'static [usize],
    /// Names and values of options.
    pub options: &'static [(&'static str, &'static str)],
}

/// What an operand may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Any number.
    Any,
    /// A whole number below the length of this operand.
    BelowLengthOf(&'static str),
    /// What only the caller can give: lengths, pages, factors.
    Meaningful,
}

/// How the results of two variants of an op are held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Each element is a sum of as many terms as there are operations an output; integers are equal.
    Sums,
    /// An element may be a sum of all that come before it; integers are equal.
    Prefixes,
    /// As sums; bytes may differ by one, since variants round the last bit in ways of their own.
    RoundedBytes,
}
