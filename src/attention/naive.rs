//! The variant `naive`: three kernels for all scores, their softmax, and the product with the values.

use super::layout::{AttentionLowering, AttentionOperand, HeadChunk};
use super::score_stage::ScoreStage;
use crate::program::prelude::*;

const WORKGROUP_SIZE: u32 = 256;

/// Keys that a thread sums separately, to bound rounding errors.
const RUN: u64 = 1024;

/// The largest scratch for scores, in bytes.
const MAX_SCORE_BYTES: u64 = 1 << 30;

/// Rejects keys that the device cannot run.
pub(super) fn check(of: &AttentionLowering<'_>) -> Result<()> {
    let keys = of.op.keys as u64;
    if !of.profile.runs_rounds(of.vec4s().into()) {
        return Err(err!(
            TooLarge,
            "{}: heads of at most {} elements on {}, which ends longer loops early",
            of.name,
            4 * of.profile.max_rounds(),
            of.profile.name
        ));
    }
    // A thread walks over all keys, in runs.
    if !of.profile.runs_rounds(keys + keys.div_ceil(RUN)) {
        return Err(err!(
            TooLarge,
            "{}: the variant `naive` takes at most {} keys on {}, which ends longer loops early; use `auto`",
            of.name,
            of.profile.max_rounds() / (RUN + 1) * RUN,
            of.profile.name
        ));
    }
    of.profile.check_scratch(&of.name, format_args!("the scores of {keys} keys"), 4 * keys, "use `auto`")
}

pub(super) fn lower(of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
    let keys = of.op.keys as u64;
    let limit = of.profile.limits.max_storage_binding.min(MAX_SCORE_BYTES);
    let max_rows = (limit / 4 / keys).max(1);
    let rows = (of.pairs() * of.rows_of_pair()) as u64;
    let scratch = program.scratch(4 * keys * max_rows.min(rows));
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
    let row_results = [AttentionOperand::Logsumexp];
    // Scores and probabilities come after the operands.
    let spec_of = |wanted: &[AttentionOperand]| {
        let bound = of.spec(wanted).constant("WORKGROUP_SIZE", WORKGROUP_SIZE);
        let count = of.count(wanted) as u32;
        bound.constant("SCORES_BINDING", count + 1)
    };
    let stage = match of.op.scores {
        None | Some(ScoreStage::Weights) => 0,
        Some(ScoreStage::Products) => 1,
        Some(ScoreStage::Capped) => 2,
        Some(ScoreStage::Masked) => 3,
    };
    let weights = of.op.scores == Some(ScoreStage::Weights);
    let scores = spec_of(&score_inputs).constant("STAGE", stage);
    let scores = program.kernel(Kernel::of_file("attention/attention_scores", scores));
    let softmax = spec_of(&row_results).constant("LANES", WORKGROUP_SIZE).flag("RESULT", weights);
    let softmax = program.kernel(Kernel::of_file("attention/attention_softmax", softmax));
    let values = spec_of(&value_inputs).constant("RUN", RUN as u32);
    let values = program.kernel(Kernel::of_file("attention/attention_values", values));
    let result = |program: &Program, chunk: &HeadChunk, wanted: bool| {
        wanted.then(|| of.binding(program, chunk, AttentionOperand::Scores, "scores"))
    };
    for chunk in of.chunks()? {
        let first = (chunk.first * of.rows_of_pair()) as u64;
        let end = first + (chunk.pairs * of.rows_of_pair()) as u64;
        let mut begin = first;
        while begin < end {
            let count = max_rows.min(end - begin);
            let mut params = of.params(&chunk);
            params.first_row = begin as u32;
            params.rows = count as u32;
            let part = Binding { size: 4 * keys * count, ..scratch };
            let mut bindings = of.bindings(program, &chunk, &score_inputs);
            bindings.push(part);
            bindings.extend(result(program, &chunk, stage > 0));
            let threads = u64::from(WORKGROUP_SIZE);
            of.dispatch(program, scores, &params, bindings, Grid::fold((count * keys).div_ceil(threads)));
            let mut bindings = of.bindings(program, &chunk, &row_results);
            bindings.push(part);
            bindings.extend(result(program, &chunk, weights));
            of.dispatch(program, softmax, &params, bindings, Grid::fold(count));
            let mut bindings = of.bindings(program, &chunk, &value_inputs);
            bindings.push(part);
            let vec4s = count * u64::from(of.value_vec4s());
            of.dispatch(program, values, &params, bindings, Grid::fold(vec4s.div_ceil(threads)));
            begin += count;
        }
    }
    Ok(())
}
