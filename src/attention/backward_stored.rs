//! The variant `stored` of attention's backward pass: scores and slopes in scratch, between products as
//! [`GemmBatched`] computes them and `shaders/attention/attention_backward_scores.wgsl`.

use super::backward_layout::GradientLowering;
use super::backward_statistics::{self, LogBase};
use crate::dense::{GemmBatched, RowEnd};
use crate::program::prelude::*;
use std::ops::Range;

kernel_params! {
    struct RowParams {
        len: u32,
        rows: u32,
        first_query: u32,
        queries: u32,
        first_key: u32,
        columns: u32,
        keys: u32,
        window: u32,
        first_row: u32,
    }
}

kernel_params! {
    struct ScoreRowParams {
        rows: u32,
        first_query: u32,
        queries: u32,
        len: u32,
        first_key: u32,
        keys: u32,
        window: u32,
        columns: u32,
        pitch: u32,
        workgroups: u32,
        scale: f32,
    }
}

/// Elements of a vec4.
const UNIT: usize = 4;
/// The most keys of a row that 256 threads keep in registers.
const MAX_KEYS: usize = 16 << 10;
/// Bytes of each of the two matrices of a step. More heads at a time fill a card better.
const STEP_BYTES: u64 = 512 << 20;
/// Queries of a step if some keys are hidden: with fewer, fewer hidden scores are computed, by slower products. B4 H16
/// T4096 D64, causal, a saved pass on an H100 (Vulkan, driver 580.159.04): 12.4 ms with 512, 12.5 with 384, 13.3 with
/// 1024, 13.5 with 256.
const HIDING_ROWS: usize = 512;
/// The fewest queries and keys for which `auto` takes the variant.
const SUITS_ROWS: usize = 256;
/// Threads of the kernel that gathers statistics of rows.
const ROWS_WORKGROUP: u32 = 256;
/// Elements of f32 that offsets of bindings are multiples of.
const ALIGNED: usize = 64;

// Inputs.
const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const DY: usize = 3;
// Results.
const DQ: usize = 0;
const DK: usize = 1;
const DV: usize = 2;

/// How a pass is divided into steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSteps {
    rows: usize,
    /// (Sequence, kv head) pairs of a step: 1 if heads share keys.
    pairs: usize,
    /// Elements from one row of scores to the next.
    pitch: usize,
    /// What head sizes must be multiples of.
    pub(super) unit: usize,
}

/// Divides the pass. Rejects what the variant cannot run.
pub(super) fn check(of: &GradientLowering<'_>) -> Result<StoredSteps> {
    let forward = &of.op.forward;
    let (queries, keys, group) = (forward.queries, forward.keys, forward.group());
    let refused = |why: String| Err(err!(Unsupported, "{}: the variant `stored` takes {why}; use `auto`", of.name));
    if of.dtype != DType::F32 {
        return refused(format!("operands of f32, not {}", of.dtype));
    }
    if keys > MAX_KEYS {
        return refused(format!("up to {MAX_KEYS} keys, not {keys}"));
    }
    let pairs = forward.batch * forward.kv_heads;
    // Heads of aligned rows begin at any row.
    let aligned = |rows: usize| (rows * of.op.padded_size(UNIT)).is_multiple_of(ALIGNED);
    let unit = if pairs * group <= 1 || aligned(queries) && aligned(keys) { UNIT } else { ALIGNED };
    let pitch = keys.max(1).next_multiple_of(if group > 1 { ALIGNED } else { UNIT });
    let binding = of.profile.largest_binding() / 4;
    let of_operands = ((group * queries).max(keys) * of.op.padded_size(unit)) as u64;
    if of_operands > binding {
        return refused(format!("heads that share keys in one binding, not {of_operands} elements"));
    }
    // One dispatch computes the statistics of all queries.
    let all = (pairs * group * queries) as u64;
    if of.op.saved && !of.profile.binds_all(all, 8.max(4 * of.op.padded_size(unit) as u64)) {
        return refused(format!("saved outputs in one binding, not those of {all} queries"));
    }
    let limit = binding.min(STEP_BYTES / 4);
    let hides = forward.causal || forward.window.is_some();
    let mut rows = if hides { queries.min(HIDING_ROWS) } else { queries }.max(1);
    while (rows * group * pitch) as u64 > limit && rows > ALIGNED {
        rows = (rows / 2).next_multiple_of(ALIGNED);
    }
    let of_pair = (rows * group * pitch).max(1) as u64;
    if of_pair > limit {
        return refused(format!("scores of {ALIGNED} queries that fit a binding, not of {group} heads x {keys} keys"));
    }
    let most = if group > 1 { 1 } else { (limit / of_pair).min(binding / of_operands.max(1)) as usize };
    // Steps of about one size.
    let pairs = pairs.max(1);
    let pairs = pairs.div_ceil(pairs.div_ceil(most));
    Ok(StoredSteps { rows, pairs, pitch, unit })
}

