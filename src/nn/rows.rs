//! What softmax and the norms share: statistics of each row, then every element by them.

use crate::element::DType;
use crate::error::{Result, err};
use crate::program::fit::{BoundChunk, LOOP_ROUNDS};
pub(super) use crate::program::rows::{RowTile, RowsParams, RowsPolicy, check_rows, policy, reduction, tile};
use crate::program::{
    Access, Binding, Cost, DeviceProfile, Grid, Kernel, Operand, Program, Resource, Variant, choose,
    element_fragment,
};
use crate::shader::{Fragment, Spec};
use crate::shape::elements;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable(
        "whole",
        "a row in the registers of one workgroup, or of a part of one: one read, one write",
    ),
    Variant::portable("parts", "statistics of parts of a row, joined, then applied: two reads, one write"),
];

/// Operations on each element, roughly.
const FLOP: f64 = 5.0;

/// The work of one of the ops.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) op: &'static str,
    /// File of its formulas.
    pub(super) fragment: &'static str,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) variant: String,
    /// Invocations that share a row, where they are asked for.
    pub(super) lanes: Option<u32>,
    pub(super) eps: f32,
    /// What stands for an element that is none.
    pub(super) pad: f32,
}

impl Rows {
    pub(super) fn new(op: &'static str, fragment: &'static str, rows: usize, n: usize, pad: f32) -> Self {
        Self { op, fragment, rows, n, variant: "auto".into(), lanes: None, eps: 0.0, pad }
    }

    pub(super) fn lower(
        &self,
        dtype: DType,
        extra: &[&'static str],
        profile: &DeviceProfile,
    ) -> Result<Program> {
        let Self { op, rows, n, .. } = *self;
        let len = elements(op, "x", &[rows, n])?;
        check_eps(op, self.eps)?;
        let vectors = n.is_multiple_of(4);
        // Halves that begin anywhere may lie in one word more.
        let slack = if dtype == DType::F16 && !vectors { 2 } else { 0 };
        let policy = policy(profile);
        let quads = (n as u64).saturating_add(slack).div_ceil(4).max(1);
        let whole = match self.lanes {
            None => tile(quads, &policy),
            Some(lanes) => {
                let most = u64::from(profile.limits.max_invocations);
                if !lanes.is_power_of_two() || u64::from(lanes) > most {
                    return Err(err!(
                        InvalidArgument,
                        "{op}: {lanes} lanes were asked for; they must be a power of two up to {most}, the largest workgroup \
                         of {}",
                        profile.name
                    ));
                }
                RowTile { lanes: lanes.into(), quads: quads.div_ceil(lanes.into()) }
            }
        };
        let fits = whole.quads <= policy.most;
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if fits {
                ("whole", format!("{} invocations hold a row of {n}: it is read once", whole.lanes))
            } else {
                ("parts", format!("a row of {n} is more than {} invocations hold in registers", whole.lanes))
            }
        })?;
        if variant.name == "whole" && !fits {
            return Err(err!(
                TooLarge,
                "{op}: a row of {n} is more than {} invocations hold in registers on {}, {} elements; take `parts` or `auto`",
                whole.lanes,
                profile.name,
                4 * whole.lanes * policy.most
            ));
        }
        let mut program = Program::new(op, decision);
        program.operands.push(Operand { name: "x", dtype, len, access: Access::Read });
        for &name in extra {
            program.operands.push(Operand { name, dtype, len: n, access: Access::Read });
        }
        program.operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        program.cost =
            Cost { flop: FLOP * len as f64, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
        check_rows(op, &program.operands[0], n, profile)?;
        if len == 0 {
            return Ok(program);
        }
        let work = RowsLowering { rows: self, dtype, extra: extra.len(), vectors, slack, profile };
        if variant.name == "whole" {
            let params = work.params(1, n as u64);
            work.each_chunk(&mut program, whole, Step::Whole, params, &[]);
        } else {
            work.in_parts(&mut program, &policy)?;
        }
        Ok(program)
    }
}

/// Fails if `lanes` lanes walk a row three times in more steps than some drivers allow in a loop.
pub(super) fn check_steps(op: &str, n: usize, items: u64, lanes: u64, profile: &DeviceProfile) -> Result<()> {
    let steps = 3 * items.div_ceil(lanes);
    if steps <= u64::from(LOOP_ROUNDS) {
        return Ok(());
    }
    Err(err!(
        TooLarge,
        "{op}: a row of {n} takes {lanes} invocations {steps} steps on {}; at most {} are safe on every driver; take \
         shorter rows",
        profile.name,
        LOOP_ROUNDS
    ))
}

