//! Reduction of an array, or of each row of a matrix, to one value.

use super::operator::{Accumulator, Operator, Reducer, Sum, by_operator};
use super::{ArgMax, ArgMin, CustomOp, Max, Min, Prod};
use crate::analysis::{divergence, reduction_operations};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::{
    Access, Asked, Binding, Bits, Comparison, Cost, DeviceProfile, Form, Grid, Input, Kernel, Op, Operand,
    Operation, Program, Resource, Role, Setting, Variant, by_type, choose_with, deterministic,
    element_fragment, kernel_params, operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, index_u32};
use half::f16;

/// `output[r] = input[r, 0] + input[r, 1] + ... + input[r, n - 1]`, for any associative operator.
///
/// # Shapes
/// `input` has `rows * n` elements, row-major; `output` has `rows`. [`Reduce::new`] is one row. Any
/// length from 0 to the largest buffer: what is above the device's largest binding is taken in pieces.
/// The two must be different wgpu buffers.
///
/// # Types
/// f32, f16, i32, u32, u8 and i8. Sums and products of bytes have 32 bits; [`ArgMin`] and [`ArgMax`]
/// give u32; [`CustomOp`] takes f32, f16, i32 and u32.
///
/// # Precision and determinism
/// Floats are combined in f32, in a tree: the error of a sum is at most about
/// `(log2(n) + n / (workgroups * 256)) * 2^-24 * sum |x|`. Same device, same bits, except in the variant
/// `atomic` for floating sums and products, which [`deterministic`](Reduce::deterministic) rules out. Integers wrap. `Min` and
/// `Max` give NaN if there is one, `ArgMin` and `ArgMax` the first position, NaN before all.
///
/// # Cost
/// `rows * (n - 1)` operations, every element read once. Two dispatches (one where a row needs one
/// workgroup; the ladder variants take one for every factor of 256 or 512), and scratch of at most
/// 16 KiB a row (the ladder variants: a 64th of the input).
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) for a minimum, maximum or position of nothing;
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type or variant that operator or device do not have.
///
/// # Algorithm
/// Two-pass tree reduction, M. Harris (2007), as in CUB's `DeviceReduce`; `shaders/primitives/reduce_coarsened.wgsl`.
///
/// # Example
/// ```
/// use tilework::{ArgMax, Reduce, Sum};
/// use tilework::program::{DeviceProfile, Op};
///
/// let all = Reduce::new(Sum, 1_000_000);
/// let by_rows = Reduce::rows(ArgMax, 1000, 1000).variant("subgroup");
/// assert_eq!(Op::<f32>::lower(&all, &DeviceProfile::h100())?.variant(), "coarsened");
/// assert_eq!(Op::<f32>::lower(&by_rows, &DeviceProfile::h100())?.operands[1].len, 1000);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduce<O = Sum> {
    op: O,
    rows: usize,
    n: usize,
    variant: String,
    deterministic: bool,
}

impl<O> Reduce<O> {
    /// All of an array of `n` elements to one value.
    pub fn new(op: O, n: usize) -> Self {
        Self::rows(op, 1, n)
    }

    /// Each of `rows` rows of `n` elements to one value.
    pub fn rows(op: O, rows: usize, n: usize) -> Self {
        Self { op, rows, n, variant: "auto".into(), deterministic: false }
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    deterministic!(deterministic);
}

impl Reduce {
    /// Every way to run a reduction: the ladder, and `coarsened`, which is the fast one.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[
            Variant::portable(
                "interleaved",
                "tree with strides 1, 2, 4, ...: divergent, keeps the order of operands",
            ),
            Variant::portable(
                "sequential",
                "tree with strides n/2, n/4, ...: active invocations stay together",
            ),
            Variant::portable("shared", "each invocation adds two elements on loading, then the tree"),
            Variant::subgroups("subgroup", "the tree's last steps are shuffles in a subgroup"),
            Variant::subgroups(
                "two-stage-subgroup",
                "subgroups reduce by shuffles, then their totals: one barrier",
            ),
            Variant::portable(
                "coarsened",
                "a bounded number of workgroups walks the input by vec4; two passes",
            ),
            Variant::portable("atomic", "workgroups combine their totals by an atomic; for comparison")
                .in_any_order(),
        ];
        VARIANTS
    }
}

