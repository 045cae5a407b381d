//! Rotary embedding of positions.

use super::form::FLOATS;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::When;
use crate::program::rows::check_rows;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Example, Form, Grid, Input, Kernel, Op, Operand, Operation,
    Program, Resource, Role, Setting, Variant, by_type, choose, element_fragment, kernel_params, operands,
};
use crate::shader::Spec;
use crate::shape::{elements, index_u32};
use half::f16;

/// Rotary embedding: pairs of elements of each token's heads, turned by angles of its position.
///
/// Of the pair (a, b) number j of a row at position p it makes `(cos[p, j] a - sin[p, j] b, sin[p, j] a + cos[p, j] b)`.
/// Pairs are halves apart, j and `j + rotary / 2`, as in GPT-NeoX and Llama, or neighbours
/// ([`interleaved`](Self::interleaved)), as in RoFormer and GPT-J. Elements behind the first [`rotary`](Self::rotary) ones of a row stay as they are.
///
/// # Shapes
/// `x` and `output` are (batch, heads, tokens, size), row-major, or (batch, tokens, heads, size) with
/// [`tokens_first`](Self::tokens_first), as a projection gives them. Operands are `x`, `cos`, `sin`, `output`, in this
/// order. The tables are (tokens, rotary / 2), the same for all sequences, or with [`tables`](Self::tables) (batch *
/// tokens, rotary / 2). [`with_positions`](Self::with_positions) has tables of any number of positions, and `positions`
/// (batch, tokens) for its fourth operand, of which those beyond the tables take the last row. Any
/// extent but the tables' may be 0. `output` must be a wgpu buffer of its own.
///
/// # Types
/// `x` and `output` are of f32 or f16, tables always of f32, and so is the arithmetic.
///
/// # Precision and determinism
/// Two products and a sum, rounded each: [`reference::rope_bound`](crate::reference::rope_bound). Same device, same bits.
/// NaN and infinities go the way of f32 arithmetic: they reach what they are a term of, and nothing else.
///
/// # Cost
/// 3 operations an element; one dispatch, every element read once from memory and written once.
///
/// # Variants
/// `fours`, the only one: an invocation computes four elements.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a `rotary` that is odd or above `size`, tables that are none
/// of tokens, an unknown variant; [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer or, of tables, binding.
///
/// # Algorithm
/// Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021: `shaders/nn/rope.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::Rope;
/// use tilework::program::{DeviceProfile, Op};
///
/// let rope = Rope::new([1, 32, 512, 128]);
/// let program = Op::<f32>::lower(&rope, &DeviceProfile::h100())?;
/// assert_eq!(program.operands[1].len, 512 * 64);
/// // One table for all positions that there are, and where each token is.
/// let program = Op::<f32>::lower(&rope.with_positions(4096), &DeviceProfile::h100())?;
/// assert_eq!((program.operands[1].len, program.operands[3].len), (4096 * 64, 512));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    shape: [usize; 4],
    rotary: usize,
    table: usize,
    interleaved: bool,
    tokens_first: bool,
    positions: bool,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("fours", "an invocation computes four elements: one read, one write")];

kernel_params! {
    struct RopeParams {
        len: u32,
        first: u32,
        size: u32,
        rotary: u32,
        heads: u32,
        tokens: u32,
        table: u32,
    }
}

const WORKGROUP_SIZE: u64 = 256;

impl Rope {
    /// Rotates every element of `x` of shape (batch, heads, tokens, size).
    pub fn new(shape: [usize; 4]) -> Self {
        Self {
            shape,
            rotary: shape[3],
            table: shape[2],
            interleaved: false,
            tokens_first: false,
            positions: false,
            variant: "auto".into(),
        }
    }

    /// How many elements of a row are turned, from the first on; an even number.
    #[must_use]
    pub fn rotary(mut self, rotary: usize) -> Self {
        self.rotary = rotary;
        self
    }

    /// Pairs neighbours. By default element i is paired with element i + rotary / 2.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    /// `x` and `output` are (batch, tokens, heads, size). By default they are (batch, heads, tokens, size).
    #[must_use]
    pub fn tokens_first(mut self) -> Self {
        self.tokens_first = true;
        self
    }

