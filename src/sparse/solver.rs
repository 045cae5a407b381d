//! The code that solvers share: options, programs of many iterations, and results.
//!
//! A solver is not an op: it repeats ops until the device reports convergence. Solvers are listed in
//! [`SOLVERS`](super::SOLVERS), so that tests validate and translate their kernels.

mod diagonal;

use super::by_name::{CHECK_EVERY, ITERATIONS};
use super::{Format, MatrixLayout, Spmv};
use crate::program::prelude::*;
use std::fmt;

/// Why a solver stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The tolerance is met.
    Converged,
    /// The maximum number of iterations is reached.
    Limit,
    /// Rounding keeps the residual above the tolerance. Raise the tolerance, or scale the system.
    Stagnated,
    /// The matrix is not positive definite: `p^T A p` has this value.
    NotPositiveDefinite(f32),
    /// A number is infinite or NaN: an input, or a square above the range of f32.
    NotFinite,
    /// The diagonal element of this row, the first such, is not positive. The matrix is not positive definite, and
    /// Jacobi cannot use it.
    Diagonal(usize),
    /// Squares are too small for f32. Scale the system.
    TooSmall,
    /// The product with the matrix is 0: the vector lies in its null space, or is 0.
    Vanished,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Limit => "not converged: the maximum number of iterations is reached",
            Self::Stagnated => "not converged: f32 rounding keeps the residual above the tolerance",
            Self::NotPositiveDefinite(curvature) => {
                return write!(f, "the matrix is not positive definite: p^T A p = {curvature:e}");
            }
            Self::NotFinite => "a number is infinite or NaN",
            Self::Diagonal(row) => {
                return write!(
                    f,
                    "the diagonal element of row {row} (from 0) is not positive, so Jacobi cannot use it; the \
                     matrix is not positive definite"
                );
            }
            Self::TooSmall => "not converged: squares are too small for f32; scale the system",
            Self::Vanished => "the product with the matrix is 0: start from another vector",
        })
    }
}

/// The result of a solver.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Why it stopped.
    pub outcome: Outcome,
    /// Number of iterations.
    pub iterations: usize,
    /// The final residual, as the solver defines it.
    pub residual: f64,
    /// The residual before each iteration and after the last. [`PowerIteration`](super::PowerIteration) and
    /// [`PageRank`](super::PageRank) have none before the first.
    pub history: Vec<f64>,
}

impl fmt::Display for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} iterations, residual {:.3e}", self.outcome, self.iterations, self.residual)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Common {
    pub(crate) matrix: MatrixLayout,
    pub(crate) tolerance: f32,
    pub(crate) absolute: f32,
    pub(crate) iterations: usize,
    pub(crate) check_every: usize,
    pub(crate) variant: String,
    pub(crate) policy: Option<SolverPolicy>,
}

impl Common {
    pub(crate) fn new(matrix: MatrixLayout, tolerance: f32) -> Self {
        Self {
            matrix,
            tolerance,
            absolute: 0.0,
            iterations: 1000,
            check_every: 16,
            variant: "auto".into(),
            policy: None,
        }
    }

    pub(crate) fn by_name(self, settings: &Settings, variant: &str) -> Result<Self> {
        let (iterations, check_every) = (settings.number(ITERATIONS.name)?, settings.number(CHECK_EVERY.name)?);
        Ok(Self { iterations, check_every, variant: variant.into(), ..self })
    }
}

macro_rules! common_options {
    () => {
        /// Sets the maximum number of iterations; the default is 1000.
        #[must_use]
        pub fn iterations(mut self, iterations: usize) -> Self {
            self.common.iterations = iterations;
            self
        }

        /// Sets how many iterations are submitted together; the default is 16. The host checks the residual of a batch
        /// while the device runs the next. Iterations submitted after convergence change nothing.
        #[must_use]
        pub fn check_every(mut self, iterations: usize) -> Self {
            self.common.check_every = iterations;
            self
        }

        /// Selects the variant of the product, see [`Spmv::variant`](crate::Spmv::variant), without atomics.
        #[must_use]
        pub fn variant(mut self, name: &str) -> Self {
            name.clone_into(&mut self.common.variant);
            self
        }

        /// For tests and tuning: sets the threads of a workgroup, the elements of a thread, and the maximum number of
        /// workgroups.
        #[doc(hidden)]
        #[must_use]
        pub fn tile(mut self, workgroup_size: u32, items: u32, max_parts: u32) -> Self {
            self.common.policy = Some(solver::SolverPolicy { workgroup_size, items, max_parts });
            self
        }
    };
}
pub(crate) use common_options;