/// Whether the variant is faster than `flash`: on a processor, or on a card for long rows, without heads that share
/// keys. us of `stored` and `flash` (Mesa 22.3): 4 heads of 3 x 8 297, 557, of 100 x 64 3022, 20,544.
pub(super) fn suits(of: &GradientLowering<'_>) -> bool {
    let forward = &of.op.forward;
    let long = of.profile.class == DeviceClass::Discrete && forward.queries.min(forward.keys) >= SUITS_ROWS;
    (long || of.profile.quirks.serial_workgroups) && forward.group() == 1 && check(of).is_ok()
}

struct StoredStep {
    /// (Sequence, kv head) pairs.
    pairs: Range<usize>,
    queries: Range<usize>,
    /// The keys that any of the queries sees.
    keys: Range<usize>,
}

pub(super) fn lower(steps: StoredSteps, of: &GradientLowering<'_>, program: &mut Program) -> Result<()> {
    let forward = &of.op.forward;
    let (pairs, group, d) = (forward.batch * forward.kv_heads, forward.group(), forward.head_size);
    let hides = forward.causal || forward.window.is_some();
    let adds = hides || group != 1;
    if adds {
        // Steps add to keys' gradients, and may leave some out; without heads there are none.
        for at in [DK, DV] {
            let words = pairs * forward.keys * d;
            program.append(fill(words, [0; 2], of.profile)?, &[Resource::Operand(of.op.first_result() + at)]);
        }
    }
    let bytes = (4 * steps.pairs * group * steps.rows * steps.pitch) as u64;
    let scores = [program.scratch(bytes), program.scratch(bytes)];
    let saved = of.op.saved.then(|| {
        let statistics = program.scratch((8 * pairs * group * forward.queries) as u64);
        let all = BoundChunk { first: 0, count: pairs as u64 };
        backward_statistics::append(of, LogBase::E, all, statistics, program);
        (statistics, program.scratch((16 * steps.pairs * group * steps.rows) as u64))
    });
    let mut pass = StoredPass { of, steps, scores, saved, shared: Vec::new(), program };
    for first in (0..pairs).step_by(steps.pairs) {
        for row in (0..forward.queries).step_by(steps.rows) {
            let queries = row..forward.queries.min(row + steps.rows);
            let step =
                StoredStep { pairs: first..pairs.min(first + steps.pairs), keys: visible(of, &queries), queries };
            pass.append(&step, adds || row > 0)?;
        }
    }
    Ok(())
}

/// Returns the keys that any of the queries sees, from an aligned row on.
fn visible(of: &GradientLowering<'_>, queries: &Range<usize>) -> Range<usize> {
    let forward = &of.op.forward;
    let keys = forward.keys as i64;
    let place = |query: usize| query as i64 + keys - forward.queries as i64;
    let (mut first, mut end) = (0, keys);
    if let Some(window) = forward.window {
        let window = window.min(1 << 30) as i64;
        first = place(queries.start) + 1 - window;
        end = end.min(place(queries.end - 1) + window);
    }
    if forward.causal {
        end = end.min(place(queries.end - 1) + 1);
    }
    let end = end.max(0) as usize;
    let first = (first.max(0) as usize).min(end);
    first / ALIGNED * ALIGNED..end
}

struct StoredPass<'a, 'p> {
    of: &'a GradientLowering<'a>,
    steps: StoredSteps,
    /// Scores, then weights; and products of dy and v, then slopes.
    scores: [Binding; 2],
    /// The statistics of queries, if the forward pass saved them, and those of the rows of a step.
    saved: Option<(Binding, Binding)>,
    /// Scratch that the products share.
    shared: Vec<usize>,
    program: &'p mut Program,
}

