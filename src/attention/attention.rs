//! Scaled dot-product attention.

use super::coop::CoopTile;
use super::flash::FlashTile;
use super::form;
use super::layout::AttentionLowering;
use super::{coop, flash, naive, split};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Comparison, Cost, DeviceProfile, Domain, Example, Op, Operand, Operation, Program, Requires,
    Translation, Variant, choose, operands,
};
use crate::shape::{elements, index_u32};
use half::f16;

/// How keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Signed bytes with a factor for each row: what `Quantize` makes of rows.
    Int8,
    /// 8-bit floats (E4M3) in unsigned bytes, with a factor for each row.
    Fp8,
}

impl KvType {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Int8, Self::Fp8];

    /// Of the elements in a buffer.
    pub const fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Int8 => DType::I8,
            Self::Fp8 => DType::U8,
        }
    }

    /// Whether rows have factors.
    pub const fn is_scaled(self) -> bool {
        matches!(self, Self::Int8 | Self::Fp8)
    }

    /// `f32`, `f16`, `int8` or `fp8`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
            Self::Fp8 => "fp8",
        }
    }
}

/// The pages that a cache is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Tokens of a page.
    pub tokens: usize,
    /// Pages of the cache.
    pub pages: usize,
}

/// Attention of each head: `output = softmax(scale Q K^T + mask) V` over the keys that a query sees.
///
/// # Shapes
/// `q` and `output` are (batch, heads, queries, head size), `k` and `v` (batch, kv heads, keys, head size), dense and
/// row-major. Heads are a multiple of kv heads: kv head g serves `heads / kv_heads` heads, one after another. Head sizes
/// are multiples of 8 up to 256. None of the extents may be 0. Operands are `q`, `k`, `v`, then those of what was asked
/// for, in this order: `scales` ([`kv`](Self::kv)), `table` ([`paged`](Self::paged)), `lengths`
/// ([`lengths`](Self::lengths)), `mask` ([`masked`](Self::masked)), and last `output`, which shares no buffer with
/// the others.
///
/// # What a query sees
/// Of n keys (`keys`, or the length of the sequence) query i of T stands at p = i + n - T: the last query beside the
/// last key. All keys; with [`causal`](Self::causal) those up to p; with [`window`](Self::window) W those with
/// |p - j| < W. A query that sees nothing, or whose scores are all -infinity, gets zeros.
///
/// # Types
/// `q` and `output` of f32 or f16; `k` and `v` of either, or quantised ([`KvType`]), whatever q is. Arithmetic is in
/// f32, but for the weights of `coop`; no device feature is needed, but by `coop`.
///
/// # Precision and determinism
/// Scores, their exponentials, sums and weighted sums of values are of f32. Same device, same inputs, same variant: same
/// bits. A score that is NaN or +infinity makes its row NaN, as the softmax does; a weight of 0 beside an infinite
/// value may. A key that a query does not see has no effect on it, whatever `k` and `v` hold there; one whose mask is
/// -infinity is seen with a weight of 0. [`reference::attention_bound`](crate::reference::attention_bound) is the bound of the error. `coop`, which `auto`
/// takes for f16 where it can, rounds weights to f16 before it multiplies the values by them: that adds up to 2^-10 times the
/// mean of the values' magnitudes, as much as the rounding of the output to f16; and its hardware cuts sums off instead of
/// rounding, four times that bound.
///
/// # Cost
/// 4 heads x queries x keys x head size operations for each sequence, half of it where causal; with a window W the
/// time grows with queries x W. `flash` and `coop`: one dispatch, no scratch; keys and values are read once for each tile of
/// queries. `split-kv`: two dispatches; keys and values are read once for up to 4 rows of q that share them, and each part of
/// the keys leaves head size + 4 numbers of a row in scratch. `naive`: three dispatches and 4 bytes of scratch a score, as
/// many rows at a time as one binding holds.
///
/// # Variants
/// `naive` writes all scores, then their softmax, then multiplies by the values. `flash` walks over the keys a tile at a
/// time with scores in registers and an online softmax ([`tile`](Self::tile) sets its sides); `coop` does so on cooperative matrices, for q, k and v of f16, heads of a multiple of
/// 16 up to 128, not in pages ([`coop_tile`](Self::coop_tile)). `split-kv` is for few
/// queries against many keys, as in decoding. `auto`, the default, chooses by shape and device. Planned on a CUDA device, q, k,
/// v and `output` are all of f16 or all of bf16, and the variants are others: `wgmma` and `mma`.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): an extent of 0, heads that are no multiple of kv heads, a mask of another shape.
/// [`Unsupported`](crate::ErrorKind::Unsupported): a head size that is no multiple of 8 up to 256; what `coop` does not take.
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a window of 0, a scale that is not finite, pages of fewer than
/// 16 or more than 256 tokens, a tile that contradicts itself, an unknown variant. [`TooLarge`](crate::ErrorKind::TooLarge): an operand above what a
/// buffer, or the keys of a head above what a binding holds.
///
/// # Algorithm
/// Vaswani et al., *Attention is all you need*, 2017: `shaders/attention/attention_scores.wgsl`,
/// `attention_softmax.wgsl`, `attention_values.wgsl`. `attention_flash.wgsl` is the kernel of `flash` (Dao,
/// *FlashAttention-2*, 2023), `attention_coop.wgsl` that of `coop`, `attention_split.wgsl` that of `split-kv` (Dao et
/// al., *Flash-Decoding*, 2023), whose
/// parts `attention_merge.wgsl` joins. Pages as in Kwon et al., *PagedAttention*, 2023.
///
/// # Example
/// ```
/// use tilework::attention::Attention;
/// use tilework::program::{DeviceProfile, Op};
///
/// // 32 heads that share 8 of keys and values, a prompt of 1024 tokens.
/// let op = Attention::new([1, 32, 1024, 128], [8, 1024]).causal();
/// let program = Op::<f32>::lower(&op, &DeviceProfile::h100())?;
/// assert_eq!(program.operands[1].len, 8 * 1024 * 128);
/// assert!(Op::<f32>::lower(&Attention::new([1, 32, 1, 128], [5, 1]), &DeviceProfile::h100()).is_err());
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) head_size: usize,
    pub(crate) causal: bool,
    pub(crate) window: Option<usize>,
    pub(crate) scale: Option<f32>,
    /// Batch and heads of the mask.
    pub(crate) mask: Option<[usize; 2]>,
    pub(crate) lengths: bool,
    pub(crate) kv: Option<KvType>,
    pub(crate) paging: Option<Paging>,
    pub(super) tile: Option<FlashTile>,
    pub(super) coop_tile: Option<CoopTile>,
    pub(crate) variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable(
        "naive",
        "three kernels: all scores in memory, their softmax, the product with the values",
    ),
    Variant::portable(
        "flash",
        "one kernel, an online softmax: scores stay in registers, keys are read a tile at a time",
    ),
    Variant::portable(
        "split-kv",
        "keys split over workgroups that read them once for all heads that share them; parts merged by a second kernel",
    ),
    Variant {
        name: "coop",
        about: "`flash` on cooperative matrices, q, k and v of f16: weights are rounded to f16, sums are of f32",
        requires: Requires { subgroups: true, f16: true, cooperative: true },
        // naga has cooperative matrices for no other that has 16 x 16; Tint and WGSL proper have none.
        translations: &[Translation::SpirV],
        any_order: false,
    },
];

