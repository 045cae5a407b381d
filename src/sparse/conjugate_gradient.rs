use super::by_name::{CHECK_EVERY, ITERATIONS, TOLERANCE};
use super::solver::{self, Common, Phases, SolverBuilder, SolverKernel, common_options};
use super::{Format, MatrixLayout};
use crate::program::prelude::*;

/// An approximate inverse of the matrix, by which [`ConjugateGradient`] multiplies residuals to take fewer iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preconditioner {
    /// The identity: no preconditioner.
    None,
    /// `1 / A[i, i]`, the inverse of the diagonal, whose elements must be positive. It helps where they differ much.
    Jacobi,
}

/// Solves `A x = b` for a symmetric positive definite A by conjugate gradients.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{ConjugateGradient, Csr, Outcome, Preconditioner};
///
/// let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0]);
/// let gpu = Gpu::new()?;
/// let a = gpu.upload_matrix(&Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values })?;
/// let (b, x) = (gpu.upload(&[1.0f32, 2.0])?, gpu.alloc_zeroed::<f32>(2)?);
/// let cg = ConjugateGradient::new(a.layout()).preconditioner(Preconditioner::Jacobi);
/// let solution = gpu.conjugate_gradient(&cg)?.solve(&a, &b, &x, |_, _| ())?;
/// assert_eq!(solution.outcome, Outcome::Converged);
/// let x = x.read()?;
/// assert!((x[0] - 1.0 / 11.0).abs() < 1e-5 && (x[1] - 7.0 / 11.0).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Gpu::conjugate_gradient`](crate::Gpu::conjugate_gradient) plans it, and [`Solver::solve`](crate::Solver) runs it.
///
/// # Shapes
/// A is n x n in any [`Format`]; `b` and `x` have n elements. `x` holds the initial guess, then the
/// solution. Symmetry is not checked; without it the result is meaningless.
///
/// # Convergence
/// Iterations end when `|r| <= max(tolerance |b|, absolute)`, r the recursive residual, or after
/// [`iterations`](Self::iterations). A tolerance below 1e-9 counts as 1e-9. The residual is then computed anew as
/// `b - A x`. If rounding has spoilt it, iterations restart from `x` as long as that helps, then end with
/// [`Outcome::Stagnated`](super::Outcome::Stagnated). If `p^T A p` is not positive, the matrix is not positive
/// definite, and `x` keeps its value from before that step. With `b` = 0 the solution is 0.
/// [`Solution::residual`](super::Solution::residual) is `|b - A x| / |b|`, computed at the end.
///
/// # Precision and determinism
/// f32 throughout. The squares of norms must lie in the range of f32: elements between 1e-9 and 1e15 are safe. The same
/// device and inputs give the same bits; variants of the product with atomics are rejected.
///
/// # Cost
/// An iteration is the product and three kernels: 10 vectors read and 3 written (with Jacobi, 13 read). Dot products
/// and step lengths stay on the device. The solver allocates up to five vectors.
///
/// # Variants
/// `fused`. [`variant`](Self::variant) selects the variant of the product, see [`Spmv`](crate::Spmv).
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): A is not square.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a negative or infinite tolerance, 0 iterations, or more
///   than 4096 between checks.
/// - As [`Spmv`](crate::Spmv) for the product.
///
/// # Algorithm
/// M. R. Hestenes and E. Stiefel, 1952: `shaders/sparse/cg_start.wgsl`, `cg_update.wgsl`, `cg_direction.wgsl`,
/// `solver_dots.wgsl`, `diagonal.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConjugateGradient {
    pub(crate) common: Common,
    preconditioner: Preconditioner,
}

impl ConjugateGradient {
    /// Returns whether a residual, relative to the norm of `b`, meets the tolerance but for rounding.
    pub(crate) fn meets(&self, residual: f64, norm: f64) -> bool {
        let Common { tolerance, absolute, .. } = self.common;
        let wanted = f64::from(tolerance.max(solver::FINEST)).max(f64::from(absolute) / norm);
        residual <= 1.001 * wanted
    }

    /// Solves for a matrix of this layout.
    pub fn new(matrix: MatrixLayout) -> Self {
        Self { common: Common::new(matrix, 1e-5), preconditioner: Preconditioner::None }
    }

