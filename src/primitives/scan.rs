//! Prefix sums of an array, or of each row of a matrix, for any associative operator.

use super::lookback::Posts;
use super::operator::{Accumulator, OP, Operator, Reducer, Sum, by_operator};
use super::{CustomOp, DTYPES, Max, Min, Prod};
use crate::analysis::{
    brent_kung_operations, brent_kung_steps, kogge_stone_operations, reduction_operations,
};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::{
    self, Access, Asked, Binding, Bits, Comparison, Cost, DeviceProfile, Grid, Input, Kernel, Op, Operand,
    Operation, Program, Resource, Role, Setting, Variant, by_type, choose_with, deterministic, kernel_params,
    operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, index_u32};
use half::f16;

/// `output[r, i] = input[r, 0] + ... + input[r, i]`, for any associative operator.
///
/// # Shapes
/// `input` and `output` have `rows * n` elements, row-major, and each row is scanned by itself.
/// [`Scan::new`] is one row. Any length from 0 to the largest buffer: what is above the device's largest
/// binding is taken in pieces. The two must be different wgpu buffers.
///
/// # Forms
/// [`exclusive`](Scan::exclusive) leaves the element itself out: a row begins with the identity (0, 1, and
/// for `Min` and `Max` the greatest and least value of the type, infinities for floats).
/// [`reverse`](Scan::reverse) runs from the end of each row. The two combine.
///
/// # Types
/// f32, f16, i32 and u32, with [`Sum`], [`Prod`], [`Min`], [`Max`] and [`CustomOp`], which need not commute.
///
/// # Precision and determinism
/// Floats are combined in f32 and rounded to f16, if that is the type, at the end. The error of a sum is at
/// most `depth * 2^-24 * sum |x|` over what it covers, with a depth of about `64 + 3 log2(n) + n / 256`.
/// Integers wrap. `Min` and `Max` are NaN from the first NaN on. Same device, same bits, except for what
/// rounds (floating sums, products and operators of one's own) in the variant `lookback`, whose order of
/// combination depends on timing: [`deterministic`](Scan::deterministic) rules that out, and `auto` then
/// takes `hierarchical`.
///
/// # Cost
/// About `2 n` operations; `lookback` reads every element once, all others twice. Scratch: two words for
/// each tile of 2048 to 32768 elements (the ladder variants: of 256 words). Two dispatches, three for all but `lookback`,
/// one where a tile holds everything; and as many more as there are pieces.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type or variant that operator or device do not have.
///
/// # Algorithm
/// Single-pass scan with decoupled look-back, Merrill and Garland (2016), made independent of forward
/// progress by decoupled fallback, Smith, Levien and Owens (2025); `shaders/primitives/scan_tiles.wgsl` and
/// `scan_lookback.wgsl`. Rows are segments: the same kernels scan them at the same speed whatever their length.
///
/// # Example
/// ```
/// use tilework::{Scan, Sum};
/// use tilework::program::{DeviceProfile, Op};
///
/// let offsets = Scan::new(Sum, 1_000_000).exclusive(true);
/// let by_rows = Scan::rows(Sum, 1000, 1000).variant("kogge-stone");
/// let same_bits = Scan::new(Sum, 1_000_000).deterministic();
/// assert_eq!(Op::<u32>::lower(&offsets, &DeviceProfile::h100())?.variant(), "lookback");
/// assert_eq!(Op::<u32>::lower(&by_rows, &DeviceProfile::h100())?.dispatches.len(), 3);
/// assert_eq!(Op::<u32>::lower(&same_bits, &DeviceProfile::h100())?.variant(), "lookback");
/// assert_eq!(Op::<f32>::lower(&same_bits, &DeviceProfile::h100())?.variant(), "hierarchical");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<O = Sum> {
    op: O,
    rows: usize,
    n: usize,
    form: Form,
}

/// What scans and segmented scans have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) exclusive: bool,
    pub(super) reverse: bool,
    pub(super) variant: String,
    pub(super) deterministic: bool,
    /// One in so many tiles posts nothing; 0 for none.
    pub(super) leave_out: u32,
}