operands! {
    impl[T: Element, O: Reducer<T>,] Reduce<O>, T {
        fn record(input: T, output: O::Output);
    }
}

impl<T: Element, O: Reducer<T>> Op<T> for Reduce<O> {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        Lowering::new(self, &self.op.operator(), T::DTYPE, profile)?.run()
    }
}

kernel_params! {
    struct Params {
        rows: u32,
        row_stride: u32,
        len: u32,
        column: u32,
        origin: u32,
        parts: u32,
        part_len: u32,
        part_stride: u32,
        first: u32,
    }
}

kernel_params! {
    struct AtomicParams { rows: u32, row_stride: u32, len: u32, origin: u32, parts: u32, first: u32 }
}

kernel_params! { struct PackParams { elements: u32 } }

const WORKGROUP_SIZE: u64 = 256;

/// Constants that depend on the device.
struct Policy {
    /// Workgroups that together walk the input of the coarsened variant.
    workgroups: u64,
}

fn policy(profile: &DeviceProfile) -> Policy {
    if profile.is_cpu() {
        // More workgroups than a processor has cores gain nothing.
        Policy { workgroups: 64 }
    } else {
        // Six a multiprocessor. GB/s of sum, min, arg-max of 2^28 f32 on an H100 80GB HBM3, Vulkan, driver
        // 580.159.04: 528 gives 3058, 3033, 2994; 792 gives 3069, 3049, 3008; 1056 gives 3070, 3058, 2664; 2112
        // gives 3040, 2977, 2864; each a range of its own instead of every 792nd step: at most 3030.
        Policy { workgroups: 792 }
    }
}

/// A part of the input that one binding holds: some whole rows, or a range of columns of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    first_row: u64,
    rows: u64,
    column: u64,
    len: u64,
}

struct Lowering<'a> {
    op: &'a Operator,
    dtype: DType,
    output: DType,
    acc: Accumulator,
    rows: u64,
    n: u64,
    variant: &'static str,
    profile: &'a DeviceProfile,
    pieces: Vec<Piece>,
    program: Program,
}

impl<'a> Lowering<'a> {
    fn new<O>(desc: &Reduce<O>, op: &'a Operator, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        let name = op.name();
        let output = op.output(dtype).map_err(|e| e.context("reduce"))?;
        let len = elements("reduce", "input", &[desc.rows, desc.n])?;
        if desc.n == 0 && desc.rows > 0 && !op.has_identity() {
            return Err(err!(
                Shape,
                "reduce: the {name} of 0 elements is not defined (input {} x 0); only sum, prod and operators with an \
                 identity reduce nothing",
                desc.rows
            ));
        }
        let bits = Bits { rounds: op.rounds(dtype), deterministic: desc.deterministic };
        let (variant, decision) =
            choose_with("reduce", &desc.variant, Reduce::variants(), profile, bits, || {
                if len <= WORKGROUP_SIZE as usize && op.commutes() {
                    ("sequential", "one workgroup with one element an invocation".into())
                } else {
                    ("coarsened", "reads by vec4 at the speed of memory".into())
                }
            })?;
        let determinism = variant.determinism(bits.rounds);
        let variant = variant.name;
        if !op.commutes() && !matches!(variant, "interleaved" | "coarsened") {
            return Err(err!(
                Unsupported,
                "reduce: the variant `{variant}` changes the order of operands, and this operator was not declared \
                 commutative; declare it, or take `interleaved` or `coarsened`"
            ));
        }
        if variant == "atomic" && op.accumulator() == Accumulator::Pair {
            return Err(err!(
                Unsupported,
                "reduce: the variant `atomic` keeps 32 bits a row, and {name} needs a key and an index; take `coarsened`"
            ));
        }
        let (rows, n) = (desc.rows as u64, desc.n as u64);
        let limits = &profile.limits;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let mut program = Program::new("reduce", decision);
        program.operands = vec![
            operand("input", dtype, len, Access::Read),
            operand("output", output, desc.rows, Access::Write),
        ];
        for o in &program.operands {
            if o.bytes() > limits.max_buffer_size {
                return Err(err!(
                    TooLarge,
                    "reduce: {} of {} elements of {} has {} bytes; the largest buffer of {} has {}; reduce in pieces",
                    o.name,
                    o.len,
                    o.dtype,
                    o.bytes(),
                    profile.name,
                    limits.max_buffer_size
                ));
            }
        }
        if rows * 4 > limits.max_storage_binding {
            return Err(err!(
                TooLarge,
                "reduce: {rows} results need a binding of {} bytes; the largest of {} has {}; reduce fewer rows at a time",
                rows * 4,
                profile.name,
                limits.max_storage_binding
            ));
        }
        if op.accumulator() == Accumulator::Pair {
            index_u32("reduce", "positions up to n", desc.n)?;
        }
        program.cost = Cost {
            flop: rows as f64 * n.saturating_sub(1) as f64,
            bytes: program.operands.iter().map(|o| o.bytes() as f64).sum(),
        };
        program.determinism = determinism;
        let pieces = split(rows, n, dtype.size() as u64, limits.max_storage_binding);
        Ok(Self { op, dtype, output, acc: op.accumulator(), rows, n, variant, profile, pieces, program })
    }

