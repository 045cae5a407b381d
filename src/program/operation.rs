use super::facts::{Fact, Subject};
use super::{Asked, DeviceProfile, Input, OpCall, Program, Setting, Variant};
use crate::element::DType;
use crate::error::Result;

/// An op's declaration: an entry of [`operations`](crate::operations).
#[derive(Debug)]
pub struct Operation {
    /// Name, as in the `op` example.
    pub name: &'static str,
    /// Other names that command lines accept.
    pub aliases: &'static [&'static str],
    /// One line with the formula.
    pub about: &'static str,
    /// Inputs in order, after the sparse matrix if there is one.
    pub inputs: &'static [Input],
    /// Outputs in order: their names, in brackets if they may be missing, and their shapes as formulas of the extents
    /// that inputs name and of options. `H` and `W` take the first and the second of two values of an option; `pads`
    /// is the padding on both sides. An output that the device counts has `(count)`.
    pub outputs: &'static [(&'static str, &'static str)],
    /// Element types, if the caller chooses them.
    pub types: &'static [DType],
    /// Whether the first input is a sparse matrix.
    pub matrix: bool,
    /// Options other than the variant.
    pub options: &'static [Setting],
    /// Builds the op from named inputs and options: see [`Operation::build`].
    pub(crate) make: Option<fn(&mut Asked<'_>) -> Result<OpCall>>,
    /// A small case, for loops over all ops.
    pub example: Example,
    /// All variants.
    pub variants: fn() -> &'static [Variant],
    /// Programs that together reach every shader of the variant in every form that the device has. Shader validation
    /// and translation run over them.
    pub samples: fn(&DeviceProfile, &'static str) -> Result<Vec<Program>>,
    /// Whether the op is a solver, which runs programs until its result is good enough.
    pub solver: bool,
    /// Contents of operands, by name, where not every number is allowed.
    pub domains: &'static [(&'static str, Domain)],
    /// How the results of two variants are compared. An op without a rule is not tuned.
    pub comparison: Option<Comparison>,
    /// Whether its time depends on values left in operands that it reads and writes.
    pub settles: bool,
    /// Names of the rows of a variant's table of tiles.
    pub tiles: fn(&'static str, &DeviceProfile) -> Vec<String>,
    /// Results of the formulas of [`analysis`](crate::analysis) for a program of the op.
    pub(crate) facts: fn(&Subject<'_>) -> Option<Vec<Fact>>,
}

impl Operation {
    pub(crate) const UNDECLARED: Self = Self {
        name: "",
        aliases: &[],
        about: "",
        inputs: &[],
        outputs: &[],
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

    /// Returns the contents that an operand may have.
    pub fn domain(&self, operand: &str) -> Domain {
        self.domains.iter().find(|(name, _)| *name == operand).map_or(Domain::Any, |(_, domain)| *domain)
    }
}

/// The first input of a small case of an op, of the op's first type, and the options that it needs. The other inputs
/// follow from it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Extents of the input.
    pub shape: &'static [usize],
    /// Names and values of options.
    pub options: &'static [(&'static str, &'static str)],
}

/// The contents that an operand may have. Tests and tuning draw random contents from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Numbers small enough that their sums do not overflow, NaN and infinities.
    Any,
    /// Any bits, including numbers so large that results overflow.
    Bits,
    /// As [`Bits`](Self::Bits), with runs of equal neighbours.
    Runs,
    /// Numbers that suit the operator named by the option `op`: [`Any`](Self::Any) for sums, factors near 1 for
    /// products, [`Bits`](Self::Bits) for other operators.
    Combined,
    /// Finite numbers of moderate size. With other numbers, variants differ or the result is undefined.
    Finite,
    /// Numbers of at least 0.
    NotNegative,
    /// Numbers between 0 and 1.
    Shares,
    /// Multiples of 1/8, whose products with bytes sum exactly; often an outer product of lines.
    Eighths,
    /// Numbers in increasing order.
    Increasing,
    /// A whole number below the length of this operand.
    BelowLengthOf(&'static str),
    /// Values that must fit the other operands, such as lengths of sequences: random ones would be invalid.
    Meaningful,
}

/// How the results of two variants of an op are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Each element is a sum of k terms, with k the operations for each output element. Integers must be equal.
    Sums,
    /// An element may be a sum of all elements before it. Integers must be equal.
    Prefixes,
    /// As sums, but bytes may differ by one, because variants round the last bit differently.
    RoundedBytes,
}