impl Form {
    pub(super) fn new() -> Self {
        Self { exclusive: false, reverse: false, variant: "auto".into(), deterministic: false, leave_out: 0 }
    }

    /// What the options say; those that an op does not have are not given.
    pub(super) fn of(asked: &Asked<'_>) -> Self {
        let [exclusive, reverse, deterministic] =
            ["exclusive", "reverse", "deterministic"].map(|flag| asked.settings().has(flag));
        Self { exclusive, reverse, variant: asked.variant().into(), deterministic, leave_out: 0 }
    }
}

impl<O> Scan<O> {
    /// All of an array of `n` elements.
    pub fn new(op: O, n: usize) -> Self {
        Self::rows(op, 1, n)
    }

    /// Each of `rows` rows of `n` elements.
    pub fn rows(op: O, rows: usize, n: usize) -> Self {
        Self { op, rows, n, form: Form::new() }
    }

    /// Whether a result leaves its own element out. The default is that it does not.
    #[must_use]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.form.exclusive = exclusive;
        self
    }

    /// Whether rows are scanned from their end. The default is from their beginning.
    #[must_use]
    pub fn reverse(mut self, reverse: bool) -> Self {
        self.form.reverse = reverse;
        self
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.variant);
        self
    }

    deterministic!(form.deterministic);

    /// For tests: in the variant `lookback`, one tile in `one_in` posts nothing, as if its workgroup had been
    /// stopped. The results must be the same.
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.form.leave_out = one_in;
        self
    }
}

#[cfg(feature = "cuda")]
impl<O> Scan<O> {
    /// Rows and elements of each.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.rows, self.n)
    }

    /// Whether it is exclusive, and whether it runs from the end.
    pub(crate) fn direction(&self) -> (bool, bool) {
        (self.form.exclusive, self.form.reverse)
    }

    /// The variant asked for.
    pub(crate) fn asked(&self) -> &str {
        &self.form.variant
    }

    /// The operator, as a value.
    pub(crate) fn operator<T: Element>(&self) -> Operator
    where
        O: Reducer<T>,
    {
        self.op.operator()
    }
}

impl Scan {
    /// Every way to run a scan: the ladder, and `lookback`, which is the fast one.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[
            Variant::portable(
                "kogge-stone",
                "a workgroup scans a word a lane in log2 n steps of n joins; three kernels",
            ),
            Variant::portable(
                "kogge-stone-double",
                "the same between two buffers: one barrier a step instead of two",
            ),
            Variant::portable("brent-kung", "up a tree and down again: fewer joins, more steps"),
            Variant::subgroups("subgroup", "subgroups scan by shuffles, then their totals: one barrier"),
            Variant::portable(
                "coarsened",
                "each invocation walks eight words staged in workgroup memory, then Kogge-Stone",
            ),
            HIERARCHICAL,
            LOOKBACK,
        ];
        VARIANTS
    }
}

pub(super) const HIERARCHICAL: Variant = Variant::portable(
    "hierarchical",
    "three kernels: totals of tiles, scan of the totals, scan of tiles held in registers as vec4",
);
pub(super) const LOOKBACK: Variant = Variant::portable(
    "lookback",
    "one pass: each tile looks back at what those before it posted, and totals a silent one itself",
)
.in_any_order();

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] Scan<O>, T [cuda] {
        fn record(input: T, output: T);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for Scan<O> {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let op = self.op.operator();
        let job = Job {
            name: "scan",
            op: &op,
            dtype: T::DTYPE,
            segments: if self.rows == 1 { Segments::One } else { Segments::Rows(self.n) },
            len: elements("scan", "input", &[self.rows, self.n])?,
            form: &self.form,
        };
        job.lower(profile, Scan::variants())
    }
}

kernel_params! {
    struct Params {
        tiles: u32,
        first_tile: u32,
        all_tiles: u32,
        quads: u32,
        elements: u32,
        first_element: u32,
        row: u32,
        piece: u32,
    }
}

/// Where scans begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segments {
    /// Nowhere.
    One,
    /// At every row of so many elements.
    Rows(usize),
    /// Where operand 1 has a flag.
    Heads,
}

