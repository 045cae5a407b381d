//! Ops by name whose input is a sparse matrix: the format is chosen first, and solvers run until they are done.

use crate::api::DeviceMatrix;
use crate::array::{HostArray, shape_text};
use crate::element::Element;
use crate::error::{Result, copied, err, filled};
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::When;
use crate::program::{Ask, DeviceProfile, OpCall, Operation, Settings, Supply};
use crate::reference;
use crate::sparse::{
    ConjugateGradient, Coo, Csr, Described, HostMatrix, PageRank, PowerIteration, Solution, SparseMatrix,
    THROUGH, Target, names, wanted_format,
};

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
    /// A vector and its solver's report.
    Vector(HostArray, Solution),
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

type Drive = fn(&Gpu, &MatrixJob<'_>, &mut dyn FnMut(usize, f64)) -> Result<Driven>;

/// Ops that the host drives through several programs.
const DRIVERS: [(&str, Drive); 5] = [
    (names::SPCONVERT, there_and_back),
    (names::SPINSERT, inserted),
    (names::CONJUGATE_GRADIENT, conjugate_gradient),
    (names::POWER_ITERATION, power_iteration),
    (names::PAGE_RANK, page_rank),
];

impl Gpu {
    /// Runs a solver, or converts a matrix to a format and back. `progress` gets each iteration and its residual.
    /// Returns `None` for any other op: use its [`build`](MatrixJob::build).
    ///
    /// A starting vector that is not passed is zeros, or ones for an eigenvector.
    ///
    /// # Errors
    /// As the solver, of [`convert_matrix`](Self::convert_matrix), and inputs of the wrong shape.
    pub fn drive(&self, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64)) -> Result<Option<Driven>> {
        let op = job.settings.op();
        let Some((_, drive)) = DRIVERS.iter().find(|(name, _)| *name == op.name) else { return Ok(None) };
        let (max, min) = (op.inputs.len(), op.inputs.iter().filter(|i| !i.optional).count());
        let given = job.inputs.len();
        if !(min..=max).contains(&given) {
            let text = format!("{}: {given} inputs after the matrix; the op wants {min} to {max}", op.name);
            return Err(err!(InvalidArgument, "{text}"));
        }
        drive(self, job, progress).map(Some)
    }

    /// Returns whether [`drive`](Self::drive) runs the op.
    pub fn drives(op: &Operation) -> bool {
        DRIVERS.iter().any(|(name, _)| *name == op.name)
    }
}

fn there_and_back(gpu: &Gpu, job: &MatrixJob<'_>, _: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
    let through = Target::named(job.settings.choice(THROUGH.name)?).unwrap_or(Target::Csr);
    let there = gpu.convert_matrix(&gpu.upload_matrix(job.matrix)?, through)?;
    by_coordinates(gpu, &there)
}

/// Reads a matrix by row and column.
fn by_coordinates(gpu: &Gpu, matrix: &DeviceMatrix) -> Result<Driven> {
    let back = gpu.convert_matrix(&gpu.convert_matrix(matrix, Target::Csr)?, Target::Coo)?;
    Ok(Driven::Matrix(match back.read()? {
        HostMatrix::Coo(coordinates) => coordinates,
        other => other.to_csr()?.to_coo()?,
    }))
}

fn inserted(gpu: &Gpu, job: &MatrixJob<'_>, _: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
    let format = Target::named(job.settings.choice("format")?).unwrap_or(Target::Coo);
    let n = job.inputs.first().map_or(0, HostArray::len);
    let indices = |at| {
        let list = job.vector::<u32>(at, n)?.unwrap_or_default();
        copied(job.settings.op().name, list)
    };
    let (row_idxs, col_idxs, values) =
        (indices(0)?, indices(1)?, job.vector::<f32>(2, n)?.unwrap_or_default());
    let (rows, cols, values) = (job.matrix.rows, job.matrix.cols, copied(job.settings.op().name, values)?);
    let new = gpu.upload_matrix(&Coo { rows, cols, row_idxs, col_idxs, values })?;
    let mut a = gpu.convert_matrix(&gpu.upload_matrix(job.matrix)?, format)?;
    gpu.insert_entries(&mut a, &new)?;
    by_coordinates(gpu, &a)
}

/// Uploads the passed vector, or `n` elements equal to `other`.
fn begin(gpu: &Gpu, given: Option<&[f32]>, n: usize, other: f32) -> Result<Buffer<f32>> {
    match given {
        Some(given) => gpu.upload(given),
        None => gpu.upload(&filled("a starting vector", n, other)?),
    }
}

fn found(x: &Buffer<f32>, solution: Solution) -> Result<Driven> {
    let x = x.read()?;
    Ok(Driven::Vector(HostArray::new(&[x.len()], x)?, solution))
}

fn conjugate_gradient(
    gpu: &Gpu,
    job: &MatrixJob<'_>,
    progress: &mut dyn FnMut(usize, f64),
) -> Result<Driven> {
    let a = gpu.upload_matrix(job.matrix)?;
    let n = job.matrix.rows;
    let b = begin(gpu, job.vector(0, n)?, n, 0.0)?;
    let x = begin(gpu, job.vector(1, n)?, n, 0.0)?;
    let solver =
        gpu.conjugate_gradient(&ConjugateGradient::by_name(a.layout(), job.settings, job.variant)?)?;
    let solution = solver.solve(&a, &b, &x, progress)?;
    found(&x, solution)
}

fn power_iteration(gpu: &Gpu, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
    let a = gpu.upload_matrix(job.matrix)?;
    let n = job.matrix.rows;
    let x = begin(gpu, job.vector(0, n)?, n, 1.0)?;
    let solver = gpu.power_iteration(&PowerIteration::by_name(a.layout(), job.settings, job.variant)?)?;
    let (_, solution) = solver.run(&a, &x, progress)?;
    found(&x, solution)
}

fn page_rank(gpu: &Gpu, job: &MatrixJob<'_>, progress: &mut dyn FnMut(usize, f64)) -> Result<Driven> {
    let t = gpu.upload_matrix(&job.matrix.transitions()?)?;
    let n = job.matrix.rows;
    let start = job.vector(0, n)?.map(|start| gpu.upload(start)).transpose()?;
    let x = gpu.alloc::<f32>(n)?;
    let method = PageRank::by_name(t.layout(), job.settings, job.variant)?
        .when(start.is_some(), |op| op.personalised());
    let solution = gpu.page_rank(&method)?.run(&t, start.as_ref().map(Slice::from), &x, progress)?;
    found(&x, solution)
}
