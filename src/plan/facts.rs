//! Results of the formulas of [`analysis`](crate::analysis) for a program.

use crate::program::facts::Subject;
use crate::program::{Fact, Program};
use crate::shader::Interface;

/// Facts beyond the cost: bytes loaded and stored, and those of the op.
pub(super) fn facts(program: &Program, interfaces: &[&Interface], subgroup: u32) -> Vec<Fact> {
    let subject = Subject { program, interfaces, subgroup };
    let operation = crate::operations::operations().find(|operation| operation.name == program.op);
    let of_op = operation.and_then(|operation| (operation.facts)(&subject));
    subject.asked().into_iter().chain(of_op.into_iter().flatten()).collect()
}

#[cfg(test)]
#[cfg(feature = "default")] // what it tests is of several features
mod tests;
