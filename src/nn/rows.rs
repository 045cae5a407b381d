use crate::program::fit::LOOP_ROUNDS;
use crate::program::prelude::*;
pub(super) use crate::program::rows::{RowTile, RowsParams, RowsPolicy, check_rows, policy, reduction, tile};

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("whole", "a row in the registers of at most one workgroup: one read, one write"),
    Variant::portable("parts", "statistics of parts of a row, joined, then applied: two reads, one write"),
];

/// Estimated flop for each element.
const FLOP: f64 = 5.0;

/// Writes the options of all ops on rows.
macro_rules! rows_methods {
    () => {
        crate::program::variants!(rows.variant);

        /// Sets how many threads share a row, or a part of one: a power of two. The default depends on the device and
        /// on the length of rows.
        #[must_use]
        pub fn lanes(mut self, lanes: u32) -> Self {
            self.rows.lanes = Some(lanes);
            self
        }
    };
}
pub(super) use rows_methods;

/// Writes the option that norms and their gradients share.
macro_rules! norm_methods {
    () => {
        /// Sets the number added under the square root. The default is 1e-5.
        #[must_use]
        pub fn eps(mut self, eps: f32) -> Self {
            self.rows.eps = eps;
            self
        }

        /// Returns the epsilon, which the functions of [`reference`](crate::reference) take.
        pub fn epsilon(&self) -> f32 {
            self.rows.eps
        }
    };
}
pub(super) use norm_methods;

/// Writes the methods and the declaration of softmax or its logarithm.
macro_rules! softmax_op {
    ($Op:ident, $name:literal, $file:literal, $about:literal) => {
        use super::by_name::{FLOATS, LANES, of_rows};
        use super::rows::{VARIANTS, rows_methods, samples as samples_of_rows};
        use crate::element::{DType, Element};
        use crate::error::Result;
        use crate::program::{
            Asked, Comparison, DeviceProfile, OpCall, Input, Operation, Program, lowered_as, operands,
        };
        use half::f16;

        impl $Op {
            /// Takes `rows` rows of `n` elements.
            pub fn new(rows: usize, n: usize) -> Self {
                Self { rows: Rows::new($name, $file, rows, n, f32::NEG_INFINITY) }
            }

            rows_methods!();

            fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
                self.rows.lower(dtype, &[], profile)
            }
        }

        operands! {
            impl[T: Element,] $Op, T {
                fn record(x: T, output: T);
            }
        }

        lowered_as!($Op: f32, f16);

        pub(super) const INFO: Operation = Operation {
            name: $name,
            about: $about,
            inputs: &[Input::new("x", "(..., n)")],
            outputs: &[("output", "as x")],
            types: &FLOATS,
            options: &[LANES],
            make: Some(make),
            variants: $Op::variants,
            samples,
            comparison: Some(Comparison::Sums),
            ..Operation::UNDECLARED
        };

        fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
            of_rows(asked, $Op::new(0, 0).rows, |rows| $Op { rows })
        }

        fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
            samples_of_rows(profile, |rows, n| vec![$Op::new(rows, n).variant(variant)])
        }
    };
}
pub(super) use softmax_op;

/// Writes the methods and the declaration of a norm.
macro_rules! norm_op {
    ($Op:ident, $name:literal, $file:literal, $about:literal) => {
        use super::by_name::{EPS, FLOATS, LANES, of_norm};
        use super::rows::{VARIANTS, norm_methods, rows_methods, samples as samples_of_rows};
        use crate::element::{DType, Element};
        use crate::error::Result;
        use crate::program::{
            Asked, Comparison, DeviceProfile, OpCall, Input, Operation, Program, lowered_as, operands,
        };
        use half::f16;

        impl $Op {
            /// Takes `rows` rows of `n` elements. The default epsilon is 1e-5.
            pub fn new(rows: usize, n: usize) -> Self {
                let rows = Rows::new($name, $file, rows, n, 0.0);
                Self { rows: Rows { eps: 1e-5, ..rows }, beta: false }
            }

            /// Adds a shift for each column: an operand `beta` of n elements, which plans take by `with_beta`.
            #[must_use]
            pub fn with_beta(mut self) -> Self {
                self.beta = true;
                self
            }

            norm_methods!();
            rows_methods!();

            fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
                self.rows.lower(dtype, if self.beta { &["gamma", "beta"] } else { &["gamma"] }, profile)
            }
        }

        operands! {
            impl[T: Element,] $Op, T {
                fn record(x: T, gamma: T, output: T);
                /// Takes the shift of each column.
                optional with_beta(beta: T);
            }
        }

        lowered_as!($Op: f32, f16);

        pub(super) const INFO: Operation = Operation {
            name: $name,
            about: $about,
            inputs: &[Input::new("x", "(..., n)"), Input::new("gamma", "(n)"), Input::optional("beta", "(n)")],
            outputs: &[("output", "as x")],
            types: &FLOATS,
            options: &[EPS, LANES],
            make: Some(make),
            variants: $Op::variants,
            samples,
            comparison: Some(Comparison::Sums),
            ..Operation::UNDECLARED
        };

        fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
            of_norm(asked, $Op::new(0, 0).rows, |rows, beta| $Op { rows, beta })
        }

        fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
            samples_of_rows(profile, |rows, n| {
                let op = $Op::new(rows, n).variant(variant);
                vec![op.clone(), op.with_beta()]
            })
        }
    };
}
pub(super) use norm_op;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) op: &'static str,
    /// The shader file of its formulas.
    pub(super) fragment: &'static str,
    pub(super) rows: usize,
    pub(super) n: usize,
    pub(super) variant: String,
    /// The number of threads that share a row, if the caller chose it.
    pub(super) lanes: Option<u32>,
    pub(super) eps: f32,
    /// The value of elements past the end of a row.
    pub(super) pad: f32,
}