kernel_params! {
    struct SolverParams {
        n: u32,
        parts: u32,
        slots: u32,
        limit: u32,
        relative: f32,
        absolute: f32,
        damping: f32,
    }
}

/// Constants that depend on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SolverPolicy {
    pub(crate) workgroup_size: u32,
    /// Elements of a thread before more workgroups start.
    pub(crate) items: u32,
    /// The maximum number of workgroups. Each adds up the partial sums of all.
    pub(crate) max_parts: u32,
}

fn policy(profile: &DeviceProfile) -> SolverPolicy {
    if profile.quirks.serial_workgroups {
        // Barriers are slow on software drivers.
        SolverPolicy { workgroup_size: 32, items: 256, max_parts: 32 }
    } else {
        // By design, not measured: four loads of each vector in flight, and enough threads for a whole card.
        SolverPolicy { workgroup_size: 256, items: 4, max_parts: 1024 }
    }
}

/// The smallest relative tolerance. f32 rarely resolves less, and its square leaves the range of f32.
pub(crate) const FINEST: f32 = 1e-9;

/// Words of the state before the residuals.
pub(crate) const HEAD: usize = 16;

/// The maximum number of iterations in a batch: each is several dispatches.
const MAX_AT_ONCE: usize = 1 << 12;

/// The programs of a solver, with the same operands: one starts it, one runs a batch of iterations.
#[derive(Debug)]
pub(crate) struct Phases {
    pub(crate) start: Program,
    /// Restarts from `x`, with the preparations of `start`.
    pub(crate) again: Option<Program>,
    pub(crate) steps: Program,
    pub(crate) n: usize,
    /// Number of operands that are lists of the matrix. State, partial sums, the caller's vectors and others follow.
    pub(crate) lists: usize,
}

/// A program under construction.
#[derive(Clone)]
pub(crate) struct SolverBuilder<'a> {
    pub(crate) program: Program,
    pub(crate) n: usize,
    common: &'a Common,
    profile: &'a DeviceProfile,
    policy: SolverPolicy,
    damping: f32,
    /// Whether tolerances apply to squares.
    squared: bool,
    pub(crate) lists: usize,
    parts: u32,
    shared: Vec<usize>,
    /// Where kernels store partial sums.
    partials: Binding,
    state: Binding,
}

impl<'a> SolverBuilder<'a> {
    /// Starts with the lists of the matrix, the state and the partial sums as operands.
    pub(crate) fn new(op: &'static str, common: &'a Common, profile: &'a DeviceProfile) -> Result<Self> {
        let Common { matrix, tolerance, absolute, iterations, check_every, .. } = common;
        let MatrixLayout { rows, cols, .. } = *matrix;
        let n = index_u32(op, "rows", rows)?;
        if rows != cols {
            return Err(err!(Shape, "{op}: A is {rows} x {cols}; it must be square"));
        }
        for (what, value) in [("tolerance", tolerance), ("absolute tolerance", absolute)] {
            if !value.is_finite() || *value < 0.0 {
                return Err(err!(InvalidArgument, "{op}: the {what} is {value:?}; it must be finite and not negative"));
            }
        }
        if *iterations == 0 || u32::try_from(*iterations).is_err() {
            return Err(err!(InvalidArgument, "{op}: {iterations} iterations; use 1 to 2^32 - 1"));
        }
        if !(1..=MAX_AT_ONCE).contains(check_every) {
            return Err(err!(InvalidArgument, "{op}: {check_every} iterations between checks; use 1 to {MAX_AT_ONCE}"));
        }
        let policy = common.policy.unwrap_or_else(|| policy(profile));
        let parts = n.div_ceil(policy.workgroup_size * policy.items).clamp(1, policy.max_parts);
        let mut program = Program::new(op, Decision::policy("fused", ""));
        // The product must be deterministic: no variant goes without the order by row.
        program.operands = matrix.product_lists(op, &Spmv::variants()[0])?;
        let lists = program.operands.len();
        let none = Binding { resource: Resource::Operand(0), offset: 0, size: 0 };
        let mut builder = Self {
            program,
            n: rows,
            common,
            profile,
            policy,
            damping: 0.0,
            squared: false,
            lists,
            parts,
            shared: Vec::new(),
            partials: none,
            state: none,
        };
        builder.state = builder.operand("state", DType::U32, HEAD + check_every, Access::ReadWrite);
        builder.partials = builder.operand("partials", DType::F32, 8 * parts as usize, Access::ReadWrite);
        Ok(builder)
    }