    fn run(mut self) -> Result<Program> {
        if self.rows == 0 {
            return Ok(self.program);
        }
        let narrow = self.output.size() < 4;
        let words = if narrow { self.program.scratch(self.rows * 4) } else { self.whole(1) };
        match self.variant {
            "coarsened" => self.coarsened(words)?,
            "atomic" => self.atomic(words)?,
            _ => self.ladder(words)?,
        }
        if narrow {
            let spec = Spec::new()
                .slot("element", element_fragment(self.output))
                .flag("FLOAT", self.output.is_float());
            let kernel = self.program.kernel(Kernel::library("primitives/reduce_pack", "pack_results", spec));
            let bindings = vec![words, self.whole(1)];
            let grid = Grid::fold((self.rows * self.output.size() as u64).div_ceil(4 * WORKGROUP_SIZE));
            self.program.dispatch(kernel, &PackParams { elements: self.rows as u32 }, bindings, grid);
        }
        Ok(self.program)
    }

    fn whole(&self, operand: usize) -> Binding {
        Binding::operand(operand, &self.program.operands)
    }

    fn spec(&self) -> Spec {
        self.op.specialise(Spec::new(), self.dtype)
    }

    /// Binding of the input that covers `piece`, and where the piece begins in it, in elements.
    fn bind(&self, piece: Piece) -> (Binding, u32) {
        let size = self.dtype.size() as u64;
        let first = (piece.first_row * self.n + piece.column) * size;
        let offset = first / 256 * 256;
        let bytes = if piece.rows == 1 { piece.len } else { piece.rows * self.n } * size;
        let binding = Binding { resource: Resource::Operand(0), offset, size: first - offset + bytes };
        (binding, ((first - offset) / size) as u32)
    }

    /// A scratch area for one accumulator for each of `count` results.
    fn partials(&mut self, count: u64) -> Result<Binding> {
        let bytes = count * self.acc.bytes();
        let limit = self.profile.limits.max_storage_binding.min(u64::from(u32::MAX));
        if bytes > limit {
            return Err(err!(
                TooLarge,
                "reduce: the variant `{}` needs {bytes} bytes of scratch, {limit} is the most on {}; take `coarsened`",
                self.variant,
                self.profile.name
            ));
        }
        Ok(self.program.scratch(bytes))
    }