impl Attention {
    /// `q` has the shape (batch, heads, queries, head size), `k` and `v` (batch, `kv_heads`, `keys`, head size).
    /// `heads` is a multiple of `kv_heads`.
    pub fn new([batch, heads, queries, head_size]: [usize; 4], [kv_heads, keys]: [usize; 2]) -> Self {
        Self {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            head_size,
            causal: false,
            window: None,
            scale: None,
            mask: None,
            lengths: false,
            kv: None,
            paging: None,
            tile: None,
            coop_tile: None,
            variant: "auto".into(),
        }
    }

    /// Query i sees no key after i + keys - queries: the last query is aligned with the last key.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.causal = true;
        self
    }

    /// Queries see keys less than `window` away; with [`causal`](Self::causal) these are the last `window` keys. A window
    /// of at least `keys` has no effect.
    #[must_use]
    pub fn window(mut self, window: usize) -> Self {
        self.window = Some(window);
        self
    }

    /// Factor of the products of q and k; 1 over the root of the head size by default.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// With an operand `mask` of f32, (batch, heads, queries, keys), which is added to the scores. `batch` and `heads`
    /// of it are those of q, or 1 for one mask for all.
    #[must_use]
    pub fn masked(mut self, [batch, heads]: [usize; 2]) -> Self {
        self.mask = Some([batch, heads]);
        self
    }

    /// With an operand `lengths` of u32: how many of the keys of each sequence are used, the first ones, at most
    /// `keys`. One plan serves a cache that grows.
    #[must_use]
    pub fn lengths(mut self) -> Self {
        self.lengths = true;
        self
    }

    /// How `k` and `v` are stored; as `q` by default. Quantised ones come with an operand `scales` of f32: the factors of
    /// the rows of k, then those of v.
    #[must_use]
    pub fn kv(mut self, kv: KvType) -> Self {
        self.kv = Some(kv);
        self
    }

    /// `k` and `v` lie in pages, (pages, kv heads, tokens of a page, head size). The operand `table` of u32, (batch,
    /// ceil(keys / tokens of a page)), lists the pages of each sequence in the order of its keys. Sequences may share
    /// pages. Keys of a page that does not exist are hidden.
    #[must_use]
    pub fn paged(mut self, paging: Paging) -> Self {
        self.paging = Some(paging);
        self
    }

    /// The tile of `flash`. The default follows the device and the head size.
    #[must_use]
    pub fn tile(mut self, tile: FlashTile) -> Self {
        self.tile = Some(tile);
        self
    }

    /// The tile of `coop`. The default follows the head size.
    #[must_use]
    pub fn coop_tile(mut self, tile: CoopTile) -> Self {
        self.coop_tile = Some(tile);
        self
    }

    crate::program::variants!(variant);

    /// Heads that share keys and values.
    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads.max(1)
    }

    /// Pages of a sequence.
    pub(crate) fn pages_each(&self) -> usize {
        self.paging.map_or(0, |p| self.keys.div_ceil(p.tokens.max(1)))
    }

    /// What the products are multiplied by.
    pub(crate) fn factor(&self) -> f32 {
        self.scale.unwrap_or(1.0 / (self.head_size as f32).sqrt())
    }

    /// Rows of k.
    fn kv_rows(&self, op: &str) -> Result<usize> {
        match self.paging {
            None => elements(op, "k", &[self.batch, self.kv_heads, self.keys]),
            Some(Paging { tokens, pages }) => elements(op, "k", &[pages, self.kv_heads, tokens]),
        }
    }

    /// The shape, for texts.
    pub(crate) fn name(&self, op: &str) -> String {
        let Self { batch, heads, kv_heads, queries, keys, head_size, .. } = self;
        format!("{op} B{batch} H{heads} G{kv_heads} T{queries} S{keys} D{head_size}")
    }

    /// Holds the extents against each other.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let Self { heads, kv_heads, .. } = *self;
        for (what, extent) in [
            ("sequences (B)", self.batch),
            ("heads (H)", heads),
            ("kv heads (G)", kv_heads),
            ("queries (T)", self.queries),
            ("keys (S)", self.keys),
        ] {
            if extent == 0 {
                return Err(err!(
                    Shape,
                    "{name}: the number of {what} is 0; every extent must be at least 1"
                ));
            }
            index_u32(name, what, extent)?;
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(err!(
                Shape,
                "{name}: {heads} heads are no multiple of {kv_heads} kv heads; each kv head serves as many heads"
            ));
        }
        if !self.head_size.is_multiple_of(8) || !(8..=256).contains(&self.head_size) {
            return Err(err!(
                Unsupported,
                "{name}: a head size of {}; supported are the multiples of 8 from 8 to 256; pad q, k and v with zeros and \
                 give the scale",
                self.head_size
            ));
        }
        if self.window == Some(0) {
            return Err(err!(
                InvalidArgument,
                "{name}: a window of 0 keys; take at least 1, or none to see all keys"
            ));
        }
        if !self.factor().is_finite() {
            return Err(err!(InvalidArgument, "{name}: the scale is {:?}; it must be finite", self.factor()));
        }
        if let Some([batch, heads]) = self.mask
            && (![1, self.batch].contains(&batch) || ![1, self.heads].contains(&heads))
        {
            return Err(err!(
                Shape,
                "{name}: a mask of {batch} x {heads} x {} x {}; its first extent must be 1 or {}, its second 1 or {}",
                self.queries,
                self.keys,
                self.batch,
                self.heads
            ));
        }
        if let Some(Paging { tokens, pages }) = self.paging {
            if !(16..=256).contains(&tokens) {
                return Err(err!(InvalidArgument, "{name}: pages of {tokens} tokens; they have 16 to 256"));
            }
            if pages == 0 {
                return Err(err!(Shape, "{name}: a cache of 0 pages; it must have at least 1"));
            }
        }
        Ok(())
    }

    /// In the order of the call.
    pub(crate) fn operands(&self, op: &str, dtype: DType, kv: KvType) -> Result<Vec<Operand>> {
        let read = |name, dtype, len| Operand { name, dtype, len, access: Access::Read };
        let q = elements(op, "q", &[self.batch, self.heads, self.queries, self.head_size])?;
        let rows = self.kv_rows(op)?;
        let kv_len = elements(op, "k", &[rows, self.head_size])?;
        let mut operands =
            vec![read("q", dtype, q), read("k", kv.dtype(), kv_len), read("v", kv.dtype(), kv_len)];
        if kv.is_scaled() {
            operands.push(read("scales", DType::F32, elements(op, "scales", &[2, rows])?));
        }
        if self.paging.is_some() {
            operands.push(read(
                "table",
                DType::U32,
                elements(op, "table", &[self.batch, self.pages_each()])?,
            ));
        }
        if self.lengths {
            operands.push(read("lengths", DType::U32, self.batch));
        }
        if let Some([batch, heads]) = self.mask {
            let len = elements(op, "mask", &[batch, heads, self.queries, self.keys])?;
            operands.push(read("mask", DType::F32, len));
        }
        operands.push(Operand { name: "output", dtype, len: q, access: Access::Write });
        Ok(operands)
    }

    /// Pairs of a query and a key that it sees, of one head: all lengths taken as `keys`.
    fn pairs(&self) -> f64 {
        let (t, s) = (self.queries as f64, self.keys as f64);
        let window = self.window.map_or(f64::INFINITY, |w| w as f64);
        // Of the queries at p = s - t to s - 1 the sum of keys, the triangles at both ends cut off.
        let seen = |p: f64| {
            let above = if self.causal { p + 1.0 } else { (p + window).min(s) };
            (above.clamp(0.0, s) - (p - window + 1.0).clamp(0.0, s)).max(0.0)
        };
        if self.causal || self.window.is_some() {
            // Counted at up to 1024 places: the function is straight between few bends.
            let steps = self.queries.min(1024);
            let mean: f64 =
                (0..steps).map(|i| seen(s - t + ((i as f64 + 0.5) * t / steps as f64 - 0.5))).sum::<f64>()
                    / steps as f64;
            mean * t
        } else {
            t * s
        }
    }

    pub(crate) fn cost(&self, operands: &[Operand]) -> Cost {
        let flop = 4.0 * (self.batch * self.heads * self.head_size) as f64 * self.pairs();
        Cost { flop, bytes: operands.iter().map(|o| o.bytes() as f64).sum() }
    }

    /// Checks everything but the variant; the operands of an attention.
    pub(super) fn prepare<'a>(
        &'a self,
        op: &'static str,
        dtype: DType,
        profile: &'a DeviceProfile,
    ) -> Result<(AttentionLowering<'a>, Vec<Operand>)> {
        let name = self.name(op);
        self.check(&name)?;
        let kv = self.kv.unwrap_or(if dtype == DType::F16 { KvType::F16 } else { KvType::F32 });
        let operands = self.operands(&name, dtype, kv)?;
        let remedy = "take fewer sequences or heads at a time";
        profile.check_buffers(&name, &operands, remedy)?;
        for operand in &operands {
            if matches!(operand.name, "scales" | "table" | "lengths") {
                profile.check_bindings(&name, std::slice::from_ref(operand), remedy)?;
            }
        }
        let rows = self.kv_rows(&name)?;
        Ok((AttentionLowering { op: self, name, dtype, kv, rows, profile }, operands))
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (lowering, operands) = self.prepare("attention", dtype, profile)?;
        let (variant, decision) =
            choose("attention", &self.variant, VARIANTS, profile, || policy(&lowering))?;
        let mut program = Program::new("attention", decision);
        program.cost = self.cost(&operands);
        program.operands = operands;
        match variant.name {
            "naive" => naive::lower(&lowering, &mut program)?,
            "split-kv" => split::lower(&lowering, &mut program)?,
            "coop" => coop::lower(&lowering, &mut program)?,
            _ => flash::lower(&lowering, &mut program)?,
        }
        Ok(program)
    }
}