impl Rows {
    pub(super) fn new(op: &'static str, fragment: &'static str, rows: usize, n: usize, pad: f32) -> Self {
        Self { op, fragment, rows, n, variant: "auto".into(), lanes: None, eps: 0.0, pad }
    }

    pub(super) fn lower(&self, dtype: DType, extra: &[&'static str], profile: &DeviceProfile) -> Result<Program> {
        let Self { op, rows, n, .. } = *self;
        let len = elements(op, "x", &[rows, n])?;
        check_eps(op, self.eps)?;
        let vectors = n.is_multiple_of(4);
        // f16 rows that begin inside a word may reach into one word more.
        let slack = if dtype == DType::F16 && !vectors { 2 } else { 0 };
        let policy = policy(profile);
        let vec4s = (n as u64).saturating_add(slack).div_ceil(4).max(1);
        let whole = match self.lanes {
            None => tile(vec4s, &policy),
            Some(lanes) => {
                let max = u64::from(profile.limits.max_invocations);
                if !lanes.is_power_of_two() || u64::from(lanes) > max {
                    return Err(err!(
                        InvalidArgument,
                        "{op}: lanes is {lanes}; it must be a power of two up to {max}, the largest workgroup of {}",
                        profile.name
                    ));
                }
                RowTile { lanes: lanes.into(), vec4s: vec4s.div_ceil(lanes.into()) }
            }
        };
        let fits = whole.vec4s <= policy.max;
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if fits {
                ("whole", format!("{} threads hold a row of {n}: it is read once", whole.lanes))
            } else {
                ("parts", format!("a row of {n} does not fit the registers of {} threads", whole.lanes))
            }
        })?;
        let is_whole = variant.name == "whole";
        if is_whole && !fits {
            return Err(err!(
                TooLarge,
                "{op}: a row of {n} does not fit the registers of {} threads of {}, {} elements; use `parts` or `auto`",
                whole.lanes,
                profile.name,
                4 * whole.lanes * policy.max
            ));
        }
        let mut program = Program::new(op, decision);
        program.operands.push(Operand { name: "x", dtype, len, access: Access::Read });
        for &name in extra {
            program.operands.push(Operand { name, dtype, len: n, access: Access::Read });
        }
        program.operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        program.cost = Cost::of(FLOP * len as f64, &program.operands);
        check_rows(op, &program.operands[0], n, profile)?;
        if len == 0 {
            return Ok(program);
        }
        let work = RowsLowering { rows: self, dtype, extra: extra.len(), vectors, slack, profile };
        if is_whole {
            let params = work.params(1, n as u64);
            work.each_chunk(&mut program, whole, RowStep::Whole, params, &[]);
        } else {
            work.in_parts(&mut program, &policy)?;
        }
        Ok(program)
    }
}

/// Fails if three passes of `lanes` threads over a row take more steps than some driver runs.
pub(super) fn check_steps(op: &str, n: usize, items: u64, lanes: u64, profile: &DeviceProfile) -> Result<()> {
    let steps = 3 * items.div_ceil(lanes);
    if steps <= u64::from(LOOP_ROUNDS) {
        return Ok(());
    }
    Err(err!(
        TooLarge,
        "{op}: a row of {n} takes {lanes} threads {steps} steps on {}; every driver runs at most {}; use shorter rows",
        profile.name,
        LOOP_ROUNDS
    ))
}

