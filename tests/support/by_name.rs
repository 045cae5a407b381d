//! Every op by name, on random numbers, and its judge: for tests on this machine and in a browser.

use super::Random;
use half::f16;
use tilework::program::{Ask, DeviceProfile, Domain, OpCall, Operation, Settings, Supply};
use tilework::reference::{self, Wanted};
use tilework::sparse::Csr;
use tilework::{DType, ErrorKind, HostArray, HostData, MatrixJob, operations};

/// Makes inputs of random numbers; the first has a given shape.
pub(crate) struct Numbers {
    op: &'static Operation,
    random: Random,
    first: Option<Vec<usize>>,
    dtype: DType,
}

impl Numbers {
    pub(crate) fn new(op: &'static Operation, shape: &[usize], dtype: DType) -> Self {
        Self { op, random: Random::new(7), first: Some(shape.to_vec()), dtype }
    }

    fn float(&mut self) -> f32 {
        (self.random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Collects numbers, in ascending order on request.
fn ordered<T: PartialOrd>(numbers: impl Iterator<Item = T>, sorted: bool) -> Vec<T> {
    let mut numbers: Vec<T> = numbers.collect();
    if sorted {
        numbers.sort_by(|a, b| a.partial_cmp(b).expect("no NaN is drawn"));
    }
    numbers
}

impl Supply for Numbers {
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray, String> {
        let first = self.first.take();
        let shape = first.or(shape.map(<[usize]>::to_vec)).ok_or(format!("{name} has no shape"))?;
        let n: usize = shape.iter().product();
        let below = below.unwrap_or(100).max(1) as u64;
        let sorted = self.op.domain(name) == Domain::Increasing;
        let data: HostData = match dtype.unwrap_or(self.dtype) {
            DType::F32 => ordered((0..n).map(|_| self.float()), sorted).into(),
            DType::F16 => ordered((0..n).map(|_| f16::from_f32(self.float())), sorted).into(),
            DType::I32 => ordered((0..n).map(|_| (self.random.next() % 200) as i32 - 100), sorted).into(),
            DType::U32 => ordered((0..n).map(|_| (self.random.next() % below) as u32), sorted).into(),
            DType::U8 => ordered((0..n).map(|_| self.random.next() as u8), sorted).into(),
            _ => ordered((0..n).map(|_| self.random.next() as i8), sorted).into(),
        };
        HostArray::new(&shape, data).map_err(|e| e.to_string())
    }
}

/// The options of the op's example.
pub(crate) fn example_settings(op: &'static Operation) -> Settings {
    let mut settings = Settings::new(op);
    for (name, value) in op.example.options {
        settings.text(name, *value).unwrap();
    }
    settings
}

/// A banded matrix.
pub(crate) fn matrix(rows: usize, cols: usize) -> Csr {
    let mut a = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..rows {
        for col in (row..cols).step_by(1 + row % 3).take(row % 7) {
            a.col_idxs.push(col as u32);
            a.values.push(1.0 / (1 + row + col) as f32);
        }
        a.row_ptrs.push(a.col_idxs.len() as u32);
    }
    a
}

/// The op on a shape.
pub(crate) fn call(op: &'static Operation, shape: &[usize], dtype: DType, variant: &str) -> tilework::Result<OpCall> {
    let settings = example_settings(op);
    if op.matrix {
        let matrix = &matrix(shape[0], shape[1]);
        let mut numbers = Numbers::new(op, &[], dtype);
        numbers.first = None;
        let (settings, profile) = (&settings, &DeviceProfile::webgpu_defaults());
        let job = MatrixJob { matrix, inputs: Vec::new(), settings, variant, profile };
        return job.build(Some(&mut numbers));
    }
    op.build(Ask::new(&settings).variant(variant).supplied_by(&mut Numbers::new(op, shape, dtype)))
}

/// The example's shape, and the same with one axis around the boundaries of tiles.
pub(crate) fn shapes(op: &Operation) -> Vec<Vec<usize>> {
    let small = op.example.shape;
    let around: &[usize] = match small.len() {
        1 => &[1, 31, 33, 64, 255, 257, 1000, 1023, 1025, 4095, 4097, 8191, 8193, 100_003],
        2 => &[1, 15, 17, 31, 33, 63, 65, 127, 129, 257],
        _ => &[1, 7, 9, 15, 17, 33],
    };
    let longer = |axis: usize| {
        around.iter().map(move |&extent| {
            let mut shape = small.to_vec();
            shape[axis] = extent;
            shape
        })
    };
    std::iter::once(small.to_vec()).chain((0..small.len()).flat_map(longer)).collect()
}

/// Ops that are one program.
pub(crate) fn programs() -> impl Iterator<Item = &'static Operation> {
    operations().filter(|op| !op.solver)
}

/// A request for an op.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) op: &'static Operation,
    pub(crate) variant: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
    /// Whether this is the op's example in its first type, which some variant must take.
    pub(crate) example: bool,
}

impl Case {
    pub(crate) fn call(&self) -> tilework::Result<OpCall> {
        call(self.op, &self.shape, self.dtype, self.variant)
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {} of {:?}, {}", self.op.name, self.variant, self.shape, self.dtype)
    }
}

/// Each variant of the op in each type, and in the first type for each shape. Without `all`, only the example.
pub(crate) fn cases(op: &'static Operation, all: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes = shapes(op);
    for variant in std::iter::once("auto").chain((op.variants)().iter().map(|v| v.name)) {
        for (i, shape) in shapes[..if all { shapes.len() } else { 1 }].iter().enumerate() {
            // Each type compiles other kernels: longer shapes run in the first type only.
            let types = if all && i == 0 { op.types } else { &op.types[..op.types.len().min(1)] };
            cases.extend(types.iter().map(|&dtype| {
                let (shape, example) = (shape.clone(), i == 0 && dtype == op.types[0]);
                Case { op, variant, shape, dtype, example }
            }));
        }
    }
    cases
}

/// The expected results of a call; `None` if no reference covers them.
pub(crate) fn wanted(op: &Operation, call: &OpCall) -> Result<Option<Vec<Wanted>>, String> {
    match reference::wanted(op, call) {
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(None),
        other => other.map_err(|e| format!("the reference fails: {e}")),
    }
}

/// What is wrong with results. `None` if they are right, or if this device or this variant rejects the request.
pub(crate) fn complaint(wanted: &[Wanted], results: tilework::Result<Vec<HostArray>>) -> Option<String> {
    let results = match results {
        Ok(results) => results,
        Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument) => return None,
        Err(e) => return Some(e.to_string()),
    };
    if wanted.len() != results.len() {
        return Some(format!("{} outputs and not {}", results.len(), wanted.len()));
    }
    wanted
        .iter()
        .zip(&results)
        .enumerate()
        .find_map(|(i, (wanted, got))| wanted.difference(got).map(|why| format!("output {i}: {why}")))
}
