//! Ops by name whose input is a sparse matrix: the format is chosen first, and solvers run until they are done.

use crate::api::DeviceMatrix;
use crate::gpu::{Buffer, Gpu, Slice, Waiting};
use crate::program::prelude::*;
use crate::reference;
use crate::sparse::{
    ConjugateGradient, Coo, Csr, Described, HostMatrix, PageRank, PowerIteration, Solution, SparseMatrix, THROUGH,
    Target, names, wanted_format,
};
use std::pin::Pin;

/// A request by names, as on a command line, for an op on a sparse matrix. [`Gpu::drive`] runs a solver or a
/// conversion; [`build`](Self::build) builds any other op.
#[derive(Debug)]
pub struct MatrixJob<'a> {
    /// The matrix.
    pub matrix: &'a Csr,
    /// The inputs after the matrix, in the order of [`Operation::inputs`].
    pub inputs: Vec<HostArray>,
    /// The op and its options.
    pub settings: &'a Settings,
    /// The variant, or `auto`.
    pub variant: &'a str,
    /// The device for which the format is chosen, if the settings name none.
    pub profile: &'a DeviceProfile,
}

/// The result of a driven op.
#[derive(Debug, Clone, PartialEq)]
pub enum Driven {
    /// A matrix, by row and column.
    Matrix(Coo),
    /// The outputs of a solver, the vector last, and its report.
    Vector(Vec<HostArray>, Solution),
}

impl MatrixJob<'_> {
    /// Builds the op on the matrix, in the requested format or the predicted fastest. `supply` makes missing inputs.
    ///
    /// # Errors
    /// As [`Operation::build`](crate::program::Operation::build) and the conversion.
    pub fn build(&self, supply: Option<&mut dyn Supply>) -> Result<OpCall> {
        let op = self.settings.op();
        let mut statistics = None;
        let (matrix, to) = if op.option(THROUGH.name).is_some() {
            let to = Target::named(self.settings.choice(THROUGH.name)?);
            let csr = HostMatrix::Csr(self.matrix.try_clone(op.name)?);
            let to = to.map(|to| reference::spconvert(&csr, to)?.layout()).transpose()?;
            (csr, to)
        } else {
            let found = self.matrix.analyse();
            let format = wanted_format(self.settings, self.variant, &found, self.profile)?;
            statistics = Some(found);
            (reference::spconvert(&HostMatrix::Csr(self.matrix.try_clone(op.name)?), format)?, None)
        };
        let (lists, described) = Described::new(&matrix)?;
        let described = Described { statistics, to, ..described };
        let mut ask = Ask::new(self.settings).variant(self.variant).inputs(self.inputs.clone());
        if let Some(supply) = supply {
            ask = ask.supplied_by(supply);
        }
        op.build(ask.matrix(lists, &described))
    }

    /// The input at this index, a vector of `len` elements; `None` if it was not passed.
    fn vector<T: Element>(&self, at: usize, len: usize) -> Result<Option<&[T]>> {
        let Some(array) = self.inputs.get(at) else { return Ok(None) };
        let (op, wanted) = (self.settings.op(), shape_text(&[len]));
        let name = op.inputs.get(at).map_or("input", |input| input.name);
        let found = array.data().slice::<T>().filter(|_| array.shape() == [len]);
        let wrong = || err!(Shape, "{}: {name} is {array}; it must be {wanted} of {}", op.name, T::DTYPE);
        found.map(Some).ok_or_else(wrong)
    }
}

type Driving<'d> = Pin<Box<dyn Future<Output = Result<Driven>> + 'd>>;

type Drive = for<'d> fn(&'d MatrixDriver<'d>, &'d mut dyn FnMut(usize, f64)) -> Driving<'d>;

struct MatrixDriver<'a> {
    gpu: &'a Gpu,
    job: &'a MatrixJob<'a>,
    waiting: Waiting,
}

/// Ops that the host drives through several programs.
const DRIVERS: [(&str, Drive); 5] = [
    (names::SPCONVERT, |driver, _| Box::pin(driver.there_and_back())),
    (names::SPINSERT, |driver, _| Box::pin(driver.inserted())),
    (names::CONJUGATE_GRADIENT, |driver, progress| Box::pin(driver.conjugate_gradient(progress))),
    (names::POWER_ITERATION, |driver, progress| Box::pin(driver.power_iteration(progress))),
    (names::PAGE_RANK, |driver, progress| Box::pin(driver.page_rank(progress))),
];

impl Gpu {
    /// Runs a solver, or converts a matrix to a format and back. `progress` gets each iteration and its residual.
    /// Returns `None` for any other op: use its [`build`](MatrixJob::build).
    ///
    /// A starting vector that is not passed is zeros, or ones for an eigenvector.
    ///
    /// # Errors
    /// As the solver, of [`convert_matrix`](Self::convert_matrix), and inputs of the wrong shape.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn drive(&self, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64)) -> Result<Option<Driven>> {
        Waiting::block(|waiting| self.drive_by(waiting, job, progress))
    }

    /// As [`drive`](Self::drive), without blocking the thread.
    ///
    /// # Errors
    /// As [`drive`](Self::drive).
    pub async fn drive_async(
        &self, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64),
    ) -> Result<Option<Driven>> {
        self.drive_by(Waiting::Yielding, job, progress).await
    }

    async fn drive_by(
        &self, waiting: Waiting, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64),
    ) -> Result<Option<Driven>> {
        let op = job.settings.op();
        let Some((_, drive)) = DRIVERS.iter().find(|(name, _)| *name == op.name) else { return Ok(None) };
        let (max, min) = (op.inputs.len(), op.inputs.iter().filter(|i| !i.optional).count());
        let given = job.inputs.len();
        if !(min..=max).contains(&given) {
            let text = format!("{}: {given} inputs after the matrix; the op wants {min} to {max}", op.name);
            return Err(err!(InvalidArgument, "{text}"));
        }
        drive(&MatrixDriver { gpu: self, job, waiting }, progress).await.map(Some)
    }

    /// Returns whether [`drive`](Self::drive) runs the op.
    pub fn drives(op: &Operation) -> bool {
        DRIVERS.iter().any(|(name, _)| *name == op.name)
    }
}

