use super::by_name::FLOATS;
use crate::program::prelude::*;
use crate::program::rows::check_rows;

/// Rotates pairs of elements by angles of their token's position: pair j of a row at position p, (a, b), becomes
/// `(cos[p, j] a - sin[p, j] b, sin[p, j] a + cos[p, j] b)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::Rope;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// // One token of one head of size 2, rotated by a right angle.
/// let (x, output) = (gpu.upload(&[3.0f32, 4.0])?, gpu.alloc::<f32>(2)?);
/// let (cos, sin) = (gpu.upload(&[0.0f32])?, gpu.upload(&[1.0f32])?);
/// let plan = Rope::new([1, 1, 1, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &cos, &sin, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [-4.0, 3.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// Elements j and `j + rotary / 2` form a pair, as in GPT-NeoX and Llama; or neighbours do
/// ([`interleaved`](Self::interleaved)), as in RoFormer and GPT-J. Elements after the first [`rotary`](Self::rotary) of
/// a row are copied.
///
/// # Shapes
/// `x` and `output` are (batch, heads, tokens, size), row-major, or (batch, tokens, heads, size) with
/// [`tokens_first`](Self::tokens_first). `cos` and `sin` are (tokens, rotary / 2), the same for all sequences, or
/// (batch tokens, rotary / 2) with [`tables`](Self::tables). [`with_positions`](Self::with_positions) reads tables of
/// any number of positions by an operand `positions` of u32, (batch, tokens); positions beyond the tables use the
/// last row. Every extent except the tables' may be 0. `output` must not share a wgpu buffer with the others.
///
/// # Types
/// `x` and `output` are f32 or f16; tables and arithmetic are f32.
///
/// # Precision and determinism
/// Two products and a sum, each rounded: [`reference::rope_bound`](crate::reference::rope_bound) bounds the error. NaN
/// and infinities propagate as in f32 arithmetic. The same device and inputs give the same bits.
///
/// # Cost
/// 3 flop for each element, which is read and written once. One dispatch for each chunk of `x` that fits a binding; no
/// scratch.
///
/// # Variants
/// `fours`, the only one: a thread computes four elements.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an odd `rotary` or one above `size`, tables of another
///   length, an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): `x` above the largest buffer, or a table above the largest binding.
///
/// # Algorithm
/// Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021: `shaders/nn/rope.wgsl`.
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

const VARIANTS: &[Variant] = &[Variant::portable("fours", "a thread computes four elements: one read, one write")];

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
    /// Takes the shape of `x` (batch, heads, tokens, size).
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

    /// Rotates only the first `rotary` elements of each row, an even number. The default is all.
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

    /// Lays out `x` and `output` as (batch, tokens, heads, size). The default is (batch, heads, tokens, size).
    #[must_use]
    pub fn tokens_first(mut self) -> Self {
        self.tokens_first = true;
        self
    }

    /// Sets the rows of the tables: `tokens` (the default), or `batch * tokens` if each sequence has its own.
    #[must_use]
    pub fn tables(mut self, rows: usize) -> Self {
        self.table = rows;
        self
    }

    /// Looks up the position of each token in tables of `table` positions: an operand `positions` of u32, which plans
    /// take by `with_positions`.
    #[must_use]
    pub fn with_positions(mut self, table: usize) -> Self {
        (self.table, self.positions) = (table, true);
        self
    }

    variants!(variant);

    pub(crate) fn rotated(&self) -> usize {
        self.rotary
    }

    /// Returns the token and the pair of element `at`.
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
        RopePlace { number, rotates: element < self.rotary, second, partner, angle }
    }

    /// Returns the row of the tables for token `number`, counted over all sequences.
    pub(crate) fn table_row(&self, number: usize, positions: Option<&[u32]>) -> usize {
        match positions {
            Some(positions) => (positions[number] as usize).min(self.table - 1),
            None => number % self.table,
        }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (op, positions) = ("rope", self.positions);
        let [batch, heads, tokens, size] = self.shape;
        let len = elements(op, "x", &self.shape)?;
        let all = batch * tokens;
        if !self.rotary.is_multiple_of(2) || self.rotary > size {
            return Err(err!(
                InvalidArgument,
                "{op}: rotary is {}; it must be even and at most {size}, the size of a row",
                self.rotary
            ));
        }
        let fits = if positions { self.table > 0 } else { [tokens, all].contains(&self.table) };
        if !fits {
            return Err(err!(
                InvalidArgument,
                "{op}: tables have {} rows; without positions they need {tokens}, one for each token, or {all}; with \
                 positions at least 1",
                self.table
            ));
        }
        let mut program = Program::of_only_variant(op, &self.variant, VARIANTS, profile)?;
        let read = |name, dtype, len| Operand { name, dtype, len, access: Access::Read };
        let of_table = elements(op, "cos", &[self.table, self.rotary / 2])?;
        let mut operands =
            vec![read("x", dtype, len), read("cos", DType::F32, of_table), read("sin", DType::F32, of_table)];
        if positions {
            operands.push(read("positions", DType::U32, all));
        }
        profile.check_bindings(op, &operands[1..], "use fewer tokens at a time")?;
        index_u32(op, "elements", len)?;
        check_rows(op, &operands[0], size, profile)?;
        let output = operands.len();
        operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        program.cost = Cost::of(3.0 * len as f64, &operands);
        program.operands = operands;
        if len == 0 {
            return Ok(program);
        }
        // With vec4s, the partners of a vec4 are one vec4 too.
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

/// The token and the pair of an element.
pub(crate) struct RopePlace {
    /// The index of its token over all sequences.
    pub(crate) number: usize,
    pub(crate) rotates: bool,
    /// Whether it is the second element of its pair.
    pub(crate) second: bool,
    pub(crate) partner: usize,
    pub(crate) angle: usize,
}

operands! {
    impl[T: Element,] Rope, T {
        fn record(x: T, cos: f32, sin: f32, output: T);
        /// Takes the position of each token.
        optional with_positions(positions: u32);
    }
}

lowered_as!(Rope: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "rope",
    about: "rotary position embedding: pairs of elements rotated by angles of their position",
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

/// Forms the op; the shape of `cos` determines `rotary` and the number of positions.
fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
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
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
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
