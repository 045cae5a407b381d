//! Values that move with keys, of ops that are built by name: words of any type, or rows of them.

use crate::program::prelude::*;

#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) array: HostArray,
    row: Vec<usize>,
    pub(super) words: usize,
}

impl Values {
    /// Takes the input, if there is one: a value for each of `n` keys, with more axes only if values may be `wide`.
    pub(super) fn asked(asked: &mut Asked<'_>, n: usize, wide: bool) -> Result<Option<Self>> {
        if !asked.has_more() {
            return Ok(None);
        }
        let array = asked.of_types("values", &[n], &[DType::U32, DType::I32, DType::F32])?;
        let (op, shape) = (asked.name(), array.shape());
        if shape.first() != Some(&n) || !wide && shape.len() > 1 {
            let more = if wide { ", of any further extents" } else { "" };
            return Err(err!(Shape, "{op}: values is {array}; it must have a row for each of {n} keys{more}"));
        }
        let row = shape[1..].to_vec();
        let words = elements(op, "a value", &row)?;
        Ok(Some(Self { array, row, words }))
    }

    pub(super) fn outputs(values: Option<&Self>, keys: Role) -> Vec<Role> {
        let of_values = values.map(|Self { row, .. }| match &keys {
            Role::Front(n, there) => Role::Front([&n[..], row].concat(), *there),
            Role::Result(n) => Role::Result([&n[..], row].concat()),
            other => other.clone(),
        });
        [keys].into_iter().chain(of_values).collect()
    }

    /// Gives the operand `at` and the last output the type of the values, which move as words.
    pub(super) fn typed(values: Option<&Self>, at: usize, call: OpCall) -> OpCall {
        let Some(dtype) = values.map(|values| values.array.dtype()).filter(|dtype| *dtype != DType::U32) else {
            return call;
        };
        let last = call.operands.iter().rposition(Role::is_output);
        call.retyped([at].into_iter().chain(last).collect(), dtype)
    }
}
