//! The rows of the tour: every op of the catalogue, checked on a small shape and timed on a large one.

use crate::common::measured::{Check, sparse_matrix};
use crate::material::Material;
use half::f16;
use tilework::program::{Ask, DeviceProfile, Domain, OpCall, Operation, Settings, Supply};
use tilework::{DType, Error, ErrorKind, Gpu, HostArray, HostData, MatrixJob, Report, Result, reference};

/// A row: an op, a variant and an element type.
pub(crate) struct Case {
    pub(crate) op: &'static Operation,
    pub(crate) dtype: DType,
    pub(crate) variant: &'static str,
}

/// Lists the rows: each op with `auto`, on floats and on bytes if it takes them; with `all`, every variant, too.
pub(crate) fn cases(all: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for op in tilework::operations().filter(|op| !op.solver) {
        let first = op.types[0];
        let shown = |dtype: &DType| *dtype == first || matches!(dtype, DType::F16 | DType::U8);
        let types = op.types.iter().copied().filter(shown);
        cases.extend(types.map(|dtype| Case { op, dtype, variant: "auto" }));
        let variants = (op.variants)().iter().filter(|_| all);
        cases.extend(variants.map(|v| Case { op, dtype: first, variant: v.name }));
    }
    cases
}

/// The result of a row.
pub(crate) struct Outcome {
    pub(crate) size: String,
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    pub(crate) check: Check,
}

impl Outcome {
    pub(crate) fn gbps(&self) -> f64 {
        self.report.cost.bytes / self.seconds * 1e-9
    }

    pub(crate) fn gflops(&self) -> f64 {
        self.report.cost.flop / self.seconds * 1e-9
    }

    pub(crate) fn percent(&self) -> Option<f64> {
        self.report.percent_of_roofline(self.seconds)
    }
}

/// Limits on a case's size.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) flop: f64,
}

/// What the sequential references do quickly.
const CHECKED: Room = Room { bytes: 4 << 20, flop: 5e7 };

impl Case {
    /// Returns what the device lacks for this case.
    pub(crate) fn missing(&self, gpu: &Gpu) -> Option<String> {
        if self.dtype == DType::F16 && !gpu.profile().features.f16 {
            return Some("no 16-bit floats in shaders".to_owned());
        }
        let variant = (self.op.variants)().iter().find(|v| v.name == self.variant)?;
        variant.requires.missing(gpu.profile())
    }

    /// Checks and times the case. Returns `None` if the device or the variant does not take the op on these elements.
    pub(crate) fn run(&self, gpu: &Gpu, material: &Material) -> Result<Option<Outcome>> {
        let Some(check) = self.check(gpu, material)? else { return Ok(None) };
        let shape = self.grown(gpu.profile(), material.room);
        let ready = gpu.ready(self.build(&shape, Some(material))?)?;
        let runs = if gpu.profile().is_cpu() { 3 } else { 15 };
        let seconds = gpu.measure(runs, |rec| ready.record(rec))?.median();
        let size = shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        Ok(Some(Outcome { size, report: ready.report(), seconds, check }))
    }

    fn check(&self, gpu: &Gpu, material: &Material) -> Result<Option<Check>> {
        let call = match self.build(&self.grown(gpu.profile(), CHECKED), Some(material)) {
            // Options decide whether the op takes other types than its first.
            Err(_) if self.dtype != self.op.types[0] => return Ok(None),
            call => call?,
        };
        let Some(wanted) = reference::wanted(self.op, &call)? else { return Ok(None) };
        let ready = match gpu.ready(call) {
            Err(e) if self.variant != "auto" && e.kind() == ErrorKind::Unsupported => return Ok(None),
            ready => ready?,
        };
        let mut rec = gpu.recorder();
        ready.record(&mut rec)?;
        rec.submit()?;
        let results = ready.results()?;
        if results.len() != wanted.len() {
            return Ok(Some(Check::FAILED));
        }
        let each = wanted.iter().zip(&results).map(|(wanted, got)| Check::wanted(wanted, got));
        Ok(Some(each.fold(Check::PERFECT, Check::and)))
    }