    /// One element (or two) an invocation, level after level.
    fn ladder(&mut self, words: Binding) -> Result<()> {
        let (tree, items, subgroups) = match self.variant {
            "interleaved" => ("workgroup/reduce_interleaved", 1, false),
            "sequential" => ("workgroup/reduce_sequential", 1, false),
            "shared" => ("workgroup/reduce_sequential", 2, false),
            "subgroup" => ("workgroup/reduce_shuffle", 2, true),
            _ => ("workgroup/reduce_two_stage", 2, true),
        };
        let tile = WORKGROUP_SIZE * items;
        let spec = self
            .spec()
            .slot("tree", Fragment::Library(tree))
            .constant("ITEMS_PER_THREAD", items as u32)
            .flag("SUBGROUPS", subgroups);
        let kernel = |program: &mut Program, from_partials, last| {
            let spec = spec.clone().flag("FROM_PARTIALS", from_partials).flag("FINAL", last);
            program.kernel(Kernel::library("primitives/reduce_tree", "reduce_tiles", spec))
        };
        let parts_of = |len: u64| len.div_ceil(tile).max(1);
        let mut parts: u64 = self.parts_per_row(parts_of);
        let mut source = if parts == 1 { words } else { self.partials(self.rows * parts)? };
        let first = kernel(&mut self.program, false, parts == 1);
        self.each_piece(first, &[], source, parts, parts_of, |_, _| 0);
        while parts > 1 {
            let next = parts.div_ceil(tile);
            let target = if next == 1 { words } else { self.partials(self.rows * next)? };
            let k = kernel(&mut self.program, true, next == 1);
            let params = Params {
                rows: self.rows as u32,
                row_stride: parts as u32,
                len: parts as u32,
                column: 0,
                origin: 0,
                parts: next as u32,
                part_len: 0,
                part_stride: next as u32,
                first: 0,
            };
            self.program.dispatch(k, &params, vec![source, target], Grid::fold(self.rows * next));
            (source, parts) = (target, next);
        }
        Ok(())
    }

    /// Results that one row gives, over all pieces that hold a part of it.
    fn parts_per_row(&self, parts_of: impl Fn(u64) -> u64) -> u64 {
        let of_row_0 = self.pieces.iter().filter(|p| p.first_row == 0);
        of_row_0.map(|p| parts_of(p.len)).sum()
    }

    /// Dispatches `kernel` over every piece: one workgroup for each part of each row. `extra` are bindings
    /// after the output that show the input again.
    fn each_piece(
        &mut self,
        kernel: usize,
        extra: &[fn(Binding) -> Binding],
        target: Binding,
        part_stride: u64,
        parts_of: impl Fn(u64) -> u64,
        rows_per_workgroup: impl Fn(&Piece, u64) -> u64,
    ) {
        let mut done = 0; // parts of the current row that earlier pieces gave
        for piece in self.pieces.clone() {
            if piece.column == 0 {
                done = 0;
            }
            let parts = parts_of(piece.len);
            let (input, origin) = self.bind(piece);
            let params = Params {
                rows: piece.rows as u32,
                row_stride: if piece.rows == 1 { 0 } else { self.n as u32 },
                len: piece.len as u32,
                column: piece.column as u32,
                origin,
                parts: parts as u32,
                part_len: piece.len.div_ceil(parts) as u32,
                part_stride: part_stride as u32,
                first: (piece.first_row * part_stride + done) as u32,
            };
            let rows = piece.rows.div_ceil(rows_per_workgroup(&piece, parts).max(1));
            let bindings = [input, target].into_iter().chain(extra.iter().map(|view| view(input))).collect();
            self.program.dispatch(kernel, &params, bindings, Grid::fold(rows * parts));
            done += parts;
        }
    }

