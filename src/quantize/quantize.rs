use super::codes::{Code, KIND, Scales, Spans, fragment};
use crate::program::prelude::*;
use crate::program::rows::{RowTile, RowsParams, check_rows, policy, reduction, tile};
use std::marker::PhantomData;

/// Encodes elements as bytes: `output = nearest(x / scale)` with `scale = max|x| / largest` of each row, each
/// group, or all.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::quantize::Quantize;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, -127.0, 3.0, 0.4, 2.0, 254.0, -8.0, 0.0])?; // 2 rows of 4
/// let (output, scale) = (gpu.alloc::<i8>(8)?, gpu.alloc::<f32>(2)?);
/// let encode = Quantize::<i8>::new(2, 4).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// encode.record(&mut rec, &x, &output, &scale)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [1, -127, 3, 0, 1, 127, -4, 0]);
/// assert!((scale.read()?[1] - 2.0).abs() < 1e-6);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::quantize`](crate::Gpu::quantize).
///
/// # Shapes
/// `x` and `output` have `rows * n` elements, row-major; the last axis of a tensor is the row. Operands are `x`,
/// `output`, `scale`, in this order. [`scales`](Self::scales) sets the elements that share a scale, and so the
/// number of scales: `rows` (the default), 1, or `rows * n / group`. Bytes are dense, four to a 32-bit word from
/// its lowest byte, for any n. [`with_scale`](Self::with_scale) reads a given `scale` instead, as the second
/// operand. Either extent may be 0. Each operand must be a wgpu buffer of its own.
///
/// `x` is of f32 or f16. `Quantize<i8>` writes signed bytes, symmetric, from -127 to 127, so `largest` is 127.
/// `Quantize<u8>` writes floats of 8 bits, E4M3, whose largest is 448.
///
/// # Precision and determinism
/// Quotients are rounded to the nearest code, ties to even. An f32 quotient that is an ULP or two off may go to the
/// neighbour where `x / scale` lies halfway. The largest magnitude is that of the finite elements. Infinities
/// become the largest code of their sign; NaN becomes 0 in `i8` and 0x7f, which is NaN, in `u8`. The scale is 0 if
/// all elements are zero, or so small that their scale would be subnormal; elements with scale 0 are rounded
/// unscaled. The same device gives the same bits.
///
/// The root mean square error over the root mean square of normally distributed elements (n = 4096): `i8` 0.9 % by
/// rows, 1.1 % for a tensor of 64 rows, 0.6 % by groups of 64; `u8` 2.7 % by any.
///
/// # Cost
/// `whole`: one dispatch, every element is read once. `parts`: three dispatches, every element is read twice, 4
/// bytes of scratch for each scale. With given scales: one dispatch, one read.
///
/// # Variants
/// `whole` keeps a row, or group, in the registers of at most one workgroup: up to 16384 elements (4096 on
/// processors), a multiple of 4. `parts` finds the largest magnitudes in a pass before, and takes any shape. `auto`
/// (the default) takes `whole` where it can.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a group that is not 32 to 128 or does not divide n;
///   `whole` if n is no multiple of 4, the matrix has one scale, or scales are given; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer; a row above the largest binding
///   or above the capacity of `whole`.
///
/// # Algorithm
/// `shaders/quantize/quantize_rows.wgsl`; for `parts` it finds the largest magnitudes, and `quantize_words.wgsl`
/// encodes. With `int8.wgsl` or `fp8.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantize<Q> {
    spans: Spans,
    given: bool,
    variant: String,
    code: PhantomData<Q>,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("whole", "a row in the registers of one workgroup, or of a part of one: one read, one write"),
    Variant::portable("parts", "largest magnitudes of parts of rows, joined, then applied: two reads, one write"),
];

kernel_params! {
    struct QuantizeParams {
        len: u32,
        first: u32,
        n: u32,
        spans: u32,
        lanes: u32,
    }
}

kernel_params! {
    struct ClearScalesParams {
        words: u32,
    }
}

const WORKGROUP_SIZE: u64 = 256;
/// Words of a thread.
const ITEMS_PER_THREAD: u64 = 4;

/// Counts the workgroups for `len` elements; a thread takes words of four.
pub(super) fn workgroups(len: u64) -> u64 {
    len.div_ceil(4 * WORKGROUP_SIZE * ITEMS_PER_THREAD)
}

