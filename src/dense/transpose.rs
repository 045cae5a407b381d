use super::predict::Rates;
use crate::program::facts::{Fact, Subject};
use crate::program::prelude::*;

/// Transposes a matrix, or each matrix of a batch, out of place: `output[j, i] = input[i, j]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6])?; // 2 x 3
/// let y = gpu.alloc::<u32>(6)?;
/// let transpose = Transpose::new(2, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// transpose.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` is m x n, `output` n x m, both row-major without gaps. The matrices of a [`batch`](Self::batched) follow
/// each other. Any extent may be 0. Elements are of any type. The operands must be different wgpu buffers.
///
/// # Precision and determinism
/// Elements are moved bit by bit: NaNs keep their bits.
///
/// # Cost
/// No flop. Every element is read once and written once. One dispatch, no scratch.
///
/// # Variants
/// `naive`, `tiled`. `auto` (the default) takes `tiled`, but `naive` on software drivers and for matrices that are so
/// flat or small that caches work as well.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): a matrix above the largest binding or buffer of the device, or above
///   about 2^32 elements.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/transpose_naive.wgsl`: the definition. Tiles in workgroup memory without bank conflicts (Ruetsch
/// and Micikevicius, *Optimizing Matrix Transpose in CUDA*, 2009): `transpose_tiled.wgsl` for elements of 4 and 8
/// bytes, `transpose_vectors.wgsl` for 4 bytes where extents are multiples of 4, and `transpose_packed.wgsl` for 1
/// and 2 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transpose {
    batch: usize,
    m: usize,
    n: usize,
    variant: String,
}

kernel_params! {
    struct TransposeParams { batch: u32, m: u32, n: u32, tiles_m: u32, tiles_n: u32 }
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one thread moves a word; loads walk down columns and do not coalesce"),
    Variant::portable(
        "tiled",
        "tiles in workgroup memory without bank conflicts; vec4s where extents are multiples of 4",
    ),
];

const WORKGROUP_SIZE: u64 = 256;

/// Side of a tile of packed elements or of vec4s.
const PACKED_SIDE: usize = 64;

/// Bytes of memory whose time an element of `naive` takes where each load has a sector of its own, and of a sector.
const LOADED: f64 = 22.5;
const SECTOR: f64 = 32.0;

/// Seconds that tiles take beside those of `naive`, and the bytes whose time an element takes at least: of words, and
/// of packed elements.
const TILED_START: f64 = 0.8e-6;
const TILED_LEAST: f64 = 5.0;
const PACKED_START: f64 = 2.5e-6;
const PACKED_LEAST: f64 = 8.0;

/// Columns of tiles that are taken together, so that a square of tiles runs at a time.
const BAND: u32 = 16;

/// The maximum number of elements: a kernel counts to the end of the last tile.
const MAX_LEN: usize = (u32::MAX as usize) - (1 << 12);

impl Transpose {
    /// Transposes one matrix, m x n.
    pub fn new(m: usize, n: usize) -> Self {
        Self::batched(1, m, n)
    }

    /// Transposes each of `batch` matrices, m x n, that follow each other.
    pub fn batched(batch: usize, m: usize, n: usize) -> Self {
        Self { batch, m, n, variant: "auto".into() }
    }

    variants!(variant);