/// Uploads the passed vector, or `n` elements equal to `other`.
fn begin(gpu: &Gpu, given: Option<&[f32]>, n: usize, other: f32) -> Result<Buffer<f32>> {
    match given {
        Some(given) => gpu.upload(given),
        None => gpu.upload(&filled("a starting vector", n, other)?),
    }
}

impl MatrixDriver<'_> {
    async fn there_and_back(&self) -> Result<Driven> {
        let &Self { gpu, job, waiting } = self;
        let through = Target::named(job.settings.choice(THROUGH.name)?).unwrap_or(Target::Csr);
        let there = gpu.convert_by(waiting, &gpu.upload_matrix(job.matrix)?, through).await?;
        self.by_coordinates(&there).await
    }

    /// Reads a matrix by row and column.
    async fn by_coordinates(&self, matrix: &DeviceMatrix) -> Result<Driven> {
        let &Self { gpu, waiting, .. } = self;
        let csr = gpu.convert_by(waiting, matrix, Target::Csr).await?;
        let back = gpu.convert_by(waiting, &csr, Target::Coo).await?;
        Ok(Driven::Matrix(match back.read_by(waiting).await? {
            HostMatrix::Coo(coordinates) => coordinates,
            other => other.to_csr()?.to_coo()?,
        }))
    }

    async fn inserted(&self) -> Result<Driven> {
        let &Self { gpu, job, waiting } = self;
        let format = Target::named(job.settings.choice("format")?).unwrap_or(Target::Coo);
        let n = job.inputs.first().map_or(0, HostArray::len);
        let indices = |at| {
            let list = job.vector::<u32>(at, n)?.unwrap_or_default();
            copied(job.settings.op().name, list)
        };
        // The matrix has values of the type of the new ones.
        let halves = job.inputs.get(2).is_some_and(|values| values.dtype() == DType::F16);
        let values = if halves {
            job.vector::<f16>(2, n)?.unwrap_or_default().iter().map(|x| x.to_f32()).collect()
        } else {
            copied(job.settings.op().name, job.vector::<f32>(2, n)?.unwrap_or_default())?
        };
        let (rows, cols) = (job.matrix.rows, job.matrix.cols);
        let new = Coo { rows, cols, row_idxs: indices(0)?, col_idxs: indices(1)?, values };
        let (new, old) = match halves {
            true => (gpu.upload_matrix_f16(&new)?, gpu.upload_matrix_f16(job.matrix)?),
            false => (gpu.upload_matrix(&new)?, gpu.upload_matrix(job.matrix)?),
        };
        let mut a = gpu.convert_by(waiting, &old, format).await?;
        gpu.insert_by(waiting, &mut a, &new).await?;
        self.by_coordinates(&a).await
    }

    /// `value` is an output before the vector.
    async fn found(&self, value: Option<f32>, x: &Buffer<f32>, solution: Solution) -> Result<Driven> {
        let x = Slice::from(x).read_by(self.waiting).await?;
        let value = value.map(|value| HostArray::new(&[], vec![value])).transpose()?;
        let x = HostArray::new(&[x.len()], x)?;
        Ok(Driven::Vector(value.into_iter().chain([x]).collect(), solution))
    }

    async fn conjugate_gradient(&self, progress: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
        let &Self { gpu, job, waiting } = self;
        let a = gpu.upload_matrix(job.matrix)?;
        let n = job.matrix.rows;
        let b = begin(gpu, job.vector(0, n)?, n, 0.0)?;
        let x = begin(gpu, job.vector(1, n)?, n, 0.0)?;
        let solver = gpu.conjugate_gradient(&ConjugateGradient::by_name(a.layout(), job.settings, job.variant)?)?;
        let solution = solver.solve_by(waiting, &a, (&b).into(), (&x).into(), progress).await?;
        self.found(None, &x, solution).await
    }

    async fn power_iteration(&self, progress: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
        let &Self { gpu, job, waiting } = self;
        let a = gpu.upload_matrix(job.matrix)?;
        let n = job.matrix.rows;
        let x = begin(gpu, job.vector(0, n)?, n, 1.0)?;
        let solver = gpu.power_iteration(&PowerIteration::by_name(a.layout(), job.settings, job.variant)?)?;
        let (value, solution) = solver.run_by(waiting, &a, (&x).into(), progress).await?;
        self.found(Some(value), &x, solution).await
    }

    async fn page_rank(&self, progress: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
        let &Self { gpu, job, waiting } = self;
        let t = gpu.upload_matrix(&job.matrix.transitions()?)?;
        let n = job.matrix.rows;
        let start = job.vector(0, n)?.map(|start| gpu.upload(start)).transpose()?;
        let x = gpu.alloc::<f32>(n)?;
        let method =
            PageRank::by_name(t.layout(), job.settings, job.variant)?.when(start.is_some(), |op| op.personalised());
        let solver = gpu.page_rank(&method)?;
        let restart = start.as_ref().map(Slice::from);
        let solution = solver.run_by(waiting, &t, restart, (&x).into(), progress).await?;
        self.found(None, &x, solution).await
    }
}