/// Constants that depend on the device.
pub(super) struct Policy {
    pub(super) workgroup_size: u32,
    /// vec4 that an invocation holds: 1, 2, 4 or 8.
    pub(super) quads: u32,
    /// Times that a workgroup looks at a tile before it totals that one itself.
    pub(super) spins: u32,
}

impl Policy {
    /// With the invocations and vec4 that suit a card, as far as this device has them.
    pub(super) fn of(profile: &DeviceProfile, (workgroup_size, quads): (u32, u32)) -> Self {
        if profile.is_cpu() {
            // Barriers are costly there, and so are long kernels to compile.
            return Self { workgroup_size: 64, quads: 2, spins: 4 };
        }
        let most = if profile.features.subgroups { profile.limits.max_invocations } else { 256 };
        Self { workgroup_size: workgroup_size.min(most), quads, spins: 32 }
    }
}

fn policy(profile: &DeviceProfile, words: u64) -> Policy {
    // Exclusive sums of u32 on an H100 (Vulkan, driver 580.159.04): 2^16 in 10.1 us (512 x 4 10.4, 1024 x 8 14.0);
    // 2^20 in 12.2 us (256 x 2 14.0, 1024 x 8 14.8); 2^28 at 2680 GB/s (512 x 8 2504, 256 x 8 2372, 1024 x 4 2302).
    let tile = match words {
        0..0x4_0000 => (256, 2),
        0x4_0000..0x40_0000 => (512, 4),
        _ => (1024, 8),
    };
    Policy::of(profile, tile)
}

/// Words a lane of the coarsened ladder variant.
const COARSE_WORDS: u32 = 8;
/// Lanes of the ladder variants and of the kernel that scans totals.
const WORKGROUP_SIZE: u32 = 256;

/// A scan of any kind.
pub(super) struct Job<'a> {
    pub(super) name: &'static str,
    pub(super) op: &'a Operator,
    pub(super) dtype: DType,
    pub(super) segments: Segments,
    pub(super) len: usize,
    pub(super) form: &'a Form,
}

/// A part of the array that bindings can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    first: u64,
    len: u64,
    tiles: u64,
    /// Its number, and that of its first tile, in the order of the scan.
    number: u64,
    first_tile: u64,
}

struct Lowering<'a> {
    job: &'a Job<'a>,
    profile: &'a DeviceProfile,
    variant: &'static str,
    program: Program,
}

impl Job<'_> {
    pub(super) fn lower(&self, profile: &DeviceProfile, variants: &'static [Variant]) -> Result<Program> {
        let Self { name, op, dtype, len, form, .. } = *self;
        if matches!(dtype, DType::U8 | DType::I8 | DType::U64 | DType::Bf16)
            || op.accumulator() == Accumulator::Pair
        {
            return Err(err!(
                Unsupported,
                "{name}: {} of {dtype}; sum, prod, min, max and operators of one's own scan f32, f16, i32 and u32",
                op.name()
            ));
        }
        let rounds = dtype.is_float() && op.rounds(dtype);
        let bits = Bits { rounds, deterministic: form.deterministic };
        let (variant, decision) = choose_with(name, &form.variant, variants, profile, bits, || {
            ("lookback", "reads every element once, and waits for no workgroup without end".into())
        })?;
        let operand = |name, dtype, access| Operand { name, dtype, len, access };
        let mut program = Program::new(name, decision);
        program.operands.push(operand("input", dtype, Access::Read));
        if self.segments == Segments::Heads {
            program.operands.push(operand("heads", DType::U32, Access::Read));
        }
        program.operands.push(operand("output", dtype, Access::Write));
        for o in &program.operands {
            if o.bytes() > profile.limits.max_buffer_size {
                return Err(err!(
                    TooLarge,
                    "{name}: {} of {} elements of {} has {} bytes; the largest buffer of {} has {}; scan in pieces",
                    o.name,
                    o.len,
                    o.dtype,
                    o.bytes(),
                    profile.name,
                    profile.limits.max_buffer_size
                ));
            }
        }
        // Tiles reach beyond the end.
        index_u32(name, "elements, and a tile,", len.saturating_add(1 << 17))?;
        program.cost =
            Cost { flop: 2.0 * len as f64, bytes: program.operands.iter().map(|o| o.bytes() as f64).sum() };
        program.determinism = variant.determinism(rounds);
        let mut lowering = Lowering { job: self, profile, variant: variant.name, program };
        if len > 0 {
            match variant.name {
                "lookback" | "hierarchical" => lowering.fast()?,
                _ => lowering.ladder()?,
            }
        }
        Ok(lowering.program)
    }
}

