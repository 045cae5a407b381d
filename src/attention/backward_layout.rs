//! The parameters, bindings and chunks of the kernels of attention's backward pass, and the variant `naive`.

use super::attention_backward::AttentionBackward;
use super::backward_statistics::{self, LogBase};
use crate::program::fit::BoundSpan;
use crate::program::prelude::*;

kernel_params! {
    /// The parameters of every kernel of the backward pass.
    pub(super) struct GradientParams {
        queries: u32,
        keys: u32,
        group: u32,
        window: u32,
        tiles: u32,
        workgroups: u32,
        base_q: u32,
        base_k: u32,
        scale: f32,
    }
}

/// A checked backward pass, ready to lower.
pub(super) struct GradientLowering<'a> {
    pub(super) op: &'a AttentionBackward,
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) profile: &'a DeviceProfile,
}

/// A kernel of a variant, which owns queries or keys.
pub(super) struct GradientPass {
    pub(super) file: &'static str,
    pub(super) entry: &'static str,
    pub(super) spec: Spec,
    pub(super) rows: usize,
    pub(super) of_queries: bool,
    /// Results that it writes: 0 is dq, 1 is dk, 2 is dv.
    pub(super) outputs: &'static [usize],
    pub(super) slopes: SlopeUse,
}

/// What a pass does with slopes in scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlopeUse {
    Nothing,
    Writes,
    /// Its inputs are k and the slopes.
    Reads,
}

impl GradientLowering<'_> {
    /// Dispatches passes over as few chunks of (sequence, kv head) pairs as bindings allow. A chunk's slopes, of
    /// `slope_bytes` for each pair, take at most `max_slope_bytes` of scratch.
    pub(super) fn dispatch(
        &self, base: LogBase, passes: &[GradientPass], [slope_bytes, max_slope_bytes]: [u64; 2], program: &mut Program,
    ) -> Result<()> {
        let of = &self.op.forward;
        let (queries, keys, d, size) = (of.queries, of.keys, of.head_size, self.dtype.size());
        let (pairs, rows) = (of.batch * of.kv_heads, of.group() * queries);
        let bytes_of = |rows: usize| (rows * d * size) as u64;
        // Statistics take 8 bytes for each query.
        let [q, k, statistics] = [bytes_of(rows), bytes_of(keys), 8 * rows as u64];
        let most = q.max(k).max(statistics);
        if !self.profile.binds_all(pairs as u64, most) {
            self.profile.check_row(
                &self.name,
                format_args!("a kv head with the heads that share it"),
                most,
                "use fewer queries or keys at a time",
            )?;
        }
        let chunks = self.profile.chunks(pairs as u64, most);
        let most_pairs = chunks.map(|chunk| chunk.count).max().unwrap_or(1);
        let chunks = BoundChunk::even(pairs as u64, most_pairs.min(max_slope_bytes / slope_bytes.max(1)));
        let most_pairs = chunks.clone().map(|chunk| chunk.count).max().unwrap_or(1);
        let statistics = program.scratch(statistics * most_pairs);
        let slopes = (slope_bytes > 0).then(|| program.scratch(slope_bytes * most_pairs));
        let kernel = |pass: &GradientPass| {
            let spec = pass.spec.clone();
            let spec = spec
                .constant("HEAD", d as u32)
                .flag("CAUSAL", of.causal)
                .flag("WINDOWED", of.window.is_some())
                .flag("QUERIES", pass.of_queries)
                .flag("STORED", pass.slopes != SlopeUse::Nothing)
                .slot("element", element_fragment(self.dtype));
            Kernel::library(pass.file, pass.entry, spec)
        };
        let kernels: Vec<usize> = passes.iter().map(|pass| program.kernel(kernel(pass))).collect();
        for chunk in chunks {
            if self.op.saved {
                backward_statistics::append(self, base, chunk, statistics, program);
            }
            let [q, k] = [chunk.span(q), chunk.span(k)];
            let before = |span: BoundSpan| (span.before / size as u64) as u32;
            let mut params = GradientParams {
                queries: queries as u32,
                keys: keys as u32,
                group: of.group() as u32,
                window: of.window.map_or(0, |w| w.min(1 << 30)) as u32,
                tiles: 0,
                workgroups: 0,
                base_q: before(q),
                base_k: before(k),
                scale: of.factor(),
            };
            // Inputs: q, k, v, dy.
            let input = |at: usize| if [0, 3].contains(&at) { q } else { k }.of(Resource::Operand(at));
            let first = self.op.first_result();
            let result = |at: usize| if at == 0 { q } else { k }.of(Resource::Operand(first + at));
            let pairs = chunk.count as usize;
            for (pass, &kernel) in passes.iter().zip(&kernels) {
                let (extent, heads) = if pass.of_queries { (queries, pairs * of.group()) } else { (keys, pairs) };
                let tiles = extent.div_ceil(pass.rows);
                let workgroups = (heads * tiles) as u64;
                (params.tiles, params.workgroups) = (tiles as u32, workgroups as u32);
                let outputs = pass.outputs.iter().map(|&at| result(at));
                let bindings = match pass.slopes {
                    SlopeUse::Nothing => (0..4).map(input).chain([statistics]).chain(outputs).collect(),
                    SlopeUse::Writes => (0..4).map(input).chain([statistics]).chain(outputs).chain(slopes).collect(),
                    SlopeUse::Reads => [input(1)].into_iter().chain(slopes).chain(outputs).collect(),
                };
                program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
            }
        }
        Ok(())
    }

    /// Rejects loops of more than the device's rounds.
    pub(super) fn check_rounds(&self, variant: &str, rounds: u64) -> Result<()> {
        if self.profile.runs_rounds(rounds) {
            return Ok(());
        }
        Err(err!(
            TooLarge,
            "{}: the loops of `{variant}` take {rounds} rounds; {} ends loops after {}; use fewer queries or keys",
            self.name,
            self.profile.name,
            self.profile.max_rounds()
        ))
    }
}