/// Refuses an epsilon that no root can take.
pub(super) fn check_eps(op: &str, eps: f32) -> Result<()> {
    if eps >= 0.0 && eps.is_finite() {
        return Ok(());
    }
    Err(err!(
        InvalidArgument,
        "{op}: eps is {eps:?}; it must be a finite number that is not negative, such as 1e-5"
    ))
}

/// What a kernel does with a row, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Whole,
    Statistics,
    Apply,
}

struct RowsLowering<'a> {
    rows: &'a Rows,
    dtype: DType,
    extra: usize,
    vectors: bool,
    slack: u64,
    profile: &'a DeviceProfile,
}

impl RowsLowering<'_> {
    fn params(&self, parts: u64, part_len: u64) -> RowsParams {
        RowsParams {
            rows: self.rows.rows as u32,
            n: self.rows.n as u32,
            parts: parts as u32,
            part_len: part_len as u32,
            origin: 0,
            first: 0,
            eps: self.rows.eps,
            pad: self.rows.pad,
        }
    }

    fn workgroup(&self, lanes: u64) -> u64 {
        match self.rows.lanes {
            // So many have a workgroup of their own.
            Some(asked @ 64..) => lanes.max(asked.into()),
            _ => lanes.max(policy(self.profile).workgroup),
        }
    }

    /// What the reduction over a row's lanes needs.
    fn reduction(&self, lanes: u64) -> Spec {
        reduction(lanes, self.workgroup(lanes), self.profile)
            .slot("normalizer", Fragment::Library(self.rows.fragment))
    }

    fn kernel(&self, program: &mut Program, tile: RowTile, parts: u64, step: Step) -> usize {
        let spans = self.workgroup(tile.lanes) / tile.lanes;
        let n = self.rows.n as u64;
        let whole = self.vectors
            && n == parts * tile.elements()
            && (self.rows.rows as u64 * parts).is_multiple_of(spans)
            && self.chunks().count() == 1;
        let applied = step != Step::Statistics;
        let output = 2 + self.extra as u32;
        let mut spec = self
            .reduction(tile.lanes)
            .slot("element", element_fragment(self.dtype))
            .constant("QUADS", tile.quads as u32)
            .flag("HALVES", self.dtype == DType::F16)
            .flag("VECTORS", self.vectors)
            .flag("WHOLE", whole)
            .flag("STATISTICS", !applied)
            .flag("JOINED", step == Step::Apply);
        if applied {
            spec = spec
                .constant("OUTPUT", output)
                .flag("SCALED", self.extra > 0)
                .flag("SHIFTED", self.extra > 1);
        }
        if step == Step::Apply {
            // Nothing is left to reduce.
            spec = spec.constant("JOINED_BINDING", output + 1).flag("SUBGROUPS", false).flag("ACROSS", false);
        }
        program.kernel(Kernel::library("nn/rows_normalize", "rows_normalize", spec))
    }

    fn row_bytes(&self) -> u64 {
        (self.rows.n * self.dtype.size()) as u64
    }

    fn chunks(&self) -> impl Iterator<Item = BoundChunk> {
        self.profile.chunks(self.rows.rows as u64, self.row_bytes())
    }

    /// Dispatches `kernel` over every chunk of the rows that one binding holds, with `more` bound behind.
    fn each_chunk(
        &self,
        program: &mut Program,
        tile: RowTile,
        step: Step,
        params: RowsParams,
        more: &[Binding],
    ) {
        let kernel = self.kernel(program, tile, params.parts.into(), step);
        let spans = self.workgroup(tile.lanes) / tile.lanes;
        let (row_bytes, size) = (self.row_bytes(), self.dtype.size() as u64);
        for chunk in self.chunks() {
            let part = |operand| chunk.of(Resource::Operand(operand), row_bytes);
            let mut bindings = vec![part(0)];
            if step != Step::Statistics {
                bindings.extend((1..=self.extra).map(|i| Binding::operand(i, &program.operands)));
                bindings.push(part(self.extra + 1));
            }
            bindings.extend(more);
            let (rows, origin) = (chunk.count as u32, (chunk.span(row_bytes).before / size) as u32);
            let first = chunk.first as u32;
            let params = RowsParams { rows, origin, first, ..params };
            let workgroups = (chunk.count * u64::from(params.parts)).div_ceil(spans);
            program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        }
    }

    /// Statistics of parts, joined, applied.
    fn in_parts(&self, program: &mut Program, policy: &RowsPolicy) -> Result<()> {
        let (rows, n) = (self.rows.rows as u64, self.rows.n as u64);
        let lanes = self.rows.lanes.map_or(policy.workgroup, u64::from);
        let tile = RowTile { lanes, quads: policy.wanted };
        let part_len = tile.elements() - self.slack;
        let parts = n.div_ceil(part_len);
        let params = self.params(parts, part_len);
        let (bytes, what) =
            (rows * parts * 8, format_args!("the statistics of {rows} rows in {parts} parts"));
        self.profile.check_scratch(self.rows.op, what, bytes, "take fewer rows at a time")?;
        let statistics = program.scratch(bytes);
        let joined = program.scratch(rows * 8);
        self.each_chunk(program, tile, Step::Statistics, params, &[statistics]);
        let lanes = self.workgroup(lanes);
        let join = Kernel::library("nn/rows_join", "rows_join", self.reduction(lanes));
        let join = program.kernel(join);
        program.dispatch(join, &params, vec![statistics, joined], Grid::fold(rows));
        self.each_chunk(program, tile, Step::Apply, params, &[joined]);
        Ok(())
    }
}