impl<Q: Code> Quantize<Q> {
    /// Encodes `rows` rows of `n` elements, with a scale for each row.
    pub fn new(rows: usize, n: usize) -> Self {
        let spans = Spans { op: "quantize", rows, n, scales: Scales::Row };
        Self { spans, given: false, variant: "auto".into(), code: PhantomData }
    }

    /// Sets the elements that share a scale; [`Scales::Row`] by default.
    #[must_use]
    pub fn scales(mut self, scales: Scales) -> Self {
        self.spans.scales = scales;
        self
    }

    /// Reads `scale` instead of writing it. With a scale of 0 elements are rounded unscaled.
    #[must_use]
    pub fn with_scale(mut self) -> Self {
        self.given = true;
        self
    }

    /// Returns the number of elements that share a scale, counted along `x`. Pass it to
    /// [`reference::quantize`](crate::reference::quantize()).
    pub fn span(&self) -> usize {
        self.spans.spans()[1]
    }

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (op, given) = (self.spans.op, self.given);
        let len = self.spans.len()?;
        let [spans, n] = self.spans.spans();
        let policy = policy(profile);
        let whole = tile((n as u64).div_ceil(4).max(1), &policy);
        let fits = whole.vec4s <= policy.max;
        let whole_words = n.is_multiple_of(4) && self.spans.scales != Scales::Tensor;
        let (variant, decision) = choose(op, &self.variant, VARIANTS, profile, || {
            if given {
                ("parts", "scales are given: one pass encodes".into())
            } else if self.spans.scales == Scales::Tensor {
                ("parts", "one scale for all needs a pass over all elements first".into())
            } else if !whole_words {
                ("parts", format!("rows of {n} elements do not begin at words"))
            } else if fits {
                ("whole", format!("{} threads hold {n} elements: one read", whole.lanes))
            } else {
                ("parts", format!("{n} elements exceed the registers of {} threads", whole.lanes))
            }
        })?;
        let in_rows = variant.name == "whole";
        if in_rows && (given || !whole_words) {
            return Err(err!(
                InvalidArgument,
                "{op}: `whole` needs rows of a multiple of 4 and finds their scales; these have {n}, with {:?}; take \
                 `parts` or `auto`",
                self.spans.scales
            ));
        }
        if in_rows && !fits {
            return Err(err!(
                TooLarge,
                "{op}: a row of {n} exceeds the registers of {} threads on {}, {} elements; take `parts` or `auto`",
                whole.lanes,
                profile.name,
                4 * whole.lanes * policy.max
            ));
        }
        let mut program = Program::new(op, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("x", dtype, len, Access::Read));
        let output = operand("output", Q::DTYPE, len, Access::Write);
        if given {
            program.operands.push(operand("scale", DType::F32, spans, Access::Read));
            program.operands.push(output);
        } else {
            program.operands.push(output);
            program.operands.push(operand("scale", DType::F32, spans, Access::Write));
        }
        program.cost = Cost::of(3.0 * len as f64, &program.operands);
        let scale = if given { 1 } else { 2 };
        profile.check_bindings(op, &program.operands[scale..=scale], "take fewer rows in a call")?;
        crate::shape::index_u32(op, "elements", len)?;
        // With one scale for all, or with given scales, at most a row is read together.
        let row = match self.spans.scales {
            _ if given => 1,
            Scales::Tensor => self.spans.n,
            _ => n,
        };
        check_rows(op, &program.operands[0], row, profile)?;
        if len == 0 {
            // Empty rows have scales of 0.
            if !given && spans > 0 {
                let scale = Binding::operand(2, &program.operands);
                clear(&mut program, spans, scale);
            }
            return Ok(program);
        }
        let work = QuantizeLowering { quantize: self, dtype, len, spans, n, profile };
        if given {
            work.words(&mut program, None);
        } else if in_rows {
            work.rows(&mut program, whole, None);
        } else {
            work.parts(&mut program);
        }
        Ok(program)
    }
}

fn clear(program: &mut Program, words: usize, binding: Binding) {
    let kernel = program.kernel(Kernel::library("primitives/scan_clear", "scan_clear", Spec::new()));
    let grid = Grid::fold((words as u64).div_ceil(WORKGROUP_SIZE));
    program.dispatch(kernel, &ClearScalesParams { words: words as u32 }, vec![binding], grid);
}