/// Threads in a workgroup of `naive`.
const WORKGROUP_SIZE: u32 = 64;

/// Returns the most rounds of a thread of `naive`: of its two kernels.
pub(super) fn naive_rounds(of: &GradientLowering<'_>) -> u64 {
    let forward = &of.op.forward;
    let size = u64::from(WORKGROUP_SIZE);
    let words = (of.op.padded_size(2) * of.dtype.size()).div_ceil(4) as u64;
    let of_words = words.div_ceil(size);
    let (queries, keys) = (forward.queries as u64, forward.keys as u64);
    let tiles = |n: u64| n.div_ceil(size);
    let passes = of_words + 2;
    let of_queries = passes * tiles(keys) * (words + 2) + of_words * (keys + 1) + 3 * u64::from(size.ilog2() + 1);
    let of_keys = of_words * (1 + forward.group() as u64 * (1 + tiles(queries) * (words + 2) + queries));
    of_queries.max(of_keys)
}

/// Lowers the variant `naive`: a workgroup for each row.
pub(super) fn lower_naive(of: &GradientLowering<'_>, program: &mut Program) -> Result<()> {
    of.check_rounds("naive", naive_rounds(of))?;
    let pass = |entry, of_queries, outputs| GradientPass {
        file: "attention/attention_backward_naive",
        entry,
        spec: Spec::new()
            .constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
            .constant("LANES", WORKGROUP_SIZE)
            .constant("SLOTS", 3u32)
            .flag("STATISTICS", of_queries && !of.op.saved),
        rows: 1,
        of_queries,
        outputs,
        slopes: SlopeUse::Nothing,
    };
    let passes = [
        pass("attention_backward_naive_queries", true, &[0][..]),
        pass("attention_backward_naive_keys", false, &[1, 2]),
    ];
    of.dispatch(LogBase::E, &passes, [0, u64::MAX], program)
}