    /// Sets the residual at which to stop, relative to the norm of `b`; the default is 1e-5.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f32) -> Self {
        self.common.tolerance = tolerance;
        self
    }

    /// Sets the residual at which to stop whatever the norm of `b`; the default is 0.
    #[must_use]
    pub fn absolute(mut self, tolerance: f32) -> Self {
        self.common.absolute = tolerance;
        self
    }

    /// Sets the preconditioner; the default is none.
    #[must_use]
    pub fn preconditioner(mut self, preconditioner: Preconditioner) -> Self {
        self.preconditioner = preconditioner;
        self
    }

    common_options!();

    /// Operands after the lists of the matrix: `state`, `partials`, `b`, `x`, `r`, `p`, `q` and, with Jacobi,
    /// `inverse`.
    pub(crate) fn phases(&self, profile: &DeviceProfile) -> Result<Phases> {
        let mut base = SolverBuilder::new("conjugate-gradient", &self.common, profile)?.squared();
        let b = base.vector("b", Access::Read);
        let [x, r, p, q] = ["x", "r", "p", "q"].map(|name| base.vector(name, Access::ReadWrite));
        let jacobi = self.preconditioner == Preconditioner::Jacobi;
        let inverse = jacobi.then(|| base.vector("inverse", Access::ReadWrite));
        let spec = || Spec::new().flag("JACOBI", jacobi);
        let extra = f64::from(u8::from(jacobi));
        let kernel = |file, entry, passes: f64| {
            let kernel = SolverKernel::new(file, entry, spec()).passes(passes + extra);
            if jacobi { kernel.last("INVERSE_BINDING") } else { kernel }
        };
        let begin = |builder: &mut SolverBuilder<'_>| -> Result<()> {
            builder.product(x, q)?;
            builder.kernel(kernel("sparse/cg_start", "cg_start", 4.0).stateless(), &[b, q, r, p], inverse);
            builder.kernel(SolverKernel::new("sparse/cg_start", "cg_start_state", spec()).alone(), &[], None);
            Ok(())
        };
        let mut again = base.clone();
        begin(&mut again)?;
        let mut start = base.clone();
        if let Some(inverse) = inverse {
            start.inverse_diagonal(inverse)?;
        }
        begin(&mut start)?;
        let (n, lists) = (base.n, base.lists);
        let steps = base.batch(|builder| {
            builder.product(p, q)?;
            builder.dots(p, q);
            builder.kernel(kernel("sparse/cg_update", "cg_update", 6.0), &[p, q, x, r], inverse);
            builder.kernel(kernel("sparse/cg_direction", "cg_direction", 3.0), &[r, p], inverse);
            Ok(())
        })?;
        Ok(Phases { start: start.program, again: Some(again.program), steps, n, lists })
    }

    pub(crate) fn by_name(matrix: MatrixLayout, settings: &Settings, variant: &str) -> Result<Self> {
        let preconditioner = Preconditioner::from_name(settings.choice("preconditioner")?);
        let method = Self::new(matrix)
            .preconditioner(preconditioner.unwrap_or(Preconditioner::None))
            .tolerance(settings.number(TOLERANCE.name)?)
            .absolute(settings.number("absolute")?);
        Ok(Self { common: method.common.by_name(settings, variant)?, ..method })
    }
}

pub(super) const INFO: Operation = Operation {
    name: "conjugate-gradient",
    about: "x with A x = b, A symmetric positive definite",
    matrix: true,
    inputs: &[Input::new("b", "(rows)"), Input::optional("x", "(rows)")],
    outputs: &[("x", "(rows)")],
    types: &[DType::F32],
    options: &[
        TOLERANCE,
        Setting::number("absolute", "0"),
        Setting::word("preconditioner", || Preconditioner::ALL.map(Preconditioner::name).to_vec()),
        ITERATIONS,
        CHECK_EVERY,
    ],
    variants: || solver::VARIANTS,
    samples,
    solver: true,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, _: &'static str) -> Result<Vec<Program>> {
    let method = |matrix, preconditioner| {
        ConjugateGradient::new(matrix).preconditioner(preconditioner).check_every(1).phases(profile)
    };
    let mut programs = super::shard_steps::samples(profile)?;
    for matrix in solver::sample_matrices() {
        programs.push(method(matrix, Preconditioner::Jacobi)?.start);
    }
    for preconditioner in [Preconditioner::None, Preconditioner::Jacobi] {
        let Phases { start, again, steps, .. } = method(solver::sample(Format::Csr), preconditioner)?;
        programs.extend([start, steps]);
        programs.extend(again);
    }
    Ok(programs)
}