struct QuantizeLowering<'a, Q> {
    quantize: &'a Quantize<Q>,
    dtype: DType,
    len: usize,
    spans: usize,
    n: usize,
    profile: &'a DeviceProfile,
}

impl<Q: Code> QuantizeLowering<'_, Q> {
    fn element_spec(&self, vectors: bool) -> Spec {
        Spec::new()
            .slot("element", element_fragment(self.dtype))
            .slot("codes", fragment::<Q>())
            .flag("HALVES", self.dtype == DType::F16)
            .flag("VECTORS", vectors)
    }

    /// Processes rows in registers; with `largest`, only joins their magnitudes there.
    fn rows(&self, program: &mut Program, tile: RowTile, largest: Option<Binding>) {
        let measure = largest.is_some();
        // All rows share one scale: the rows of the matrix serve as well as one row of all elements.
        let tensor = self.quantize.spans.scales == Scales::Tensor;
        let [rows, n] = if tensor { [self.quantize.spans.rows, self.quantize.spans.n] } else { [self.spans, self.n] };
        let workgroup = tile.lanes.max(policy(self.profile).workgroup);
        let vectors = n.is_multiple_of(4);
        // Halves that do not begin at words may touch one word more.
        let slack = if self.dtype == DType::F16 && !vectors { 2 } else { 0 };
        let part_len = if measure { tile.elements() - slack } else { n as u64 };
        let parts = (n as u64).div_ceil(part_len);
        let spec = reduction(tile.lanes, workgroup, self.profile)
            .slot("element", element_fragment(self.dtype))
            .slot("codes", fragment::<Q>())
            .constant("VEC4S", tile.vec4s as u32)
            .constant("SLOTS", 1u32)
            .flag("HALVES", self.dtype == DType::F16)
            .flag("VECTORS", vectors)
            .flag("WHOLE", false)
            .flag("MEASURE", measure);
        let spec = if measure { spec.flag("TENSOR", tensor) } else { spec };
        let kernel = program.kernel(Kernel::library("quantize/quantize_rows", "quantize_rows", spec));
        let size = self.dtype.size() as u64;
        let row_bytes = n as u64 * size;
        let chunks: Vec<_> = if measure {
            self.profile.chunks(rows as u64, row_bytes).collect()
        } else {
            self.profile.aligned_chunks(rows as u64, row_bytes).collect()
        };
        for chunk in chunks {
            let span = chunk.span(row_bytes);
            let mut bindings = vec![span.of(Resource::Operand(0))];
            match largest {
                Some(largest) => bindings.push(largest),
                None => {
                    bindings.push(chunk.of(Resource::Operand(1), n as u64));
                    bindings.push(chunk.of(Resource::Operand(2), 4));
                }
            }
            let params = RowsParams {
                rows: chunk.count as u32,
                n: n as u32,
                parts: parts as u32,
                part_len: part_len as u32,
                origin: (span.before / size) as u32,
                first: chunk.first as u32,
                eps: 0.0,
                pad: 0.0,
            };
            let groups = (chunk.count * parts).div_ceil(workgroup / tile.lanes);
            program.dispatch(kernel, &params, bindings, Grid::fold(groups));
        }
    }

    /// Encodes words by largest magnitudes, or by given scales.
    fn words(&self, program: &mut Program, largest: Option<Binding>) {
        let vectors = self.len.is_multiple_of(4);
        let spec = self
            .element_spec(vectors)
            .constant("ITEMS_PER_THREAD", ITEMS_PER_THREAD as u32)
            .flag("SHARED", self.quantize.spans.shared())
            .flag("GIVEN", largest.is_none());
        let kernel = program.kernel(Kernel::library("quantize/quantize_words", "quantize_words", spec));
        let output = if largest.is_some() { 1 } else { 2 };
        // Each element is a row.
        let size = self.dtype.size() as u64;
        for chunk in self.profile.aligned_chunks(self.len as u64, size) {
            let scale = largest.unwrap_or_else(|| Binding::operand(1, &program.operands));
            let mut bindings =
                vec![chunk.of(Resource::Operand(0), size), scale, chunk.of(Resource::Operand(output), 1)];
            if largest.is_some() {
                bindings.push(Binding::operand(2, &program.operands));
            }
            let groups = workgroups(chunk.count);
            let params = QuantizeParams {
                len: chunk.count as u32,
                first: chunk.first as u32,
                n: self.n as u32,
                spans: if chunk.first == 0 { self.spans as u32 } else { 0 },
                lanes: (groups * WORKGROUP_SIZE) as u32,
            };
            program.dispatch(kernel, &params, bindings, Grid::fold(groups));
        }
    }

    /// Finds the largest magnitudes, then encodes words.
    fn parts(&self, program: &mut Program) {
        let policy = policy(self.profile);
        let n = if self.quantize.spans.scales == Scales::Tensor { self.quantize.spans.n } else { self.n };
        // A row may have two elements more if halves do not begin at words.
        let short = tile((n as u64 + 2).div_ceil(4), &policy);
        let tile = if short.vec4s <= policy.wanted {
            short
        } else {
            RowTile { lanes: policy.workgroup, vec4s: policy.wanted }
        };
        let largest = program.scratch(4 * self.spans as u64);
        clear(program, self.spans, largest);
        self.rows(program, tile, Some(largest));
        self.words(program, Some(largest));
    }
}