impl Lowering<'_> {
    fn spec(&self) -> Spec {
        let Job { op, dtype, segments, form, .. } = *self.job;
        monoid(op, dtype)
            .flag("SEGMENTED", segments != Segments::One)
            .flag("ROWS", matches!(segments, Segments::Rows(_)))
            .flag("REVERSE", form.reverse)
            .flag("EXCLUSIVE", form.exclusive)
    }

    /// The device's own scan of a subgroup does for sums of values without heads.
    fn native_add(&self) -> bool {
        *self.job.op == Operator::Sum && self.job.segments == Segments::One
    }

    /// Cuts the array into parts that one binding holds each, in the order of the scan.
    fn pieces(&self, tile: u64) -> Result<Vec<Piece>> {
        let heads = self.job.segments == Segments::Heads;
        let element = if heads { 4 } else { self.job.dtype.size() as u64 };
        let most = self.profile.limits.max_storage_binding / (tile * element) * tile;
        if most == 0 {
            return Err(err!(
                TooLarge,
                "{}: a tile of {tile} elements needs a binding of {} bytes; the largest of {} has {}",
                self.job.name,
                tile * element,
                self.profile.name,
                self.profile.limits.max_storage_binding
            ));
        }
        let len = self.job.len as u64;
        let piece = |i| {
            let first = i * most;
            let len = most.min(len - first);
            Piece { first, len, tiles: len.div_ceil(tile), number: 0, first_tile: 0 }
        };
        let mut pieces: Vec<_> = (0..len.div_ceil(most)).map(piece).collect();
        if self.job.form.reverse {
            pieces.reverse();
        }
        let mut tiles = 0;
        for (number, piece) in (0..).zip(&mut pieces) {
            piece.number = number;
            piece.first_tile = tiles;
            tiles += piece.tiles;
        }
        Ok(pieces)
    }

    fn params(&self, piece: &Piece, all_tiles: u64) -> Params {
        Params {
            tiles: piece.tiles as u32,
            first_tile: piece.first_tile as u32,
            all_tiles: all_tiles as u32,
            quads: 0,
            elements: piece.len as u32,
            first_element: piece.first as u32,
            row: match self.job.segments {
                Segments::Rows(n) => n as u32,
                Segments::One | Segments::Heads => 0,
            },
            piece: piece.number as u32,
        }
    }

    /// A scratch area of `words` words.
    fn words(&mut self, words: u64) -> Result<Binding> {
        let limit = self.profile.limits.max_storage_binding;
        if words * 4 > limit {
            return Err(err!(
                TooLarge,
                "{}: the variant `{}` needs {} bytes of scratch; the largest binding of {} has {limit}; take `lookback`",
                self.job.name,
                self.variant,
                words * 4,
                self.profile.name
            ));
        }
        Ok(self.program.scratch(words * 4))
    }

    fn total_words(&self) -> u64 {
        if self.job.segments == Segments::One { 1 } else { 2 }
    }

    /// Turns the totals of tiles into what lies before each.
    fn scan_totals(&mut self, totals: Binding, all_tiles: u64) {
        let spec = self.spec();
        // A kernel of totals has no elements, so it has no order and no heads of its own.
        let spec = spec.flag("REVERSE", false).flag("EXCLUSIVE", false).flag("ROWS", false);
        let kernel = self.program.kernel(Kernel::library("primitives/scan_totals", "scan_totals", spec));
        let all = Piece { first: 0, len: 0, tiles: all_tiles, number: 0, first_tile: 0 };
        let params = Params { row: 0, ..self.params(&all, all_tiles) };
        self.program.dispatch(kernel, &params, vec![totals], Grid::fold(1));
    }

    /// A word (or eight) an invocation, in three kernels.
    fn ladder(&mut self) -> Result<()> {
        let (tree, words, subgroups) = match self.variant {
            "kogge-stone" => ("workgroup/scan_kogge_stone", 1, false),
            "brent-kung" => ("workgroup/scan_brent_kung", 1, false),
            "subgroup" => ("workgroup/scan_shuffle", 1, true),
            "coarsened" => ("workgroup/scan_kogge_stone_double", COARSE_WORDS, false),
            _ => ("workgroup/scan_kogge_stone_double", 1, false),
        };
        let mut spec = self
            .spec()
            .slot("tree", Fragment::Library(tree))
            .constant("WORDS_PER_THREAD", words)
            .flag("STAGED", words > 1)
            .flag("SUBGROUPS", subgroups);
        if subgroups {
            spec = spec.flag("NATIVE_ADD", self.native_add());
        }
        let size = self.job.dtype.size() as u64;
        let tile = u64::from(WORKGROUP_SIZE * words) * 4 / size;
        let pieces = self.pieces(tile)?;
        let all_tiles = pieces.iter().map(|p| p.tiles).sum();
        let carried = all_tiles > 1;
        let totals = if carried { Some(self.words(all_tiles * self.total_words())?) } else { None };
        let output = self.program.operands.len() - 1;
        let bind = |operand, piece: &Piece| Binding {
            resource: Resource::Operand(operand),
            offset: piece.first * size,
            size: piece.len * size,
        };
        if let Some(totals) = totals {
            let kernel = self.program.kernel(Kernel::library(
                "primitives/scan_ladder",
                "reduce_tiles",
                spec.clone().flag("REDUCE", true),
            ));
            for piece in &pieces {
                let params = self.params(piece, all_tiles);
                self.program.dispatch(kernel, &params, vec![bind(0, piece), totals], Grid::fold(piece.tiles));
            }
            self.scan_totals(totals, all_tiles);
        }
        let spec = spec.flag("CARRIED", carried);
        let kernel = self.program.kernel(Kernel::library("primitives/scan_ladder", "scan_tiles", spec));
        for piece in &pieces {
            let params = self.params(piece, all_tiles);
            let bindings = [bind(0, piece), bind(output, piece)].into_iter().chain(totals).collect();
            self.program.dispatch(kernel, &params, bindings, Grid::fold(piece.tiles));
        }
        Ok(())
    }

    /// Tiles in registers, in one pass or three kernels.
    fn fast(&mut self) -> Result<()> {
        let dtype = self.job.dtype;
        let pack = 4 / dtype.size() as u64;
        let Policy { workgroup_size, quads, spins } = policy(self.profile, self.job.len as u64 / pack);
        let subgroups = self.profile.features.subgroups;
        let heads = self.job.segments == Segments::Heads;
        let mut spec = self
            .spec()
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("QUADS", quads)
            .flag("HEADS", heads)
            .flag("SUBGROUPS", subgroups);
        if subgroups {
            spec = spec.flag("NATIVE_ADD", self.native_add());
        }
        let tile = u64::from(workgroup_size * quads) * 4 * pack;
        let pieces = self.pieces(tile)?;
        let all_tiles: u64 = pieces.iter().map(|p| p.tiles).sum();
        let several = all_tiles > 1;
        let lookback = self.variant == "lookback";
        let grids: Vec<_> = pieces.iter().map(|p| self.bind_in_quads(p)).collect();
        let mut scratch = None;
        if lookback {
            let all = Posts { tiles: all_tiles, counted: false, pieces: pieces.len() as u64 };
            let posts = self.words(all.words())?;
            all.clear(&mut self.program, posts);
            scratch = Some(posts);
            let binding = if heads { 7 } else { 5 };
            spec =
                all.spec(spec.flag("LOOKBACK", true), self.profile, binding, spins, self.job.form.leave_out);
        } else if several {
            let totals = self.words(all_tiles * self.total_words())?;
            let reduce = spec.clone().flag("REDUCE", true);
            let kernel =
                self.program.kernel(Kernel::library("primitives/scan_tiles", "reduce_tiles", reduce));
            for (piece, (quads, bound)) in pieces.iter().zip(&grids) {
                let params = Params { quads: *quads, ..self.params(piece, all_tiles) };
                let inputs = bound.input.into_iter().chain([totals]).chain(bound.heads.into_iter().flatten());
                self.program.dispatch(kernel, &params, inputs.collect(), Grid::fold(piece.tiles));
            }
            self.scan_totals(totals, all_tiles);
            spec = spec.flag("CARRIED", true);
            scratch = Some(totals);
        }
        let kernel = self.program.kernel(Kernel::library("primitives/scan_tiles", "scan_tiles", spec));
        for (piece, (quads, bound)) in pieces.iter().zip(&grids) {
            let params = Params { quads: *quads, ..self.params(piece, all_tiles) };
            let inputs_and_outputs = bound.input.into_iter().chain(bound.output);
            let bindings = inputs_and_outputs.chain(bound.heads.into_iter().flatten()).chain(scratch);
            self.program.dispatch(kernel, &params, bindings.collect(), Grid::fold(piece.tiles));
        }
        Ok(())
    }

    /// Bindings of the piece as vec4, and as words from the last multiple of 256 bytes on: no two that
    /// are written overlap, and any array of words will do. And how many vec4 that makes.
    fn bind_in_quads(&mut self, piece: &Piece) -> (u32, Bound) {
        let size = self.job.dtype.size() as u64;
        let bytes = (piece.len * size).next_multiple_of(4);
        let main = (bytes - 1) / 256 * 256;
        let mut pair = |operand, offset, main: u64, bytes: u64| {
            let resource = Resource::Operand(operand);
            let quads = if main > 0 {
                Binding { resource, offset, size: main }
            } else {
                // Never touched, but it must be bound.
                self.program.scratch(16)
            };
            [quads, Binding { resource, offset: offset + main, size: bytes - main }]
        };
        let heads = self.job.segments == Segments::Heads;
        let input = pair(0, piece.first * size, main, bytes);
        let output = pair(if heads { 2 } else { 1 }, piece.first * size, main, bytes);
        let heads = heads.then(|| pair(1, piece.first * 4, main / size * 4, piece.len * 4));
        ((main / 16) as u32, Bound { input, output, heads })
    }
}