    /// A bounded number of workgroups walks the input; a second pass joins their results.
    fn coarsened(&mut self, words: Binding) -> Result<()> {
        let ordered = !self.op.commutes();
        let bytes = self.n * self.rows * self.dtype.size() as u64;
        let vectors = bytes >= 16 && !ordered;
        let per_vector = 16 / self.dtype.size() as u64;
        let lanes = lanes_per_row(self.rows, self.n.div_ceil(per_vector));
        let subgroups = self.profile.features.subgroups && !ordered;
        let workgroups = policy(self.profile).workgroups;
        let rows = self.rows;
        let parts_of = move |len: u64| {
            if lanes < WORKGROUP_SIZE {
                return 1;
            }
            // At least two steps of four vec4 a lane, or a second pass costs more than it brings.
            let useful = len.div_ceil(per_vector * WORKGROUP_SIZE * 8);
            (workgroups / rows).clamp(1, useful.max(1))
        };
        let kernel = |me: &mut Self, lanes: u64, vectors: bool, from_partials: bool, last: bool| {
            let two_stage = subgroups && lanes == WORKGROUP_SIZE;
            let spec = me
                .spec()
                .constant("LANES_PER_ROW", lanes as u32)
                .flag("VECTORS", vectors)
                .flag("ORDERED", ordered)
                .flag("TWO_STAGE", two_stage)
                .flag("FROM_PARTIALS", from_partials)
                .flag("FINAL", last);
            me.program.kernel(Kernel::library("primitives/reduce_coarsened", "reduce_rows", spec))
        };
        let parts = self.parts_per_row(parts_of);
        let target = if parts == 1 { words } else { self.partials(rows * parts)? };
        let first = kernel(self, lanes, vectors, false, parts == 1);
        let whole_vectors: fn(Binding) -> Binding = |b| Binding { size: b.size / 16 * 16, ..b };
        let extra: &[_] = if vectors { &[whole_vectors] } else { &[] };
        self.each_piece(first, extra, target, parts, parts_of, |_, _| WORKGROUP_SIZE / lanes);
        if parts > 1 {
            let lanes = lanes_per_row(rows, parts.div_ceil(4));
            let k = kernel(self, lanes, false, true, true);
            let params = Params {
                rows: rows as u32,
                row_stride: parts as u32,
                len: parts as u32,
                column: 0,
                origin: 0,
                parts: 1,
                part_len: parts as u32,
                part_stride: 1,
                first: 0,
            };
            self.program.dispatch(
                k,
                &params,
                vec![target, words],
                Grid::fold(rows.div_ceil(WORKGROUP_SIZE / lanes)),
            );
        }
        Ok(())
    }

    /// Identity, combine by atomics, finish.
    fn atomic(&mut self, words: Binding) -> Result<()> {
        let native = match (self.op, self.dtype.is_float()) {
            (Operator::Sum, false) => Some("NATIVE_ADD"),
            (Operator::Min, true) => Some("NATIVE_MIN"),
            (Operator::Max, true) => Some("NATIVE_MAX"),
            (Operator::Min, _) if matches!(self.dtype, DType::U32 | DType::U8) => Some("NATIVE_MIN"),
            (Operator::Max, _) if matches!(self.dtype, DType::U32 | DType::U8) => Some("NATIVE_MAX"),
            _ => None,
        };
        let spec = native.into_iter().fold(self.spec(), |spec, flag| spec.flag(flag, true));
        let mut kernel =
            |entry| self.program.kernel(Kernel::library("primitives/reduce_atomic", entry, spec.clone()));
        let [begin, combine, end] = ["set_identity", "reduce_into_totals", "finish_totals"].map(&mut kernel);
        let totals = self.partials(self.rows)?;
        let workgroups = policy(self.profile).workgroups;
        let all =
            AtomicParams { rows: self.rows as u32, row_stride: 0, len: 0, origin: 0, parts: 1, first: 0 };
        let by_row = Grid::fold(self.rows.div_ceil(WORKGROUP_SIZE));
        self.program.dispatch(begin, &all, vec![totals], by_row);
        for piece in self.pieces.clone() {
            let (input, origin) = self.bind(piece);
            let parts = piece.len.div_ceil(2 * WORKGROUP_SIZE).min((workgroups / self.rows).max(1));
            let params = AtomicParams {
                rows: piece.rows as u32,
                row_stride: if piece.rows == 1 { 0 } else { self.n as u32 },
                len: piece.len as u32,
                origin,
                parts: parts as u32,
                first: piece.first_row as u32,
            };
            if parts > 0 {
                self.program.dispatch(combine, &params, vec![totals, input], Grid::fold(piece.rows * parts));
            }
        }
        self.program.dispatch(end, &all, vec![totals, words], by_row);
        Ok(())
    }
}