/// Programs that reach every form of the kernels, through `lower`.
pub(super) fn samples(lower: impl Fn(usize, usize) -> Vec<Result<Program>>) -> Result<Vec<Program>> {
    // Aligned and not, short rows and long ones, whole registers and not.
    let shapes = [(3, 5), (256, 4), (7, 1000), (2, 1001), (1, 4096), (5, 1028)];
    let all = shapes.into_iter().flat_map(|(rows, n)| lower(rows, n));
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn rows(rows: usize, n: usize) -> Rows {
        Rows::new("softmax", "nn/softmax", rows, n, f32::NEG_INFINITY)
    }

    #[test]
    fn tiles_hold_their_rows() {
        let policy = policy(&DeviceProfile::h100());
        for quads in 1..=4096 {
            let tile = tile(quads, &policy);
            assert!(
                tile.lanes.is_power_of_two() && tile.lanes <= 256 && tile.quads <= 16,
                "{quads}: {tile:?}"
            );
            assert!(
                tile.lanes * tile.quads >= quads && (tile.quads - 1) * tile.lanes < quads,
                "{quads}: {tile:?}"
            );
        }
        assert_eq!(tile(1024, &policy), RowTile { lanes: 256, quads: 4 });
        assert_eq!(tile(1, &policy), RowTile { lanes: 1, quads: 1 });
    }

    #[test]
    fn rows_above_one_binding_are_taken_in_chunks() {
        let profile = DeviceProfile::webgpu_defaults();
        for (dtype, n) in [(DType::F32, 999), (DType::F16, 1001), (DType::F32, 20_000)] {
            let count = 200_000_000 / dtype.size() / n;
            let program = rows(count, n).lower(dtype, &[], &profile).unwrap();
            let limit = profile.limits.max_storage_binding;
            assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= limit));
            let of_input = (0..program.dispatches.len()).filter(|&d| {
                let last = program.dispatches[d].bindings.len() - 1;
                program.dispatches[d].bindings[last.min(1)].resource == Resource::Operand(1)
            });
            let mut seen = 0;
            for d in of_input {
                assert_eq!(program.param(d, "first"), seen);
                let begin = program.dispatches[d].bindings[0].offset / dtype.size() as u64;
                assert_eq!(begin + program.param(d, "origin"), seen * n as u64);
                seen += program.param(d, "rows");
            }
            assert_eq!(seen, count as u64);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let profile = DeviceProfile::webgpu_defaults();
        let e = rows(1, 40_000_000).lower(DType::F32, &[], &profile).unwrap_err();
        assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("160000000 bytes"), "{e}");
        let whole = Rows { variant: "whole".into(), ..rows(1, 16_385) };
        let e = whole.lower(DType::F32, &[], &profile).unwrap_err();
        assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("16384 elements"), "{e}");
        assert_eq!(whole.lower(DType::F32, &[], &profile).unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(rows(1, 16_384).lower(DType::F32, &[], &profile).unwrap().variant() == "whole");
        assert!(rows(0, 9).lower(DType::F32, &[], &profile).unwrap().dispatches.is_empty());
    }
}