/// The spec of kernels that scan elements of `dtype`.
pub(super) fn monoid(op: &Operator, dtype: DType) -> Spec {
    let spec = op.specialise(Spec::new(), dtype);
    // An order's keys have room for infinity, which is the identity of floats.
    match (op, dtype.is_float()) {
        (Operator::Min, true) => spec.constant("IDENTITY", 0xff80_0000_u32),
        (Operator::Max, true) => spec.constant("IDENTITY", 0x007f_ffff_u32),
        _ => spec,
    }
}

/// Bindings of a piece: as vec4, and the words that are left.
struct Bound {
    input: [Binding; 2],
    output: [Binding; 2],
    heads: Option<[Binding; 2]>,
}

pub(super) const INFO: Operation = Operation {
    name: "scan",
    about: "all prefixes of an array combined, or those of each row",
    inputs: &[Input::new("input", "(n) or (rows, n)")],
    types: &DTYPES,
    options: &[OP, Setting::flag("exclusive"), Setting::flag("reverse"), Setting::flag("deterministic")],
    make: Some(make),
    variants: Scan::variants,
    samples,
    comparison: Some(Comparison::Prefixes),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<program::Form> {
    let input = asked.any("input")?;
    let (rows, n) = match *input.shape() {
        [n] => (1, n),
        [rows, n] => (rows, n),
        _ => {
            return Err(err!(
                Shape,
                "scan: input is {input}; it must be an array or a matrix, whose rows are scanned"
            ));
        }
    };
    let (dtype, output) = (input.dtype(), Role::Result(input.shape().to_vec()));
    let (form, operands) = (Form::of(asked), vec![Role::Given(input), output]);
    by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = Scan { op, rows, n, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(program::Form::new::<T>(scan, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    macro_rules! lower {
        ($rows:expr, $n:expr, $exclusive:expr, $reverse:expr; $($op:expr => $($t:ty),*;)*) => {$($({
            let scan = Scan::rows($op, $rows, $n).variant(variant).exclusive($exclusive).reverse($reverse);
            programs.push(Op::<$t>::lower(&scan, profile)?);
        })*)*};
    }
    // Every type and operator; every form, in several tiles, in one, by rows, in large tiles.
    lower! { 1, 100_000, false, false;
        Sum => f32, f16, u32, i32;
        Prod => f32, u32;
        Min => f32, i32;
        Max => f16, u32;
        custom.clone() => f32, u32;
    }
    for (rows, n) in [(1, 100_000), (1, 3), (50, 777), (1, 1 << 23)] {
        lower! { rows, n, true, true; Sum => f16; Max => f32; }
    }
    lower! { 50, 777, false, true; Sum => f32; }
    lower! { 50, 777, true, false; Prod => i32; }
    if variant == "lookback" {
        let blocked = Scan::new(Sum, 100_000).variant(variant).leave_out_posts(2);
        programs.push(Op::<f32>::lower(&blocked, profile)?);
    }
    Ok(programs)
}

/// Of the trees: joins for a tile, against those of one after the other.
pub(crate) fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (_, interface) = subject.kernel("scan_tiles")?;
    let n = u64::from(interface.workgroup_size[0]);
    let (joins, steps): (u64, u64) = match subject.program.variant() {
        "kogge-stone" | "kogge-stone-double" => (kogge_stone_operations(n), n.checked_ilog2()?.into()),
        "brent-kung" => (brent_kung_operations(n), brent_kung_steps(n)),
        _ => return None,
    };
    let of = format!("for a tile of {n} words; one after the other it is {}", reduction_operations(n));
    Some(vec![
        fact("joins", joins as f64, of),
        fact("steps", steps as f64, "of the tree, one after the other"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::primitives::ArgMin;
    use crate::program::Determinism;

    #[test]
    fn pieces_cover_every_element_in_the_order_of_the_scan() {
        let profile = DeviceProfile::webgpu_defaults();
        for reverse in [false, true] {
            let scan = Scan::new(Sum, 60_000_001).reverse(reverse);
            let program = Op::<f32>::lower(&scan, &profile).unwrap();
            assert_eq!(program.dispatches.len(), 3);
            let outputs = program.dispatches[1..].iter().map(|d| &d.bindings[2..4]);
            let mut ranges: Vec<_> = outputs.flatten().map(|b| (b.offset, b.offset + b.size)).collect();
            assert_eq!(ranges[0].0 == 0, !reverse);
            ranges.sort_unstable();
            assert_eq!((ranges[0].0, ranges[3].1), (0, 240_000_004));
            assert!(ranges.windows(2).all(|w| w[0].1 == w[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn what_is_not_defined_is_refused() {
        let profile = DeviceProfile::webgpu_defaults();
        let kind = |r: Result<Program>| r.unwrap_err().kind();
        assert_eq!(kind(Op::<u32>::lower(&Scan::new(ArgMin, 9), &profile)), ErrorKind::Unsupported);
        assert_eq!(kind(Op::<u8>::lower(&Scan::new(Min, 9), &profile)), ErrorKind::Unsupported);
        let of = |scan: Scan| Op::<f32>::lower(&scan, &profile);
        assert_eq!(kind(of(Scan::new(Sum, 9).variant("subgroup"))), ErrorKind::Unsupported);
        assert_eq!(kind(of(Scan::new(Sum, 9).variant("magic"))), ErrorKind::InvalidArgument);
        assert_eq!(kind(of(Scan::new(Sum, 1 << 27))), ErrorKind::TooLarge);
        assert_eq!(kind(of(Scan::rows(Sum, usize::MAX, 2))), ErrorKind::TooLarge);
        let lookback = Scan::new(Sum, 9).variant("lookback").deterministic();
        assert_eq!(kind(of(lookback.clone())), ErrorKind::Unsupported);
        assert_eq!(Op::<i32>::lower(&lookback, &profile).unwrap().determinism, Determinism::SameBits);
    }

    #[test]
    fn nothing_is_nothing_to_do() {
        let profile = DeviceProfile::webgpu_defaults();
        for (rows, n) in [(1, 0), (0, 5), (5, 0)] {
            assert!(Op::<f32>::lower(&Scan::rows(Sum, rows, n), &profile).unwrap().dispatches.is_empty());
        }
    }
}