impl StoredPass<'_, '_> {
    fn append(&mut self, step: &StoredStep, adds: bool) -> Result<()> {
        let forward = &self.of.op.forward;
        let (group, d, pitch) = (forward.group(), forward.head_size, self.steps.pitch);
        let [rows, len] = [step.queries.len(), step.keys.len()];
        // Elements from one head to the next.
        let of_queries = forward.queries * d;
        let of_keys = if group > 1 { 0 } else { forward.keys * d };
        let heads = step.pairs.len() * group;
        let [scores, slopes] = self.scores.map(|binding| (binding.resource, 0));
        let element = |of_query: bool| match of_query {
            true => step.pairs.start * group * of_queries + step.queries.start * d,
            false => (step.pairs.start * forward.keys + step.keys.start) * d,
        };
        let place = |at: usize| (Resource::Operand(at), 4 * element([Q, DY].contains(&at)) as u64);
        let first_result = self.of.op.first_result();
        let result = |at: usize| (Resource::Operand(first_result + at), 4 * element(at == DQ) as u64);
        let of_scores = rows * pitch;
        if len > 0 {
            let product = GemmBatched::new(heads, rows, len, d).trans_b().ldc(pitch);
            let mut product = product.strides(of_queries, of_keys, of_scores);
            if let Some((statistics, of_rows)) = self.saved {
                // Weights and slopes follow from sums of their own alone: no kernel reads both products again.
                self.rows(step, heads, statistics, of_rows);
                let of_rows = (of_rows.resource, 0);
                product.product.alpha = forward.factor();
                product.product.row_end = Some(RowEnd::Weights);
                self.product(&product, &[place(Q), place(K), of_rows, scores])?;
                product.product.row_end = Some(RowEnd::Slopes);
                self.product(&product, &[place(DY), place(V), of_rows, scores, slopes])?;
            } else {
                for (own, walked, to) in [(Q, K, scores), (DY, V, slopes)] {
                    self.product(&product, &[place(own), place(walked), to])?;
                }
                self.weights(step, heads);
            }
        }
        let product = GemmBatched::new(heads, rows, d, len).lda(pitch);
        self.product(&product.strides(of_scores, of_keys, of_queries), &[slopes, place(K), result(DQ)])?;
        if len == 0 {
            return Ok(());
        }
        let beta = if adds { 1.0 } else { 0.0 };
        for (by, walked, to) in [(slopes, Q, DK), (scores, DY, DV)] {
            let at = |(resource, offset): (Resource, u64), head: usize, elements: usize| {
                (resource, offset + 4 * (head * elements) as u64)
            };
            let product = |heads| GemmBatched::new(heads, len, d, rows).trans_a().lda(pitch).beta(beta);
            if group == 1 {
                let product = product(heads).strides(of_scores, of_queries, of_keys);
                self.product(&product, &[by, place(walked), result(to)])?;
                continue;
            }
            // One after the other, since heads that share keys add to the same gradients.
            for head in 0..group {
                let operands = [at(by, head, of_scores), at(place(walked), head, of_queries), result(to)];
                self.product(&product(1), &operands)?;
            }
        }
        Ok(())
    }

    fn product(&mut self, product: &GemmBatched, operands: &[(Resource, u64)]) -> Result<()> {
        let product = Op::<f32>::lower(product, self.of.profile)?;
        self.program.append_at(product, operands, &mut self.shared);
        Ok(())
    }

    fn rows(&mut self, step: &StoredStep, heads: usize, statistics: Binding, of_rows: Binding) {
        let forward = &self.of.op.forward;
        let spec = Spec::new()
            .constant("WORKGROUP_SIZE", ROWS_WORKGROUP)
            .flag("CAUSAL", forward.causal)
            .flag("WINDOWED", forward.window.is_some());
        let kernel = self.program.kernel(Kernel::of_file("attention/attention_backward_rows", spec));
        let len = heads * step.queries.len();
        let params = RowParams {
            len: len as u32,
            rows: step.queries.len() as u32,
            first_query: step.queries.start as u32,
            queries: forward.queries as u32,
            first_key: step.keys.start as u32,
            columns: step.keys.len() as u32,
            keys: forward.keys as u32,
            window: forward.window.map_or(0, |w| w.min(1 << 30)) as u32,
            first_row: (step.pairs.start * forward.group() * forward.queries + step.queries.start) as u32,
        };
        let workgroups = len.div_ceil(ROWS_WORKGROUP as usize) as u64;
        self.program.dispatch(kernel, &params, vec![statistics, of_rows], Grid::fold(workgroups));
    }

    /// Turns the products of a step into weights and slopes.
    fn weights(&mut self, step: &StoredStep, heads: usize) {
        let forward = &self.of.op.forward;
        let vec4s = step.keys.len().div_ceil(UNIT);
        let threads = vec4s.div_ceil(4).next_power_of_two().clamp(32, 256);
        let workgroups = heads * step.queries.len();
        let spec = Spec::new()
            .constant("WORKGROUP_SIZE", threads as u32)
            .constant("ITEMS", vec4s.div_ceil(threads) as u32)
            .flag("CAUSAL", forward.causal)
            .flag("WINDOWED", forward.window.is_some());
        let kernel = self.program.kernel(Kernel::of_file("attention/attention_backward_scores", spec));
        let params = ScoreRowParams {
            rows: step.queries.len() as u32,
            first_query: step.queries.start as u32,
            queries: forward.queries as u32,
            len: step.keys.len() as u32,
            first_key: step.keys.start as u32,
            keys: forward.keys as u32,
            window: forward.window.map_or(0, |w| w.min(1 << 30)) as u32,
            columns: vec4s as u32,
            pitch: (self.steps.pitch / UNIT) as u32,
            workgroups: workgroups as u32,
            scale: forward.factor(),
        };
        self.program.dispatch(kernel, &params, self.scores.to_vec(), Grid::fold(workgroups as u64));
    }
}