/// Lanes that share a row of `vectors` vec4: as many as have four each to keep in flight, all 256 for one row.
fn lanes_per_row(rows: u64, vectors: u64) -> u64 {
    if rows == 1 { WORKGROUP_SIZE } else { (vectors / 4).next_power_of_two().min(WORKGROUP_SIZE) }
}

/// Cuts the input into pieces that one binding holds each.
fn split(rows: u64, n: u64, element: u64, binding: u64) -> Vec<Piece> {
    // A piece may begin up to 255 bytes into its binding.
    let room = (binding / 256 * 256).saturating_sub(256).max(256) / element;
    if rows * n <= room || n == 0 {
        return vec![Piece { first_row: 0, rows, column: 0, len: n }];
    }
    // Pieces of about equal size, so that none is too small for a vec4.
    let even = |total: u64, most: u64| total.div_ceil(total.div_ceil(most));
    if n <= room {
        let step = even(rows, room / n);
        let piece = |i| Piece { first_row: i * step, rows: step.min(rows - i * step), column: 0, len: n };
        return (0..rows.div_ceil(step)).map(piece).collect();
    }
    let room = even(n, room);
    let of_row = |row| {
        let piece = move |i| Piece { first_row: row, rows: 1, column: i * room, len: room.min(n - i * room) };
        (0..n.div_ceil(room)).map(piece)
    };
    (0..rows).flat_map(of_row).collect()
}