pub(super) fn chunk_params(chunk: &BoundChunk, n: u64, eps: f32, pad: f32) -> RowsParams {
    RowsParams {
        rows: chunk.count as u32,
        n: n as u32,
        parts: 1,
        part_len: n as u32,
        origin: (chunk.span(4 * n).before / 4) as u32,
        first: chunk.first as u32,
        eps,
        pad,
    }
}

/// Rejects a negative, infinite or NaN epsilon.
pub(super) fn check_eps(op: &str, eps: f32) -> Result<()> {
    if eps >= 0.0 && eps.is_finite() {
        return Ok(());
    }
    Err(err!(InvalidArgument, "{op}: eps is {eps:?}; it must be a finite number that is not negative, such as 1e-5"))
}

/// What a kernel does with a row or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowStep {
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
            // The lanes of a row are a workgroup.
            Some(asked @ 64..) => lanes.max(asked.into()),
            _ => lanes.max(policy(self.profile).workgroup),
        }
    }

    fn reduction(&self, lanes: u64) -> Spec {
        reduction(lanes, self.workgroup(lanes), self.profile).slot("normalizer", Fragment::Library(self.rows.fragment))
    }

    fn kernel(&self, program: &mut Program, tile: RowTile, parts: u64, step: RowStep) -> usize {
        let spans = self.workgroup(tile.lanes) / tile.lanes;
        let n = self.rows.n as u64;
        let whole = self.vectors
            && n == parts * tile.elements()
            && (self.rows.rows as u64 * parts).is_multiple_of(spans)
            && self.chunks().count() == 1;
        let applied = step != RowStep::Statistics;
        let output = 2 + self.extra as u32;
        let mut spec = self
            .reduction(tile.lanes)
            .slot("element", element_fragment(self.dtype))
            .constant("VEC4S", tile.vec4s as u32)
            .flag("HALVES", self.dtype == DType::F16)
            .flag("VECTORS", self.vectors)
            .flag("WHOLE", whole)
            .flag("STATISTICS", !applied)
            .flag("JOINED", step == RowStep::Apply);
        if applied {
            spec = spec.constant("OUTPUT", output).flag("SCALED", self.extra > 0).flag("SHIFTED", self.extra > 1);
        }
        if step == RowStep::Apply {
            // There is nothing to reduce.
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

    fn each_chunk(&self, program: &mut Program, tile: RowTile, step: RowStep, params: RowsParams, more: &[Binding]) {
        let kernel = self.kernel(program, tile, params.parts.into(), step);
        let spans = self.workgroup(tile.lanes) / tile.lanes;
        let (row_bytes, size) = (self.row_bytes(), self.dtype.size() as u64);
        for chunk in self.chunks() {
            let part = |operand| chunk.of(Resource::Operand(operand), row_bytes);
            let mut bindings = vec![part(0)];
            if step != RowStep::Statistics {
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

    /// Computes the statistics of parts, joins them and applies them.
    fn in_parts(&self, program: &mut Program, policy: &RowsPolicy) -> Result<()> {
        let (rows, n) = (self.rows.rows as u64, self.rows.n as u64);
        let lanes = self.rows.lanes.map_or(policy.workgroup, u64::from);
        let tile = RowTile { lanes, vec4s: policy.wanted };
        let part_len = tile.elements() - self.slack;
        let parts = n.div_ceil(part_len);
        let params = self.params(parts, part_len);
        let (bytes, what) = (rows * parts * 8, format_args!("the statistics of {rows} rows in {parts} parts"));
        self.profile.check_scratch(self.rows.op, what, bytes, "use fewer rows at a time")?;
        let statistics = program.scratch(bytes);
        let joined = program.scratch(rows * 8);
        self.each_chunk(program, tile, RowStep::Statistics, params, &[statistics]);
        let lanes = self.workgroup(lanes);
        let join = Kernel::library("nn/rows_join", "rows_join", self.reduction(lanes));
        let join = program.kernel(join);
        program.dispatch(join, &params, vec![statistics, joined], Grid::fold(rows));
        self.each_chunk(program, tile, RowStep::Apply, params, &[joined]);
        Ok(())
    }
}

/// Lowers the ops that `make` forms for (rows, n), so that every form of the kernels is reached.
pub(super) fn samples<O: Op<f32> + Op<f16>>(
    profile: &DeviceProfile, make: impl Fn(usize, usize) -> Vec<O>,
) -> Result<Vec<Program>> {
    // Aligned and not, short rows and long ones, full registers and not.
    let shapes = [(3, 5), (256, 4), (7, 1000), (2, 1001), (1, 4096), (5, 1028)];
    let ops = shapes.into_iter().flat_map(|(rows, n)| make(rows, n));
    ops.flat_map(|op| [Op::<f32>::lower(&op, profile), Op::<f16>::lower(&op, profile)]).collect()
}

#[cfg(test)]
mod tests;