/// Which variant, and why.
fn policy(of: &AttentionLowering<'_>) -> (&'static str, String) {
    let rows = of.rows_of_pair();
    if of.op.queries <= 4 || rows <= 16 {
        ("split-kv", format!("{rows} rows share keys: reading these is the work"))
    } else if coop::missing(of).is_none() {
        ("coop", "cooperative matrices multiply f16".to_owned())
    } else if flash::fits(of) {
        ("flash", "no scores in memory".to_owned())
    } else {
        ("naive", "more keys than one invocation can walk through here".to_owned())
    }
}

operands! {
    impl[T: Element,] Attention, T [cuda] {
        fn record<K>(q: T, k: K, v: K, output: T);
        /// Factors of the rows of quantised k, then of those of v.
        optional with_scales(scales: f32);
        /// The pages of each sequence.
        optional with_table(table: u32);
        /// How many keys each sequence uses.
        optional with_lengths(lengths: u32);
        /// What is added to the scores.
        optional with_mask(mask: f32);
    }
}

crate::program::lowers! {
    impl[] Attention as [f32, f16], |op, dtype, profile| op.lower_as(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "attention",
    about: "softmax(scale Q K^T + mask) V of each head",
    inputs: form::ATTENTION_INPUTS,
    outputs: &[("output", "(B, H, T, D)")],
    types: &[DType::F32, DType::F16],
    options: form::ATTENTION_OPTIONS,
    make: Some(form::make),
    variants: Attention::variants,
    samples,
    domains: &[
        ("scales", Domain::Meaningful),
        ("table", Domain::Meaningful),
        ("lengths", Domain::Meaningful),
        ("mask", Domain::Meaningful),
    ],
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    if variant == "coop" {
        for op in [
            Attention::new([1, 2, 70, 32], [2, 70]),
            Attention::new([1, 4, 70, 64], [2, 70]).causal().window(9),
            Attention::new([2, 4, 30, 128], [1, 64]).masked([1, 1]).lengths(),
        ] {
            programs.push(Op::<f16>::lower(&op.variant(variant), profile)?);
        }
        return Ok(programs);
    }
    for op in [
        Attention::new([2, 4, 5, 32], [2, 40]),
        Attention::new([1, 4, 70, 64], [4, 70]).causal(),
        Attention::new([1, 2, 70, 64], [2, 70]).causal().window(9).kv(KvType::F16),
        Attention::new([2, 4, 3, 128], [1, 64]).masked([1, 1]).lengths().kv(KvType::F32),
        Attention::new([2, 4, 1, 40], [1, 64])
            .window(7)
            .paged(Paging { tokens: 16, pages: 9 })
            .lengths()
            .masked([2, 1]),
        Attention::new([1, 2, 1, 128], [1, 64]).lengths().kv(KvType::Fp8),
        Attention::new([1, 2, 5, 64], [1, 40]).paged(Paging { tokens: 16, pages: 3 }).kv(KvType::Int8),
    ] {
        let op = op.variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
    }
    Ok(programs)
}
