//! What the gradients of softmax and of the norms share.

use super::columns::Columns;
use super::rows::{RowsParams, RowsPolicy, check_eps, check_rows, check_steps, policy, reduction, tile};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{
    Access, Binding, Cost, DeviceProfile, Grid, Kernel, Operand, Program, Resource, Variant, choose,
};
use crate::shader::Fragment;
use crate::shape::elements;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable(
        "whole",
        "a row in the registers of one workgroup, or of a part of one: every operand is read once",
    ),
    Variant::portable("passes", "a row read anew for each sum over it"),
];

/// The gradients of which op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Softmax or its logarithm, by the file of their formulas.
    Softmax(&'static str),
    LayerNorm,
    RmsNorm,
}

/// The work of one of the ops.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowsBackward {
    pub(super) op: &'static str,
    pub(super) of: Of,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) variant: String,
    pub(super) eps: f32,
}

/// Operations on each element, roughly.
const FLOP: f64 = 8.0;

impl RowsBackward {
    pub(super) fn new(op: &'static str, of: Of, rows: usize, n: usize) -> Self {
        Self { op, of, rows, n, variant: "auto".into(), eps: 1e-5 }
    }

    pub(super) fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { op, of, rows, n, .. } = *self;
        let len = elements(op, "dy", &[rows, n])?;
        check_eps(op, self.eps)?;
        let norm = !matches!(of, Of::Softmax(_));
        let vectors = n.is_multiple_of(4);
        let items = if vectors { n / 4 } else { n } as u64;
        // Two operands are held.
        let policy = policy(profile);
        let policy =
            RowsPolicy { most: policy.most / 2, wanted: policy.wanted.min(policy.most / 2), ..policy };
        let held = tile(items.max(1), &policy);
        let fits = held.quads <= policy.most;
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if fits {
                ("whole", format!("{} invocations hold a row of {n}: it is read once", held.lanes))
            } else {
                ("passes", format!("a row of {n} is more than {} invocations hold in registers", held.lanes))
            }
        })?;
        if variant.name == "whole" && !fits {
            return Err(err!(
                TooLarge,
                "{op}: a row of {n} is more than {} invocations hold in registers on {}; take `passes` or `auto`",
                held.lanes,
                profile.name
            ));
        }
        let whole = variant.name == "whole";
        let mut program = Program::new(op, decision);
        let f32s = |name, len, access| Operand { name, dtype: DType::F32, len, access };
        program.operands.push(f32s(if norm { "x" } else { "y" }, len, Access::Read));
        if norm {
            program.operands.push(f32s("gamma", n, Access::Read));
        }
        program.operands.push(f32s("dy", len, Access::Read));
        program.operands.push(f32s("dx", len, Access::Write));
        if norm {
            program.operands.push(f32s("dgamma", n, Access::Write));
        }
        if of == Of::LayerNorm {
            program.operands.push(f32s("dbeta", n, Access::Write));
        }
        program.cost =
            Cost { flop: FLOP * len as f64, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
        check_rows(op, &program.operands[0], n, profile)?;
        let what = format_args!("the statistics of {rows} rows");
        profile.check_scratch(op, what, 8 * rows as u64, "take fewer rows at a time")?;
        let (rows, n) = (rows as u64, n as u64);
        let dy = Resource::Operand(if norm { 2 } else { 1 });
        let joined = norm.then(|| program.scratch(8 * rows.max(1)));
        let lanes = if whole { held.lanes } else { policy.workgroup };
        check_steps(op, n as usize, items, lanes, profile)?;
        let workgroup = lanes.max(policy.workgroup);
        let fragment = match of {
            Of::Softmax(fragment) => fragment,
            Of::LayerNorm => "nn/layer_norm_backward",
            Of::RmsNorm => "nn/rms_norm_backward",
        };
        let mut spec = reduction(lanes, workgroup, profile)
            .slot("gradient", Fragment::Library(fragment))
            .flag("VECTORS", vectors)
            .flag("HELD", whole)
            .flag("NORM", norm);
        if whole {
            spec = spec.constant("QUADS", held.quads as u32);
        }
        if norm {
            spec = spec.constant("SLOTS", 4u32);
        }
        for chunk in profile.chunks(rows, 4 * n).filter(|_| n > 0) {
            let kernel = program.kernel(Kernel::library("nn/rows_backward", "rows_backward", spec.clone()));
            let dx = if norm { 3 } else { 2 };
            let mut bindings =
                [Resource::Operand(0), dy, Resource::Operand(dx)].map(|x| chunk.of(x, 4 * n)).to_vec();
            if let Some(joined) = joined {
                bindings.extend([Binding::operand(1, &program.operands), joined]);
            }
            let params = RowsParams {
                rows: chunk.count as u32,
                n: n as u32,
                parts: 1,
                part_len: n as u32,
                origin: (chunk.span(4 * n).before / 4) as u32,
                first: chunk.first as u32,
                eps: self.eps,
                pad: 0.0,
            };
            program.dispatch(kernel, &params, bindings, Grid::fold(chunk.count.div_ceil(workgroup / lanes)));
        }
        if let Some(joined) = joined {
            let normed = Some((Resource::Operand(0), joined));
            let columns = Columns { rows, n, gradients: dy, normed, factor: 1.0, profile };
            let dbeta = (of == Of::LayerNorm).then_some(Resource::Operand(5));
            columns.sum(&mut program, dbeta, Some(Resource::Operand(4)));
        }
        Ok(program)
    }
}

/// Programs that reach every form of the kernels, through `lower`.
pub(super) fn samples(lower: impl Fn(usize, usize) -> Result<Program>) -> Result<Vec<Program>> {
    // Aligned and not, short rows and long ones, columns of one workgroup and of several blocks.
    [(3, 5), (4, 4), (5, 130), (2, 1028), (3000, 12)].into_iter().map(|(rows, n)| lower(rows, n)).collect()
}