    /// Rows of the tables: `tokens` (the default), or `batch * tokens` where each sequence has its own.
    #[must_use]
    pub fn tables(mut self, rows: usize) -> Self {
        self.table = rows;
        self
    }

    crate::program::variants!(variant);

    /// Looks up the position of each token in tables of `table` positions: an operand `positions` of u32, which plans take
    /// by `with_positions`.
    #[must_use]
    pub fn with_positions(mut self, table: usize) -> Self {
        (self.table, self.positions) = (table, true);
        self
    }

    /// Elements of a row that are turned.
    pub(crate) fn turned(&self) -> usize {
        self.rotary
    }

    /// Sequence and token of a row, and the pair of an element: its partner, whether it is the second, and the angle.
    pub(crate) fn place(&self, at: usize) -> RopePlace {
        let [_, heads, tokens, size] = self.shape;
        let (row, element) = (at / size, at % size);
        let token = if self.tokens_first { row / heads % tokens } else { row % tokens };
        let half = self.rotary / 2;
        let (second, apart, angle) = match self.interleaved {
            true => (element % 2 == 1, 1, element / 2),
            false => (element >= half, half, element % half.max(1)),
        };
        let partner = if second { at.saturating_sub(apart) } else { at + apart };
        let number = row / (heads * tokens) * tokens + token;
        RopePlace { number, turns: element < self.rotary, second, partner, angle }
    }

    /// The row of the tables for token number `number` of all.
    pub(crate) fn table_row(&self, number: usize, positions: Option<&[u32]>) -> usize {
        match positions {
            Some(positions) => (positions[number] as usize).min(self.table - 1),
            None => number % self.table,
        }
    }

    fn lower_as(&self, dtype: DType, positions: bool, profile: &DeviceProfile) -> Result<Program> {
        let op = "rope";
        let [batch, heads, tokens, size] = self.shape;
        let len = elements(op, "x", &self.shape)?;
        let all = batch * tokens;
        if !self.rotary.is_multiple_of(2) || self.rotary > size {
            return Err(err!(
                InvalidArgument,
                "{op}: {} of {size} elements of a row are to be turned; pairs take an even number, at most the size",
                self.rotary
            ));
        }
        let fits = if positions { self.table > 0 } else { [tokens, all].contains(&self.table) };
        if !fits {
            return Err(err!(
                InvalidArgument,
                "{op}: tables have {} rows; without positions they have {tokens}, one for each token, or {all}, with \
                 positions at least one",
                self.table
            ));
        }
        let why = || ("fours", "there is one way".to_owned());
        let (_, decision) = choose(op, &self.variant, VARIANTS, profile, why)?;
        let read = |name, dtype, len| Operand { name, dtype, len, access: Access::Read };
        let of_table = elements(op, "cos", &[self.table, self.rotary / 2])?;
        let mut operands =
            vec![read("x", dtype, len), read("cos", DType::F32, of_table), read("sin", DType::F32, of_table)];
        if positions {
            operands.push(read("positions", DType::U32, all));
        }
        profile.check_bindings(op, &operands[1..], "take fewer tokens at a time")?;
        index_u32(op, "elements", len)?;
        check_rows(op, &operands[0], size, profile)?;
        let output = operands.len();
        operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        let mut program = Program::new(op, decision);
        program.cost =
            Cost { flop: 3.0 * len as f64, bytes: operands.iter().map(|o| o.bytes() as f64).sum() };
        program.operands = operands;
        if len == 0 {
            return Ok(program);
        }
        // A vector of four has its partners in one too.
        let apart = if self.interleaved { self.rotary } else { self.rotary / 2 };
        let vectors = size.is_multiple_of(4) && apart.is_multiple_of(4);
        let spec = Spec::new()
            .slot("element", element_fragment(dtype))
            .constant("OUTPUT", output as u32 + 1)
            .flag("HALVES", dtype == DType::F16)
            .flag("VECTORS", vectors)
            .flag("INTERLEAVED", self.interleaved)
            .flag("POSITIONS", positions)
            .flag("TOKENS_FIRST", self.tokens_first);
        let kernel = program.kernel(Kernel::library("nn/rope", "rope", spec));
        let rows = (batch * heads * tokens) as u64;
        let row_bytes = (size * dtype.size()) as u64;
        for chunk in profile.aligned_chunks(rows, row_bytes) {
            let mut bindings = vec![chunk.of(Resource::Operand(0), row_bytes)];
            bindings.extend((1..output).map(|i| Binding::operand(i, &program.operands)));
            bindings.push(chunk.of(Resource::Operand(output), row_bytes));
            let elements = chunk.count * size as u64;
            let params = RopeParams {
                len: elements as u32,
                first: (chunk.first * size as u64) as u32,
                size: size as u32,
                rotary: self.rotary as u32,
                heads: heads as u32,
                tokens: tokens as u32,
                table: self.table as u32,
            };
            let groups = elements.div_ceil(4 * WORKGROUP_SIZE);
            program.dispatch(kernel, &params, bindings, Grid::fold(groups));
        }
        Ok(program)
    }
}