    /// Forms the op on inputs of this shape; without material, on blank numbers.
    fn build(&self, shape: &[usize], material: Option<&Material>) -> Result<OpCall> {
        let mut settings = Settings::new(self.op);
        for (name, value) in self.op.example.options {
            settings.text(name, *value)?;
        }
        let mut inputs = Inputs { op: self.op, shape: Some(shape), dtype: self.dtype, material };
        if self.op.matrix {
            let floats = material.map_or(&[1.0][..], |m| &m.floats);
            let matrix = &sparse_matrix(shape[0], floats);
            inputs.shape = None;
            let (variant, settings, profile) = (self.variant, &settings, &DeviceProfile::webgpu_defaults());
            let job = MatrixJob { matrix, inputs: Vec::new(), settings, variant, profile };
            return job.build(Some(&mut inputs));
        }
        self.op.build(Ask::new(&settings).variant(self.variant).supplied_by(&mut inputs))
    }

    /// Returns the example's shape, its axes doubled in turn as long as `room` allows.
    fn grown(&self, profile: &DeviceProfile, room: Room) -> Vec<usize> {
        let mut shape = self.op.example.shape.to_vec();
        if self.op.matrix {
            // About 16 entries of 8 bytes per row, made and converted on the host.
            return vec![(room.bytes / 1024).max(16) as usize; 2];
        }
        let mut open: Vec<usize> = (0..shape.len()).collect();
        while !open.is_empty() {
            open.retain(|&axis| {
                shape[axis] *= 2;
                let fits = self.fits(&shape, profile, room);
                if !fits {
                    shape[axis] /= 2;
                }
                fits
            });
        }
        shape
    }

    fn fits(&self, shape: &[usize], profile: &DeviceProfile, room: Room) -> bool {
        let lowered = self.build(shape, None).and_then(|call| call.lower(profile));
        lowered.is_ok_and(|program| {
            let bytes = program.operands.iter().map(|o| o.bytes()).fold(program.scratch_bytes(), u64::saturating_add);
            bytes <= room.bytes && program.cost.flop <= room.flop
        })
    }
}

/// Inputs made of the tour's bytes.
struct Inputs<'a> {
    op: &'static Operation,
    shape: Option<&'a [usize]>,
    dtype: DType,
    material: Option<&'a Material>,
}

impl Inputs<'_> {
    fn array(&self, name: &str, shape: &[usize], dtype: DType, below: Option<usize>) -> Result<HostArray> {
        let n = shape.iter().fold(1usize, |n, extent| n.saturating_mul(*extent));
        let of_nothing = Material::of(&[0]);
        let material = match self.material {
            Some(material) => material,
            // Planning reads filters.
            None if n <= 1 << 10 => &of_nothing,
            None => return HostArray::unseen(shape, dtype),
        };
        let (mut all_floats, mut all_bytes) = (&material.floats, &material.bytes);
        let (sorted_floats, sorted_bytes);
        if self.op.domain(name) == Domain::Increasing {
            (sorted_floats, sorted_bytes) = material.sorted(n);
            (all_floats, all_bytes) = (&sorted_floats, &sorted_bytes);
        }
        let floats = || all_floats.iter().copied().cycle().take(n);
        let bytes = || all_bytes.iter().copied().cycle().take(n);
        let below = below.map_or(u32::MAX, |below| below.max(1) as u32);
        let data: HostData = match dtype {
            DType::F32 => floats().collect::<Vec<_>>().into(),
            DType::F16 => floats().map(f16::from_f32).collect::<Vec<_>>().into(),
            DType::I32 => bytes().map(|b| i32::from(b) - 128).collect::<Vec<_>>().into(),
            DType::U32 => bytes().map(|b| u32::from(b) % below).collect::<Vec<_>>().into(),
            DType::I8 => bytes().map(|b| b as i8).collect::<Vec<_>>().into(),
            _ => bytes().collect::<Vec<_>>().into(),
        };
        HostArray::new(shape, data)
    }
}

impl Supply for Inputs<'_> {
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray, String> {
        let shape = self.shape.take().or(shape).ok_or_else(|| format!("{name} has no shape"))?;
        self.array(name, shape, dtype.unwrap_or(self.dtype), below).map_err(|e: Error| e.to_string())
    }
}