    fn name(&self) -> String {
        let batch = if self.batch == 1 { String::new() } else { format!("{} x ", self.batch) };
        format!("transpose {batch}{} x {}", self.m, self.n)
    }

    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        let len = elements(&name, "input", &[self.batch, self.m, self.n])?;
        let operands = vec![
            Operand { name: "input", dtype, len, access: Access::Read },
            Operand { name: "output", dtype, len, access: Access::Write },
        ];
        profile.check_bindings(&name, &operands[..1], "transpose blocks in separate calls")?;
        profile.check_count(&name, &operands[0], MAX_LEN, "transpose blocks in separate calls")?;
        let (_, decision) = choose("transpose", &self.variant, VARIANTS, profile, || self.policy(dtype, profile))?;
        let mut program = Program::new("transpose", decision);
        program.cost = Cost::of(0.0, &operands);
        program.operands = operands;
        if len > 0 {
            self.dispatch(&mut program, dtype);
        }
        Ok(program)
    }

    /// Chooses a variant and says why.
    fn policy(&self, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        if profile.quirks.serial_workgroups {
            return ("naive", "a processor's caches replace tiles, and its barriers are slow".to_owned());
        }
        let [naive, tiled] = self.seconds(dtype, &Rates::of(profile));
        let predicted = |x: f64, y: f64| format!("predicted {:.1} us, {:.1} us", x * 1e6, y * 1e6);
        if naive <= tiled {
            ("naive", format!("{} with tiles", predicted(naive, tiled)))
        } else {
            ("tiled", format!("{} without tiles", predicted(tiled, naive)))
        }
    }

    /// Predicts the seconds of `naive` and `tiled`, less those of a dispatch. 45 shapes by chance of all types on an
    /// H100 (Vulkan, driver 580.159.04): the choice takes 1.002 of the faster one's time on average, at most 1.07.
    fn seconds(&self, dtype: DType, rates: &Rates) -> [f64; 2] {
        let Self { batch, m, n, .. } = *self;
        let (size, elements) = (dtype.size() as f64, (batch * m * n) as f64);
        let moved = 2.0 * size;
        // A load takes a sector of the cache, of which the elements of a short side use a part.
        let sectors = LOADED * (m.min(n) as f64 * size / SECTOR).min(1.0);
        let naive = rates.pass(elements * moved.max(sectors));
        // The part of the tiles that has elements. Rows of packed tiles may be short.
        let part = |extent: usize, side: usize| extent as f64 / extent.next_multiple_of(side).max(1) as f64;
        let (used, start, least) = if dtype.size() < 4 {
            (part(m, PACKED_SIDE), PACKED_START, PACKED_LEAST)
        } else {
            let side = self.side(dtype);
            (part(m, side) * part(n, side), TILED_START, TILED_LEAST)
        };
        [naive, start + rates.pass(elements * moved.max(least) / used.max(f64::MIN_POSITIVE))]
    }

    fn side(&self, dtype: DType) -> usize {
        let vectors = dtype.size() == 4 && self.m.is_multiple_of(4) && self.n.is_multiple_of(4);
        if dtype.size() < 4 || vectors { PACKED_SIDE } else { 32 }
    }

    fn dispatch(&self, program: &mut Program, dtype: DType) {
        let (size, len) = (dtype.size(), program.operands[0].len as u64);
        let pack = (4 / size).max(1) as u32;
        let params =
            TransposeParams { batch: self.batch as u32, m: self.m as u32, n: self.n as u32, tiles_m: 0, tiles_n: 0 };
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let words = |spec: Spec| if size == 8 { spec.alias("Word", "vec2<u32>") } else { spec };
        let spec = Spec::new().constant("PACK", pack);
        if program.variant() == "naive" {
            let spec = words(spec).flag("PACKED", pack > 1);
            let kernel = program.kernel(Kernel::library("dense/transpose_naive", "transpose_naive", spec));
            let workgroups = len.div_ceil(u64::from(pack)).div_ceil(WORKGROUP_SIZE);
            program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
            return;
        }
        let spec = spec.constant("BAND", BAND);
        let side = self.side(dtype);
        let kernel = if pack > 1 {
            Kernel::library("dense/transpose_packed", "transpose_packed", spec)
        } else if side == PACKED_SIDE {
            Kernel::library("dense/transpose_vectors", "transpose_vectors", spec)
        } else {
            Kernel::library("dense/transpose_tiled", "transpose_tiled", words(spec))
        };
        let kernel = program.kernel(kernel);
        let (tiles_m, tiles_n) = (self.m.div_ceil(side), self.n.div_ceil(side));
        let params = TransposeParams { tiles_m: tiles_m as u32, tiles_n: tiles_n as u32, ..params };
        let workgroups = self.batch as u64 * tiles_m as u64 * tiles_n as u64;
        program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
    }
}

operands! {
    impl[T: Element,] Transpose, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(Transpose);

pub(super) const INFO: Operation = Operation {
    name: "transpose",
    about: "rows become columns",
    inputs: &[Input::new("x", "(m, n) or (batch, m, n)")],
    outputs: &[("output", "(n, m) or (batch, n, m)")],
    types: &HostData::TYPES,
    domains: &[("x", Domain::Bits)],
    make: Some(make),
    variants: Transpose::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    let [batch, m, n] = match *x.shape() {
        [m, n] => [1, m, n],
        _ => asked.dims("x", &x)?,
    };
    let op = Transpose::batched(batch, m, n).variant(asked.variant());
    let mut shape = x.shape().to_vec();
    let axes = shape.len();
    shape.swap(axes - 2, axes - 1);
    by_type!(asked, x.dtype(), [f32, f16, i32, u32, u8, i8], T => {
        Ok(OpCall::new::<T>(op, vec![Role::Given(x), Role::Result(shape)]))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let types = [DType::U8, DType::F16, DType::F32, DType::U64];
    let shapes = [(1, 100, 200), (3, 101, 67)];
    let all = types.into_iter().flat_map(|t| shapes.map(|s| (t, s)));
    all.map(|(t, (batch, m, n))| Transpose::batched(batch, m, n).variant(variant).lower_as(t, profile)).collect()
}

/// Counts the segments that a subgroup loads and stores.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (m, n) = (subject.param("m")?, subject.param("n")?);
    match subject.program.variant() {
        "naive" if subject.element_bytes() >= 4 => Some(vec![
            subject.transactions("loads", |lane| lane % m * n + lane / m)?,
            subject.transactions("stores", |lane| lane)?,
        ]),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