/// Where an element stands.
pub(crate) struct RopePlace {
    /// Of its token, among those of all sequences.
    pub(crate) number: usize,
    pub(crate) turns: bool,
    /// Whether it is the second of its pair.
    pub(crate) second: bool,
    pub(crate) partner: usize,
    /// The number of its pair.
    pub(crate) angle: usize,
}

operands! {
    impl[T: Element,] Rope, T {
        fn record(x: T, cos: f32, sin: f32, output: T);
        /// The position of each token.
        optional with_positions(positions: u32);
    }
}

crate::program::lowers! {
    impl[] Rope as [f32, f16], |op, dtype, profile| op.lower_as(dtype, op.positions, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "rope",
    about: "pairs of elements of each row turned by the angles of its position",
    inputs: &[
        Input::new("x", "(B, H, T, D)"),
        Input::new("cos", "f32 (P, R/2)"),
        Input::new("sin", "f32 (P, R/2)"),
        Input::optional("positions", "u32 (B, T)"),
    ],
    outputs: &[("output", "as x")],
    types: &FLOATS,
    options: &[Setting::flag("interleaved"), Setting::flag("tokens-first")],
    make: Some(make),
    variants: Rope::variants,
    samples,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

/// What of a row is turned, and how many positions there are, the tables say.
fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let settings = asked.settings();
    let (x, shape) = asked.array::<4>("x")?;
    let (dtype, tokens_first) = (x.dtype(), settings.has("tokens-first"));
    let [batch, a, b, size] = shape;
    let (heads, tokens) = if tokens_first { (b, a) } else { (a, b) };
    let (cos, [rows, pairs]) = asked.free_of("cos", [tokens, size / 2], DType::F32)?;
    let sin = asked.of("sin", &[rows, pairs], DType::F32)?;
    let mut op = Rope::new([batch, heads, tokens, size])
        .rotary(pairs.saturating_mul(2))
        .tables(rows)
        .when(settings.has("interleaved"), |op| op.interleaved())
        .when(tokens_first, |op| op.tokens_first())
        .variant(asked.variant());
    let mut operands: Vec<_> = [x, cos, sin].map(Role::Given).into();
    if asked.has_more() {
        op = op.with_positions(rows);
        operands.push(Role::Given(asked.indices("positions", &[batch, tokens], rows)?));
    }
    operands.push(Role::Result(shape.to_vec()));
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (interleaved, tokens_first) in [(false, false), (true, true)] {
        for (size, rotary) in [(8, 8), (6, 4)] {
            let op = Rope::new([2, 3, 5, size]).rotary(rotary).variant(variant);
            let op = op.when(interleaved, |op| op.interleaved()).when(tokens_first, |op| op.tokens_first());
            programs.extend([Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?]);
            let at = op.with_positions(9);
            programs.extend([Op::<f32>::lower(&at, profile)?, Op::<f16>::lower(&at, profile)?]);
        }
    }
    Ok(programs)
}