    pub(crate) fn damping(self, damping: f32) -> Self {
        Self { damping, ..self }
    }

    pub(crate) fn squared(self) -> Self {
        Self { squared: true, ..self }
    }

    fn operand(&mut self, name: &'static str, dtype: DType, len: usize, access: Access) -> Binding {
        self.program.operands.push(Operand { name, dtype, len, access });
        Binding::operand(self.program.operands.len() - 1, &self.program.operands)
    }

    /// Adds an operand with n elements.
    pub(crate) fn vector(&mut self, name: &'static str, access: Access) -> Binding {
        self.operand(name, DType::F32, self.n, access)
    }

    pub(crate) fn workgroup_size(&self) -> u32 {
        self.policy.workgroup_size
    }

    fn spec(&self) -> Spec {
        Spec::new().constant("WORKGROUP_SIZE", self.workgroup_size())
    }

    pub(crate) fn product(&mut self, x: Binding, y: Binding) -> Result<()> {
        let lists: Vec<_> = (0..self.lists).map(Resource::Operand).collect();
        self.product_of(self.common.matrix, &lists, x, y)
    }

    fn product_of(&mut self, matrix: MatrixLayout, lists: &[Resource], x: Binding, y: Binding) -> Result<()> {
        let spmv = Spmv::new(matrix).deterministic().variant(&self.common.variant);
        let product = Op::<f32>::lower(&spmv, self.profile).map_err(|e| {
            let op = self.program.op;
            e.context(&format!("{op}: the product, which must be deterministic"))
        })?;
        self.program.cost.flop += product.cost.flop;
        self.program.cost.bytes += product.cost.bytes;
        let why = format!("the product by {}: {}", product.variant(), product.decision.why);
        self.program.decision = Decision { why, by: product.decision.by, ..self.program.decision };
        let operands: Vec<_> =
            lists.iter().copied().chain([x.resource, y.resource]).map(|resource| (resource, 0)).collect();
        self.program.append_at(product, &operands, &mut self.shared);
        Ok(())
    }

    /// Appends a kernel over all elements, or of one workgroup. Bindings: partial sums, state, `vectors`, `last`.
    pub(crate) fn kernel(&mut self, kernel: SolverKernel, vectors: &[Binding], last: Option<Binding>) {
        let SolverKernel { file, entry, spec, state, alone, .. } = kernel;
        let mut bindings = vec![self.partials];
        if state {
            bindings.push(self.state);
        }
        bindings.extend(vectors);
        let mut spec = spec.constant("WORKGROUP_SIZE", self.workgroup_size());
        if let (Some(last), Some(name)) = (last, kernel.last) {
            bindings.push(last);
            spec = spec.constant(name, bindings.len() as u32);
        }
        let index = self.program.kernel(Kernel::library(file, entry, spec));
        let parts = if alone { 1 } else { self.parts };
        let params = self.params();
        self.program.dispatch(index, &params, bindings, Grid::fold(u64::from(parts)));
        self.program.cost.bytes += kernel.passes * 4.0 * self.n as f64;
        self.program.cost.flop += kernel.passes * self.n as f64;
    }

