//! Three kernels: all scores, their softmax, the product with the values.

use super::layout::{AttentionLowering, AttentionOperand};
use crate::error::{Result, err};
use crate::program::{Binding, Grid, Kernel, Program};

const WORKGROUP_SIZE: u32 = 256;

/// Keys whose values an invocation sums on their own.
const RUN: u64 = 1024;

/// Bytes of scores at a time, where memory is plenty.
const SCORES: u64 = 1 << 30;

pub(super) fn lower(of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    let keys = of.op.keys as u64;
    let limit = of.profile.limits.max_storage_binding.min(SCORES);
    // An invocation walks through all keys, in runs.
    if !of.profile.runs_rounds(keys + keys.div_ceil(RUN)) {
        return Err(err!(
            TooLarge,
            "{}: `naive` takes up to {} keys on {}, which ends longer loops; take `auto`",
            of.name,
            of.profile.max_rounds() / (RUN + 1) * RUN,
            of.profile.name
        ));
    }
    of.profile.check_scratch(&of.name, format_args!("the scores of {keys} keys"), 4 * keys, "take `auto`")?;
    let most = (limit / 4 / keys).max(1);
    let rows = (of.pairs() * of.rows_of_pair()) as u64;
    let scratch = program.scratch(4 * keys * most.min(rows));
    let score_inputs = [
        AttentionOperand::Q,
        AttentionOperand::K,
        AttentionOperand::Scales,
        AttentionOperand::Table,
        AttentionOperand::Lengths,
        AttentionOperand::Mask,
    ];
    let value_inputs = [
        AttentionOperand::V,
        AttentionOperand::Scales,
        AttentionOperand::Table,
        AttentionOperand::Lengths,
        AttentionOperand::Output,
    ];
    // Scores and probabilities lie behind the operands that a kernel binds.
    let behind = |wanted: &[AttentionOperand]| {
        let bound = of.spec(wanted).constant("WORKGROUP_SIZE", WORKGROUP_SIZE);
        let count = of.count(wanted) as u32;
        bound.constant("SCORES_BINDING", count + 1)
    };
    let scores = program.kernel(Kernel::library(
        "attention/attention_scores",
        "attention_scores",
        behind(&score_inputs),
    ));
    let softmax = program.kernel(Kernel::library(
        "attention/attention_softmax",
        "attention_softmax",
        behind(&[]).constant("LANES", WORKGROUP_SIZE),
    ));
    let values = program.kernel(Kernel::library(
        "attention/attention_values",
        "attention_values",
        behind(&value_inputs).constant("RUN", RUN as u32),
    ));
    for chunk in of.chunks()? {
        let first = (chunk.first * of.rows_of_pair()) as u64;
        let end = first + (chunk.pairs * of.rows_of_pair()) as u64;
        let mut begin = first;
        while begin < end {
            let count = most.min(end - begin);
            let mut params = of.params(&chunk);
            params.first_row = begin as u32;
            params.rows = count as u32;
            let part = Binding { size: 4 * keys * count, ..scratch };
            let mut bindings = of.bindings(program, &chunk, &score_inputs);
            bindings.push(part);
            let invocations = u64::from(WORKGROUP_SIZE);
            program.dispatch(scores, &params, bindings, Grid::fold((count * keys).div_ceil(invocations)));
            program.dispatch(softmax, &params, vec![part], Grid::fold(count));
            let mut bindings = of.bindings(program, &chunk, &value_inputs);
            bindings.push(part);
            let fours = count * u64::from(of.fours());
            program.dispatch(values, &params, bindings, Grid::fold(fours.div_ceil(invocations)));
            begin += count;
        }
    }
    Ok(())
}
