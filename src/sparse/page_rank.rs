use super::by_name::{CHECK_EVERY, ITERATIONS};
use super::solver::{self, Common, Phases, SolverBuilder, SolverKernel, common_options};
use super::{Csr, Format, MatrixLayout};
use crate::program::prelude::*;

/// Ranks the nodes of a graph: `x = d (T x + w s) + (1 - d) s`, with damping d, transitions T and restart distribution
/// s.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{Csr, PageRank};
///
/// // 0 links to 1 and 2, 1 to 2, and 2 to 0.
/// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3, 4], vec![1, 2, 2, 0], vec![1.0; 4]);
/// let links = Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values };
/// let gpu = Gpu::new()?;
/// let t = gpu.upload_matrix(&links.transitions()?)?;
/// let x = gpu.alloc::<f32>(3)?;
/// gpu.page_rank(&PageRank::new(t.layout()))?.run(&t, None, &x, |_, _| ())?;
/// let x = x.read()?;
/// assert!(x[2] > x[0] && x[0] > x[1], "{x:?}");
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// A rank is the share of time that a random walk spends at a node. The walk follows a link with probability d, else
/// restarts; from dangling nodes (those without links, w their rank) it always restarts.
/// [`Gpu::page_rank`](crate::Gpu::page_rank) plans it, and [`Solver::run`](crate::Solver) runs it.
///
/// # Shapes
/// T is n x n in any [`Format`]. Its element (i, j) is the share of walks at j that go to i, so a column
/// sums to 1, or to 0 for a dangling node. [`Csr::transitions`] builds it from links. `x` has n elements; its old
/// contents do not matter, and the ranks sum to 1. With [`personalised`](Self::personalised), s has n elements that are
/// not negative and sum to 1; by default s is 1 / n.
///
/// # Convergence
/// Iterations end when the sum of |changes| of all ranks is at most the tolerance.
///
/// # Precision and determinism
/// As [`ConjugateGradient`](super::ConjugateGradient).
///
/// # Cost
/// An iteration is the product and three kernels: 4 vectors read (5 if personalised), one written.
///
/// # Errors
/// As [`ConjugateGradient`](super::ConjugateGradient), and [`InvalidArgument`](ErrorKind::InvalidArgument) for a
/// damping outside 0 to 1.
///
/// # Algorithm
/// S. Brin and L. Page, 1998: `shaders/sparse/power_step.wgsl`, `solver_dots.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    pub(crate) common: Common,
    damping: f32,
    pub(crate) personalised: bool,
}

impl PageRank {
    /// Ranks a graph whose transitions have this layout.
    pub fn new(transitions: MatrixLayout) -> Self {
        let common = Common { absolute: 1e-6, ..Common::new(transitions, 0.0) };
        Self { common, damping: 0.85, personalised: false }
    }

    /// Sets the probability that a walk follows a link; the default is 0.85.
    #[must_use]
    pub fn damping(mut self, damping: f32) -> Self {
        self.damping = damping;
        self
    }

    /// Takes the restart distribution s from the caller: the argument `start` of [`Solver::run`](crate::Solver). By
    /// default it is uniform.
    #[must_use]
    pub fn personalised(mut self) -> Self {
        self.personalised = true;
        self
    }

    /// Sets the sum of changes at which to stop; the default is 1e-6.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f32) -> Self {
        self.common.absolute = tolerance;
        self
    }

    common_options!();

    /// Operands after the lists of the matrix: `state`, `partials`, `start` if personalised, `x`, `q`.
    pub(crate) fn phases(&self, profile: &DeviceProfile) -> Result<Phases> {
        let damping = self.damping;
        if !(0.0..=1.0).contains(&damping) {
            return Err(err!(InvalidArgument, "page-rank: the damping is {damping:?}; it must lie between 0 and 1"));
        }
        let mut base = SolverBuilder::new("page-rank", &self.common, profile)?.damping(damping);
        let personal = self.personalised.then(|| base.vector("start", Access::Read));
        let [x, q] = ["x", "q"].map(|name| base.vector(name, Access::ReadWrite));
        let spec = || Spec::new().flag("RANK", true).flag("PERSONAL", personal.is_some());
        let kernel = |entry| SolverKernel::new("sparse/power_step", entry, spec());
        let mut first = base.clone();
        let mut bindings = vec![x];
        let mut begin = spec().flag("BEGIN", true).constant("X_BINDING", 1u32);
        if let Some(personal) = personal {
            bindings.push(personal);
            begin = begin.constant("START_BINDING", 2u32);
        }
        first.elements("sparse/power_step", "power_step_start", begin, bindings);
        let (n, lists) = (base.n, base.lists);
        let steps = base.batch(|builder| {
            builder.product(x, q)?;
            builder.dots(x, q);
            let step = kernel("power_step").passes(if personal.is_some() { 4.0 } else { 3.0 });
            let step = if personal.is_some() { step.last("START_BINDING") } else { step };
            builder.kernel(step, &[q, x], personal);
            builder.kernel(kernel("power_step_judge").alone(), &[], None);
            Ok(())
        })?;
        Ok(Phases { start: first.program, again: None, steps, n, lists })
    }
}

impl Csr {
    /// Builds the transitions for [`PageRank`] from links: entry (i, j) is a link from i to j with a positive weight.
    /// The result is the transpose, with columns scaled to sum to 1.
    ///
    /// # Errors
    /// - [`Shape`](ErrorKind::Shape): the matrix is not square, or not valid.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): a value that is negative or not finite.
    pub fn transitions(&self) -> Result<Self> {
        self.validate()?;
        let Self { rows, cols, .. } = *self;
        if rows != cols {
            return Err(err!(Shape, "transitions: the matrix of links is {rows} x {cols}; it must be square"));
        }
        let mut links = self.try_clone("transitions")?;
        for row in 0..rows {
            let range = self.row_ptrs[row] as usize..self.row_ptrs[row + 1] as usize;
            let values = &mut links.values[range];
            if let Some(value) = values.iter().find(|value| !value.is_finite() || **value < 0.0) {
                return Err(err!(
                    InvalidArgument,
                    "transitions: a link from row {row} has the value {value:?}; values must be finite and not negative"
                ));
            }
            let total: f64 = values.iter().map(|&value| f64::from(value)).sum();
            for value in values.iter_mut().filter(|_| total > 0.0) {
                *value = (f64::from(*value) / total) as f32;
            }
        }
        links.transposed()
    }
}

impl PageRank {
    pub(crate) fn by_name(matrix: MatrixLayout, settings: &Settings, variant: &str) -> Result<Self> {
        let method = Self::new(matrix).damping(settings.number("damping")?).tolerance(settings.number("tolerance")?);
        Ok(Self { common: method.common.by_name(settings, variant)?, ..method })
    }
}

pub(super) const INFO: Operation = Operation {
    name: "page-rank",
    about: "the ranks of the nodes of a graph",
    matrix: true,
    inputs: &[Input::optional("start", "(rows)")],
    outputs: &[("ranks", "(rows)")],
    types: &[DType::F32],
    options: &[Setting::number("damping", "0.85"), Setting::number("tolerance", "1e-6"), ITERATIONS, CHECK_EVERY],
    variants: || solver::VARIANTS,
    samples,
    solver: true,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, _: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for personalised in [false, true] {
        let rank = PageRank::new(solver::sample(Format::Csr)).when(personalised, |op| op.personalised()).check_every(1);
        let Phases { start, steps, .. } = rank.phases(profile)?;
        programs.extend([start, steps]);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
