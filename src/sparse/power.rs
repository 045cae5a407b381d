use super::by_name::{CHECK_EVERY, ITERATIONS, TOLERANCE};
use super::solver::{self, Common, Phases, SolverBuilder, SolverKernel, common_options};
use super::{Format, MatrixLayout};
use crate::program::prelude::*;

/// Finds the eigenvalue of largest magnitude and its eigenvector by power iteration: `x = A x / |A x|`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{Csr, PowerIteration};
///
/// let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]);
/// let gpu = Gpu::new()?;
/// let a = gpu.upload_matrix(&Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values })?;
/// let x = gpu.upload(&[1.0f32, 0.0])?;
/// let (value, _) = gpu.power_iteration(&PowerIteration::new(a.layout()))?.run(&a, &x, |_, _| ())?;
/// assert!((value - 3.0).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Gpu::power_iteration`](crate::Gpu::power_iteration) plans it, and [`Solver::run`](crate::Solver) runs it.
///
/// # Shapes
/// A is n x n in any [`Format`] and need not be symmetric; `x` has n elements. `x` holds a start vector
/// with a component along the eigenvector (random numbers will do), then the eigenvector, of norm 1.
///
/// # Convergence
/// Iterations end when `|A x - lambda x| <= tolerance |A x|` with `lambda = x^T A x / x^T x`. They do not converge if
/// two eigenvalues have the same magnitude, and converge slowly if two are close.
///
/// # Precision and determinism
/// As [`ConjugateGradient`](super::ConjugateGradient).
///
/// # Cost
/// An iteration is the product and three kernels: 4 vectors read, one written.
///
/// # Errors
/// As [`ConjugateGradient`](super::ConjugateGradient).
///
/// # Algorithm
/// R. von Mises and H. Pollaczek-Geiringer, 1929: `shaders/sparse/power_step.wgsl`, `solver_dots.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerIteration {
    pub(crate) common: Common,
}

impl PowerIteration {
    /// Iterates with a matrix of this layout.
    pub fn new(matrix: MatrixLayout) -> Self {
        Self { common: Common::new(matrix, 1e-5) }
    }

    /// Sets the residual at which to stop, relative to `|A x|`; the default is 1e-5.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f32) -> Self {
        self.common.tolerance = tolerance;
        self
    }

    common_options!();

    /// Operands after the lists of the matrix: `state`, `partials`, `x`, `q`.
    pub(crate) fn phases(&self, profile: &DeviceProfile) -> Result<Phases> {
        let mut base = SolverBuilder::new("power-iteration", &self.common, profile)?;
        let [x, q] = ["x", "q"].map(|name| base.vector(name, Access::ReadWrite));
        let kernel = |entry| SolverKernel::new("sparse/power_step", entry, Spec::new());
        let start = base.program.clone();
        let (n, lists) = (base.n, base.lists);
        let steps = base.batch(|builder| {
            builder.product(x, q)?;
            builder.dots(x, q);
            builder.kernel(kernel("power_step").passes(3.0), &[q, x], None);
            builder.kernel(kernel("power_step_judge").alone(), &[], None);
            Ok(())
        })?;
        Ok(Phases { start, again: None, steps, n, lists })
    }

    pub(crate) fn by_name(matrix: MatrixLayout, settings: &Settings, variant: &str) -> Result<Self> {
        let method = Self::new(matrix).tolerance(settings.number(TOLERANCE.name)?);
        Ok(Self { common: method.common.by_name(settings, variant)? })
    }
}

pub(super) const INFO: Operation = Operation {
    name: "power-iteration",
    about: "the eigenvalue of A of largest magnitude, and its eigenvector",
    matrix: true,
    inputs: &[Input::optional("x", "(rows)")],
    outputs: &[("value", "()"), ("vector", "(rows)")],
    types: &[DType::F32],
    options: &[TOLERANCE, ITERATIONS, CHECK_EVERY],
    variants: || solver::VARIANTS,
    samples,
    solver: true,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, _: &'static str) -> Result<Vec<Program>> {
    let power = PowerIteration::new(solver::sample(Format::Csr)).check_every(2);
    Ok(vec![power.phases(profile)?.steps])
}