operands! {
    impl[T: Element, Q: Code,] Quantize<Q>, T {
        fn record(x: T, output: Q, scale: f32);
    }
}

lowered_as!(<Q: Code> Quantize<Q>: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "quantize",
    about: "elements encoded as bytes, with a scale for each row, each group, or all",
    inputs: &[Input::new("x", "(..., n)")],
    outputs: &[
        ("output", "as x"),
        ("[scale]", "f32 (...); f32 () with per tensor; f32 (..., n / group) with per group"),
    ],
    types: &[DType::F32, DType::F16],
    options: &[
        KIND,
        Setting::word("per", || vec!["row", "tensor", "group"]),
        Setting::number("group", "64"),
        Setting::array("scale", "f32 (...), () or (..., n / group)"),
    ],
    make: Some(make),
    variants: Quantize::<i8>::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    match asked.settings().choice("kind")? {
        <u8 as Code>::NAME => call_of::<u8>(asked, x),
        _ => call_of::<i8>(asked, x),
    }
}

fn call_of<Q: Code>(asked: &mut Asked<'_>, x: HostArray) -> Result<OpCall> {
    let (rows, n) = asked.rows("x", &x)?;
    let group = asked.settings().number("group")?;
    // The axes before the last.
    let mut of_scale = x.shape()[..x.shape().len() - 1].to_vec();
    let scales = match asked.settings().choice("per")? {
        "tensor" => {
            of_scale.clear();
            Scales::Tensor
        }
        "group" => {
            of_scale.push(n.checked_div(group).unwrap_or(0));
            Scales::Group(group)
        }
        _ => Scales::Row,
    };
    let mut op = Quantize::<Q>::new(rows, n).scales(scales).variant(asked.variant());
    let (dtype, output) = (x.dtype(), Role::Result(x.shape().to_vec()));
    let operands = match asked.named_of("scale", &of_scale, DType::F32)? {
        Some(scale) => {
            op = op.with_scale();
            vec![Role::Given(x), Role::Given(scale), output]
        }
        None => vec![Role::Given(x), output, Role::Result(of_scale)],
    };
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    programs.extend(samples_of::<i8>(profile, variant)?);
    programs.extend(samples_of::<u8>(profile, variant)?);
    Ok(programs)
}

fn samples_of<Q: Code>(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let shapes: &[(usize, usize)] =
        if variant == "whole" { &[(3, 4), (7, 1000), (1, 4096)] } else { &[(3, 5), (2, 1001), (7, 1000), (4, 6)] };
    for &(rows, n) in shapes {
        let op = Quantize::<Q>::new(rows, n).variant(variant);
        let mut all = vec![op.clone()];
        if variant == "parts" {
            all.push(op.clone().scales(Scales::Tensor));
            let given = op.with_scale();
            programs.extend([Op::<f32>::lower(&given, profile)?, Op::<f16>::lower(&given, profile)?]);
        } else {
            all.push(Quantize::new(rows, 64 * n).scales(Scales::Group(64)).variant(variant));
        }
        for op in all {
            programs.extend([Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?]);
        }
    }
    Ok(programs)
}