pub(super) const INFO: Operation = Operation {
    name: "reduce",
    about: "one value from all elements, or from each row",
    inputs: &[Input::new("input", "any shape")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8],
    options: &[
        Setting::word("op", || Operator::BUILT_IN.map(|op| op.name()).to_vec()),
        Setting::word("axis", || vec!["all", "last"]),
        Setting::flag("deterministic"),
    ],
    make: Some(make),
    variants: Reduce::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let input = asked.any("input")?;
    let (rows, n, shape) = if asked.settings().choice("axis")? == "all" {
        (1, input.len(), Vec::new())
    } else {
        let (rows, n) = asked.rows("input", &input)?;
        (rows, n, input.shape()[..input.shape().len() - 1].to_vec())
    };
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(shape)]);
    by_operator!(asked, [Sum, Prod, Min, Max, ArgMin, ArgMax], op => {
        let mut reduce = Reduce::rows(op, rows, n).variant(asked.variant());
        reduce.deterministic = asked.settings().has("deterministic");
        by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(Form::new::<T>(reduce, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    // All in one piece and in two passes; by short rows; by long rows; too short for a vec4.
    for (rows, n) in [(1, 1 << 20), (5000, 40), (3, 70_000), (1, 1)] {
        macro_rules! lower {
            ($($op:expr => $($t:ty),*;)*) => {$($(
                match Op::<$t>::lower(&Reduce::rows($op, rows, n).variant(variant), profile) {
                    Ok(program) => programs.push(program),
                    Err(e) if e.kind() == crate::ErrorKind::Unsupported => {}
                    Err(e) => return Err(e),
                }
            )*)*};
        }
        lower! {
            Sum => f32, f16, i32, u32, u8, i8;
            Prod => f32, u32;
            Min => f32, i32, u32, u8, i8;
            Max => f32, f16, i32, u32, u8;
            ArgMin => f32, u32;
            ArgMax => f32, f16, i32;
            custom.clone() => f32, i32;
            custom.clone().commutative() => f32;
        }
    }
    Ok(programs)
}

/// Of the trees: how many subgroups run both sides of the branch, over all steps.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let n = subject.program.operands.first()?.len as u64;
    let rows = subject.program.operands.get(1)?.len as u64;
    let mut facts =
        vec![fact("joins", (rows * reduction_operations(n.checked_div(rows)?)) as f64, "at the least")];
    let Some((_, interface)) = subject.kernel("reduce_tiles") else { return Some(facts) };
    let threads = interface.workgroup_size[0];
    let steps = threads.checked_ilog2()?;
    let divergent = |works: &dyn Fn(u32, u32) -> bool| {
        let of_step =
            |i| divergence([1; 3], [threads, 1, 1], subject.subgroup, |[t, ..]| u32::from(works(t, i)));
        (0..steps).map(|i| of_step(i).divergent).sum::<u64>() as f64
    };
    let of =
        format!("of {} subgroups, over {steps} steps of a tree", threads.div_ceil(subject.subgroup) * steps);
    match subject.program.variant() {
        "interleaved" => facts.push(fact("divergent", divergent(&|t, i| t % (2 << i) == 0), of)),
        "sequential" | "shared" => {
            facts.push(fact("divergent", divergent(&|t, i| t < threads >> (i + 1)), of));
        }
        _ => {}
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn lower<O: Reducer<f32>>(desc: &Reduce<O>, profile: &DeviceProfile) -> Result<Program> {
        Op::<f32>::lower(desc, profile)
    }

    #[test]
    fn pieces_cover_every_element_once() {
        for (rows, n, element, binding) in [
            (1, 1000, 4, 1 << 20),
            (7, 300, 4, 1024),
            (3, 5000, 4, 2048),
            (1, 100_000, 1, 4096),
            (5, 0, 4, 1024),
        ] {
            let pieces = split(rows, n, element, binding);
            let mut seen = 0;
            for p in &pieces {
                assert_eq!(p.first_row * n + p.column, seen, "{p:?}");
                assert!(p.rows == 1 || (p.column == 0 && p.len == n));
                assert!(p.rows * p.len * element + 255 <= binding || pieces.len() == 1, "{p:?}");
                seen += p.rows * p.len;
            }
            assert_eq!(seen, rows * n);
        }
    }

    #[test]
    fn a_buffer_above_one_binding_is_taken_in_pieces() {
        let profile = DeviceProfile::webgpu_defaults();
        let program = lower(&Reduce::new(Sum, 50_000_000), &profile).unwrap();
        assert_eq!(program.dispatches.len(), 3);
        assert!(
            program
                .dispatches
                .iter()
                .flat_map(|d| &d.bindings)
                .all(|b| b.size <= profile.limits.max_storage_binding)
        );
        assert_eq!(lower(&Reduce::new(Sum, 100_000_000), &profile).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn what_is_not_defined_is_refused() {
        let profile = DeviceProfile::webgpu_defaults();
        let kind = |r: Result<Program>| r.unwrap_err().kind();
        assert_eq!(kind(lower(&Reduce::new(Min, 0), &profile)), ErrorKind::Shape);
        assert_eq!(kind(lower(&Reduce::rows(ArgMax, 4, 0), &profile)), ErrorKind::Shape);
        assert_eq!(kind(lower(&Reduce::new(Sum, 9).variant("subgroup"), &profile)), ErrorKind::Unsupported);
        assert_eq!(kind(lower(&Reduce::new(Sum, 9).variant("magic"), &profile)), ErrorKind::InvalidArgument);
        assert_eq!(kind(lower(&Reduce::new(ArgMin, 9).variant("atomic"), &profile)), ErrorKind::Unsupported);
        assert_eq!(
            kind(lower(&Reduce::new(Sum, 9).variant("atomic").deterministic(), &profile)),
            ErrorKind::Unsupported
        );
        let custom = CustomOp::new("");
        assert_eq!(kind(lower(&Reduce::new(custom, 9).variant("shared"), &profile)), ErrorKind::Unsupported);
    }

    #[test]
    fn nothing_and_no_rows_are_defined_where_there_is_an_identity() {
        let profile = DeviceProfile::webgpu_defaults();
        assert_eq!(lower(&Reduce::new(Sum, 0), &profile).unwrap().dispatches.len(), 1);
        assert!(lower(&Reduce::rows(Min, 0, 9), &profile).unwrap().dispatches.is_empty());
    }
}