    /// Appends a kernel with a thread for each element.
    pub(crate) fn elements(&mut self, file: &'static str, entry: &'static str, spec: Spec, bindings: Vec<Binding>) {
        let size = self.workgroup_size();
        let groups = (self.n as u64).div_ceil(u64::from(size)).max(1);
        let index = self.program.kernel(Kernel::library(file, entry, spec.constant("WORKGROUP_SIZE", size)));
        let params = self.params();
        self.program.dispatch(index, &params, bindings, Grid::fold(groups));
    }

    fn params(&self) -> SolverParams {
        let Common { tolerance, absolute, iterations, check_every, .. } = self.common;
        SolverParams {
            n: self.n as u32,
            parts: self.parts,
            slots: *check_every as u32,
            limit: *iterations as u32,
            relative: if self.squared { tolerance.max(FINEST).powi(2) } else { *tolerance },
            absolute: if self.squared { absolute.powi(2) } else { *absolute },
            damping: self.damping,
        }
    }

    /// Appends the dot products of x and y = A x that start an iteration.
    pub(crate) fn dots(&mut self, x: Binding, y: Binding) {
        let kernel = SolverKernel::new("sparse/solver_dots", "solver_dots", Spec::new()).passes(2.0);
        self.kernel(kernel, &[x, y], None);
    }

    /// Returns the program of a batch of iterations, each appended by `one`.
    pub(crate) fn batch(mut self, mut one: impl FnMut(&mut Self) -> Result<()>) -> Result<Program> {
        self.program.cost = Cost::default();
        for _ in 0..self.common.check_every {
            one(&mut self)?;
        }
        Ok(self.program)
    }
}

/// A kernel that reads or writes the sums of a solver.
pub(crate) struct SolverKernel {
    file: &'static str,
    entry: &'static str,
    spec: Spec,
    state: bool,
    alone: bool,
    passes: f64,
    /// The constant that names the last binding.
    last: Option<&'static str>,
}

impl SolverKernel {
    pub(crate) fn new(file: &'static str, entry: &'static str, spec: Spec) -> Self {
        Self { file, entry, spec, state: true, alone: false, passes: 0.0, last: None }
    }

    pub(crate) fn stateless(self) -> Self {
        Self { state: false, ..self }
    }

    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Reads and writes this many vectors.
    pub(crate) fn passes(self, passes: f64) -> Self {
        Self { passes, ..self }
    }

    pub(crate) fn last(self, constant: &'static str) -> Self {
        Self { last: Some(constant), ..self }
    }
}

/// The state of a solver, read back from the device.
#[derive(Debug, Clone)]
pub(crate) struct SolverState {
    /// `None` while it runs.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) iterations: usize,
    pub(crate) residual: f32,
    pub(crate) scale: f32,
    pub(crate) value: f32,
}

impl SolverState {
    pub(crate) fn of(words: &[u32], n: usize) -> Self {
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let number = |i: usize| f32::from_bits(word(i));
        let outcome = match word(0) {
            0 => None,
            1 => Some(Outcome::Converged),
            2 => Some(Outcome::Limit),
            3 => Some(Outcome::NotPositiveDefinite(number(4))),
            5 => Some(Outcome::Diagonal(n.saturating_sub(word(5) as usize))),
            6 => Some(Outcome::Vanished),
            7 => Some(Outcome::TooSmall),
            _ => Some(Outcome::NotFinite),
        };
        Self { outcome, iterations: word(1) as usize, residual: number(2), scale: number(3), value: number(4) }
    }
}

pub(crate) const VARIANTS: &[Variant] =
    &[Variant::portable("fused", "products, then sums and vector updates, several in one pass")];

/// Matrices that reach every form of a solver's kernels. Only the diagonal depends on the format.
pub(crate) fn sample_matrices() -> impl Iterator<Item = MatrixLayout> {
    let formats = [
        Format::Csr,
        Format::Coo { sorted: true },
        Format::Jds,
        Format::Hybrid { width: 4, list: 5000, sorted: true },
        Format::Sell { slice: 32, places: 32_000 },
    ];
    formats.into_iter().map(sample)
}

pub(crate) fn sample(format: Format) -> MatrixLayout {
    MatrixLayout { rows: 1000, cols: 1000, entries: 3000, longest: 9, format, values: DType::F32 }
}
