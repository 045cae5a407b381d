use super::columns::Columns;
use super::rows::{RowsPolicy, check_eps, check_rows, check_steps, chunk_params, policy, reduction, tile};
use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("whole", "a row in the registers of at most one workgroup: every operand is read once"),
    Variant::portable("passes", "a row is read again for each sum over it"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsGradient {
    /// Softmax or its logarithm, with the shader file of its formulas.
    Softmax(&'static str),
    LayerNorm,
    RmsNorm,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowsBackward {
    pub(super) op: &'static str,
    pub(super) of: RowsGradient,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) variant: String,
    pub(super) eps: f32,
}

/// Writes the methods and the declaration of a gradient of an op on rows.
macro_rules! rows_gradient_op {
    ($Op:ident, $name:literal, $gradient:expr, $about:literal, fn record($($operand:ident),*);
     inputs: $($input:literal $shape:literal),*; outputs: $($output:literal $formula:literal),*;
     domains: $($domain:expr),*; options: $($option:expr),*) => {
        use super::by_name::of_rows_backward;
        use super::rows_backward::{RowsGradient, VARIANTS, samples as samples_of_rows};
        use crate::element::DType;
        use crate::error::Result;
        use crate::program::{Asked, DeviceProfile, OpCall, Input, Op, Operation, Program, operands};

        impl $Op {
            /// Takes `rows` rows of `n` elements.
            pub fn new(rows: usize, n: usize) -> Self {
                Self { rows: RowsBackward::new($name, $gradient, rows, n) }
            }

            crate::program::variants!(rows.variant);
        }

        operands! {
            impl[] $Op, f32 {
                fn record($($operand: f32),*);
            }
        }

        impl Op<f32> for $Op {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                self.rows.lower(profile)
            }
        }

        pub(super) const INFO: Operation = Operation {
            name: $name,
            about: $about,
            inputs: &[$(Input::new($input, $shape)),*],
            outputs: &[$(($output, $formula)),*],
            domains: &[$($domain),*],
            types: &[DType::F32],
            options: &[$($option),*],
            make: Some(make),
            variants: $Op::variants,
            samples,
            ..Operation::UNDECLARED
        };

        fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
            of_rows_backward(asked, $Op::new(0, 0).rows, |rows| $Op { rows })
        }

        fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
            samples_of_rows(profile, |rows, n| $Op::new(rows, n).variant(variant))
        }
    };
}
pub(super) use rows_gradient_op;

/// Estimated flop for each element.
const FLOP: f64 = 8.0;

impl RowsBackward {
    pub(super) fn new(op: &'static str, of: RowsGradient, rows: usize, n: usize) -> Self {
        Self { op, of, rows, n, variant: "auto".into(), eps: 1e-5 }
    }

    pub(super) fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { op, of, rows, n, .. } = *self;
        let len = elements(op, "dy", &[rows, n])?;
        check_eps(op, self.eps)?;
        let norm = !matches!(of, RowsGradient::Softmax(_));
        let vectors = n.is_multiple_of(4);
        let items = if vectors { n / 4 } else { n } as u64;
        // Two operands stay in registers.
        let policy = policy(profile);
        let policy = RowsPolicy { max: policy.max / 2, wanted: policy.wanted.min(policy.max / 2), ..policy };
        let held = tile(items.max(1), &policy);
        let fits = held.vec4s <= policy.max;
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if fits {
                ("whole", format!("{} threads hold a row of {n}: it is read once", held.lanes))
            } else {
                ("passes", format!("a row of {n} does not fit the registers of {} threads", held.lanes))
            }
        })?;
        let whole = variant.name == "whole";
        if whole && !fits {
            return Err(err!(
                TooLarge,
                "{op}: a row of {n} does not fit the registers of {} threads of {}; use `passes` or `auto`",
                held.lanes,
                profile.name
            ));
        }
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
        if of == RowsGradient::LayerNorm {
            program.operands.push(f32s("dbeta", n, Access::Write));
        }
        program.cost = Cost::of(FLOP * len as f64, &program.operands);
        check_rows(op, &program.operands[0], n, profile)?;
        let what = format_args!("the statistics of {rows} rows");
        profile.check_scratch(op, what, 8 * rows as u64, "use fewer rows at a time")?;
        let (rows, n) = (rows as u64, n as u64);
        let dy = Resource::Operand(if norm { 2 } else { 1 });
        let joined = norm.then(|| program.scratch(8 * rows.max(1)));
        let lanes = if whole { held.lanes } else { policy.workgroup };
        check_steps(op, n as usize, items, lanes, profile)?;
        let workgroup = lanes.max(policy.workgroup);
        let fragment = match of {
            RowsGradient::Softmax(fragment) => fragment,
            RowsGradient::LayerNorm => "nn/layer_norm_backward",
            RowsGradient::RmsNorm => "nn/rms_norm_backward",
        };
        let mut spec = reduction(lanes, workgroup, profile)
            .slot("gradient", Fragment::Library(fragment))
            .flag("VECTORS", vectors)
            .flag("HELD", whole)
            .flag("NORM", norm);
        if whole {
            spec = spec.constant("VEC4S", held.vec4s as u32);
        }
        if norm {
            spec = spec.constant("SLOTS", 4u32);
        }
        for chunk in profile.chunks(rows, 4 * n).filter(|_| n > 0) {
            let kernel = program.kernel(Kernel::library("nn/rows_backward", "rows_backward", spec.clone()));
            let dx = if norm { 3 } else { 2 };
            let mut bindings = [Resource::Operand(0), dy, Resource::Operand(dx)].map(|x| chunk.of(x, 4 * n)).to_vec();
            if let Some(joined) = joined {
                bindings.extend([Binding::operand(1, &program.operands), joined]);
            }
            let params = chunk_params(&chunk, n, self.eps, 0.0);
            program.dispatch(kernel, &params, bindings, Grid::fold(chunk.count.div_ceil(workgroup / lanes)));
        }
        if let Some(joined) = joined {
            let normed = Some((Resource::Operand(0), joined));
            let columns = Columns { rows, n, gradients: dy, normed, factor: 1.0, profile };
            let dbeta = (of == RowsGradient::LayerNorm).then_some(Resource::Operand(5));
            columns.sum(&mut program, dbeta, Some(Resource::Operand(4)));
        }
        Ok(program)
    }
}

/// Lowers the ops that `make` forms for (rows, n), so that every form of the kernels is reached.
pub(super) fn samples<O: Op<f32>>(profile: &DeviceProfile, make: impl Fn(usize, usize) -> O) -> Result<Vec<Program>> {
    // Aligned and not, short rows and long ones, columns of one block and of several.
    let shapes = [(3, 5), (4, 4), (5, 130), (2, 1028), (3000, 12)];
    shapes.into_iter().map(|(rows, n)| make(rows, n).lower(profile)).collect()
}
