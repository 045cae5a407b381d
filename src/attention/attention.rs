use super::by_name;
use super::coop::CoopTile;
use super::flash::FlashTile;
use super::kv_storage::{KvType, Paging};
use super::layout::AttentionLowering;
use super::score_stage::ScoreStage;
use super::way::{AttentionWay, VARIANTS, policy};
use crate::program::prelude::*;

/// Computes attention of each head, `output = softmax(scale Q K^T + mask) V`, over the keys that each query may see.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::attention::Attention;
/// use tilework::prelude::*;
///
/// // One head of size 8, two queries, two keys of equal score: the mean of the visible values.
/// let gpu = Gpu::new()?;
/// let (q, k) = (gpu.upload(&[0.0f32; 16])?, gpu.upload(&[1.0f32; 16])?);
/// let v = gpu.upload(&[[1.0f32; 8], [3.0; 8]].concat())?;
/// let output = gpu.alloc::<f32>(16)?;
/// let plan = Attention::new([1, 1, 2, 8], [1, 2]).causal().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &q, &k, &v, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [[1.0; 8], [2.0; 8]].concat());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `q` is (batch, heads, queries, head size), `k` (batch, kv heads, keys, head size), `v` (batch, kv heads, keys, value
/// size), `output` (batch, heads, queries, value size), dense and row-major. The value size is the head size unless
/// [`value_size`](Self::value_size) sets it. The number of heads is a multiple of kv heads: `heads / kv_heads`
/// consecutive heads share one kv head. Operands are `q`, `k`, `v`, then those of the options in this order: `scales`
/// ([`kv`](Self::kv)), `table` ([`paged`](Self::paged)), `lengths` ([`lengths`](Self::lengths)), `mask`
/// ([`masked`](Self::masked)); last `output`, `scores` ([`scores`](Self::scores)) and `logsumexp`
/// ([`logsumexp`](Self::logsumexp)), which must not share a buffer with the others.
///
/// Head and value sizes are at least 1. Multiples of 8 are fastest; other multiples of 4 are read four elements at a
/// time, the rest one at a time. Without keys the output is 0; without queries, heads or sequences it is empty.
///
/// # Visible keys
/// The last query is aligned with the last key: of n keys (`keys`, or the length of the sequence), query i of T has
/// position p = i + n - T. It sees all keys; with [`causal`](Self::causal) keys j <= p; with [`window`](Self::window)
/// W keys with |p - j| < W. A query that sees no key, or only scores of -infinity, returns zeros.
///
/// # Types
/// `q` and `output` are f32 or f16. `k` and `v` have any [`KvType`], independently of `q`. Only `coop` needs a device
/// feature.
///
/// # Precision and determinism
/// Scores, exponentials and sums are f32; [`reference::attention_bound`](crate::reference::attention_bound) bounds the
/// error. `coop`, which `auto` takes for f16 where it can, rounds weights to f16 before it multiplies them by values.
/// That adds up to 2^-10 times the weighted mean of the values' magnitudes, as much as the rounding of an f16 output;
/// hardware that truncates sums needs four times the bound. The same device, inputs and variant give the same bits.
///
/// A score of NaN or +infinity makes its row NaN, as in softmax. A weight of 0 times an infinite value may be NaN. Keys
/// that a query does not see have no effect on it, whatever `k` and `v` hold there. A key with a mask of -infinity is
/// visible and has weight 0.
///
/// # Cost
/// 2 heads x queries x keys x (head size + value size) flop for each sequence, half of that if causal; with a window W
/// the time grows with queries x W. `flash` and `coop`: one dispatch, no scratch; keys and values are read once for
/// each tile of queries. `split-kv`: two dispatches; keys and values are read once for up to 4 rows of `q` that share
/// them; each part of the keys takes value size + 4 numbers of scratch for each row. `naive`: three dispatches for as
/// many rows as one binding holds, and 4 bytes of scratch for each score.
///
/// # Variants
/// `naive` writes all scores, then their softmax, then multiplies by the values. `flash` keeps scores in registers,
/// with an online softmax over tiles of keys ([`tile`](Self::tile)), for values of up to 256 elements. `coop` does the
/// same on cooperative matrices, for f16 `q`, `k` and `v` of one size, a multiple of 16 up to 128, without pages
/// ([`coop_tile`](Self::coop_tile)). `split-kv` suits few queries and many keys, as in decoding, and head and value
/// sizes up to 256. Only `naive` takes larger values and returns scores. `auto`, the default, chooses by shape and
/// device.
///
/// # On CUDA
/// `q`, `k`, `v` and `output` are all f16 or all bf16, of one size, a multiple of 8 up to 256. The variants are `wgmma`
/// and `mma` for many queries, and `split-kv` for few; `split-kv` also takes lengths, pages and int8 `k` and `v` of a
/// multiple of 16 elements. It rounds decoded values to the type of `q`. Masks, caps, scores, fp8, and `k` and `v` of
/// another float type than `q` need a `Gpu`.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): a head or value size of 0, heads that are not a multiple of kv heads, a mask
///   of another shape.
/// - [`Unsupported`](ErrorKind::Unsupported): inputs, a size, scores or a device that the variant cannot use.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a window of 0, a scale that is not finite, a cap that is
///   not finite and above 0, pages of fewer than 16 or more than 256 tokens, an invalid tile, an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, keys of a head, a mask or scores
///   above the largest binding, or a tile above the workgroup limits.
///
/// # Algorithm
/// Vaswani et al., *Attention Is All You Need*, 2017: `shaders/attention/attention_scores.wgsl`,
/// `attention_softmax.wgsl`, `attention_values.wgsl`. Dao, *FlashAttention-2*, 2023: `attention_flash.wgsl` and
/// `attention_coop.wgsl`. Dao et al., *Flash-Decoding*, 2023: `attention_split.wgsl`, `attention_merge.wgsl`; on
/// CUDA `attention_decode.cu`, `attention_join.cu`. Pages as
/// in Kwon et al., *PagedAttention*, 2023.
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
    pub(crate) value_size: usize,
    pub(crate) softcap: Option<f32>,
    pub(crate) scores: Option<ScoreStage>,
    pub(crate) logsumexp: bool,
    pub(crate) mask: Option<[usize; 2]>,
    pub(crate) lengths: bool,
    pub(crate) kv: Option<KvType>,
    pub(crate) paging: Option<Paging>,
    pub(super) tile: Option<FlashTile>,
    pub(super) coop_tile: Option<CoopTile>,
    pub(crate) variant: String,
}

impl Attention {
    /// Takes the shape of `q`, (batch, heads, queries, head size). `k` and `v` are (batch, `kv_heads`, `keys`, head
    /// size) unless [`value_size`](Self::value_size) changes `v`. `heads` must be a multiple of `kv_heads`.
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
            value_size: head_size,
            softcap: None,
            scores: None,
            logsumexp: false,
            mask: None,
            lengths: false,
            kv: None,
            paging: None,
            tile: None,
            coop_tile: None,
            variant: "auto".into(),
        }
    }

    /// Hides keys after i + keys - queries from query i: the last query is aligned with the last key.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.causal = true;
        self
    }

    /// Hides keys at a distance of `window` or more; with [`causal`](Self::causal) a query sees the last `window` keys.
    /// A window of at least `keys` has no effect.
    #[must_use]
    pub fn window(mut self, window: usize) -> Self {
        self.window = Some(window);
        self
    }

    /// Sets the factor of the products of q and k. The default is 1 / sqrt(head size).
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Sets the size of value heads, the last extent of `v` and `output`. The default is the head size of `q` and `k`.
    #[must_use]
    pub fn value_size(mut self, size: usize) -> Self {
        self.value_size = size;
        self
    }

    /// Caps the scores smoothly before the mask: a score x becomes `cap tanh(x / cap)`.
    #[must_use]
    pub fn softcap(mut self, cap: f32) -> Self {
        self.softcap = Some(cap);
        self
    }

    /// Returns the scores of a step, too: an operand `scores` of f32, (batch, heads, queries, keys), after `output`.
    #[must_use]
    pub fn scores(mut self, stage: ScoreStage) -> Self {
        self.scores = Some(stage);
        self
    }

    /// Returns the logarithm of the sum of the exponentials of each query's scores, too: an operand `logsumexp` of f32,
    /// (batch, heads, queries), after `output` and `scores`. It is -infinity for a query that sees no key.
    /// [`AttentionBackward::saved`](super::AttentionBackward::saved) takes it.
    #[must_use]
    pub fn logsumexp(mut self) -> Self {
        self.logsumexp = true;
        self
    }

    /// Adds a mask to the scores: an operand `mask` of f32, (batch, heads, queries, keys). Its `batch` and `heads` are
    /// those of `q`, or 1 to share it.
    #[must_use]
    pub fn masked(mut self, [batch, heads]: [usize; 2]) -> Self {
        self.mask = Some([batch, heads]);
        self
    }

    /// Uses only the first keys of each sequence: an operand `lengths` of u32 has their number, at most `keys`. So one
    /// plan serves a growing cache.
    #[must_use]
    pub fn lengths(mut self) -> Self {
        self.lengths = true;
        self
    }

    /// Sets the type of `k` and `v`. The default is that of `q`. Quantised types add an operand `scales` of f32: a
    /// scale for each row of `k`, then for each row of `v`.
    #[must_use]
    pub fn kv(mut self, kv: KvType) -> Self {
        self.kv = Some(kv);
        self
    }

    /// Reads `k` and `v` from pages, (pages, kv heads, tokens in a page, head or value size), which a
    /// [`PagePool`](super::PagePool) gives to sequences. An operand `table` of u32, (batch,
    /// ceil(keys / tokens in a page)), lists the pages of each sequence in the order of its keys. Sequences may share
    /// pages. Keys in a page that does not exist are hidden.
    #[must_use]
    pub fn paged(mut self, paging: Paging) -> Self {
        self.paging = Some(paging);
        self
    }

    /// Sets the tile of `flash`. The default depends on the device and the head size.
    #[must_use]
    pub fn tile(mut self, tile: FlashTile) -> Self {
        self.tile = Some(tile);
        self
    }

    /// Sets the tile of `coop`. The default depends on the head size.
    #[must_use]
    pub fn coop_tile(mut self, tile: CoopTile) -> Self {
        self.coop_tile = Some(tile);
        self
    }

    variants!(variant);

    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads.max(1)
    }

    pub(crate) fn pages_each(&self) -> usize {
        self.paging.map_or(0, |p| self.keys.div_ceil(p.tokens.max(1)))
    }

    pub(crate) fn factor(&self) -> f32 {
        self.scale.unwrap_or(1.0 / (self.head_size as f32).sqrt())
    }

    fn kv_rows(&self, op: &str) -> Result<usize> {
        match self.paging {
            None => elements(op, "k", &[self.batch, self.kv_heads, self.keys]),
            Some(Paging { tokens, pages }) => elements(op, "k", &[pages, self.kv_heads, tokens]),
        }
    }

    pub(crate) fn name(&self, op: &str) -> String {
        let Self { batch, heads, kv_heads, queries, keys, head_size, .. } = self;
        let value_size = if self.value_size == *head_size { String::new() } else { format!(" E{}", self.value_size) };
        format!("{op} B{batch} H{heads} G{kv_heads} T{queries} S{keys} D{head_size}{value_size}")
    }

    /// Fails if extents or options contradict each other.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let Self { heads, kv_heads, .. } = *self;
        for (what, extent) in [
            ("sequences (B)", self.batch),
            ("heads (H)", heads),
            ("kv heads (G)", kv_heads),
            ("queries (T)", self.queries),
            ("keys (S)", self.keys),
            ("elements of a head (D)", self.head_size),
            ("elements of a value (E)", self.value_size),
        ] {
            index_u32(name, what, extent)?;
        }
        if heads > 0 && (kv_heads == 0 || !heads.is_multiple_of(kv_heads)) {
            return Err(err!(
                Shape,
                "{name}: {heads} heads are not a multiple of {kv_heads} kv heads; each kv head must serve equally many"
            ));
        }
        if self.head_size == 0 || self.value_size == 0 {
            return Err(err!(
                Shape,
                "{name}: heads of {} elements and values of {}; both must be at least 1",
                self.head_size,
                self.value_size
            ));
        }
        if self.window == Some(0) {
            return Err(err!(
                InvalidArgument,
                "{name}: the window is 0 keys; it must be at least 1; leave it out to see all keys"
            ));
        }
        if !self.factor().is_finite() {
            return Err(err!(InvalidArgument, "{name}: the scale is {:?}; it must be finite", self.factor()));
        }
        if let Some(cap) = self.softcap
            && !(cap.is_finite() && cap >= f32::MIN_POSITIVE)
        {
            return Err(err!(
                InvalidArgument,
                "{name}: the softcap is {cap:?}; it must be finite and above 0; leave it out to cap nothing"
            ));
        }
        if let Some([batch, heads]) = self.mask
            && (![1, self.batch].contains(&batch) || ![1, self.heads].contains(&heads))
        {
            return Err(err!(
                Shape,
                "{name}: the mask is {batch} x {heads} x {} x {}; its first extent must be 1 or {}, its second 1 or {}",
                self.queries,
                self.keys,
                self.batch,
                self.heads
            ));
        }
        if let Some(paging) = self.paging {
            paging.check(name)?;
            if paging.pages == 0 && self.keys > 0 {
                return Err(err!(Shape, "{name}: the cache has 0 pages; it must have at least 1"));
            }
        }
        Ok(())
    }

    /// Lists the operands in the order of the call.
    pub(crate) fn operands(&self, op: &str, dtype: DType, kv: KvType) -> Result<Vec<Operand>> {
        let read = |name, dtype, len| Operand { name, dtype, len, access: Access::Read };
        let q = elements(op, "q", &[self.batch, self.heads, self.queries, self.head_size])?;
        let rows = self.kv_rows(op)?;
        let k = elements(op, "k", &[rows, self.head_size])?;
        let v = elements(op, "v", &[rows, self.value_size])?;
        let mut operands = vec![read("q", dtype, q), read("k", kv.dtype(), k), read("v", kv.dtype(), v)];
        if kv.is_scaled() {
            operands.push(read("scales", DType::F32, elements(op, "scales", &[2, rows])?));
        }
        if self.paging.is_some() {
            operands.push(read("table", DType::U32, elements(op, "table", &[self.batch, self.pages_each()])?));
        }
        if self.lengths {
            operands.push(read("lengths", DType::U32, self.batch));
        }
        if let Some([batch, heads]) = self.mask {
            let len = elements(op, "mask", &[batch, heads, self.queries, self.keys])?;
            operands.push(read("mask", DType::F32, len));
        }
        let write = |name, dtype, len| Operand { name, dtype, len, access: Access::Write };
        let output = elements(op, "output", &[self.batch, self.heads, self.queries, self.value_size])?;
        operands.push(write("output", dtype, output));
        if self.scores.is_some() {
            let scores = elements(op, "scores", &[self.batch, self.heads, self.queries, self.keys])?;
            operands.push(write("scores", DType::F32, scores));
        }
        if self.logsumexp {
            let rows = elements(op, "logsumexp", &[self.batch, self.heads, self.queries])?;
            operands.push(write("logsumexp", DType::F32, rows));
        }
        Ok(operands)
    }

    /// Returns the number of visible (query, key) pairs of one head, if all lengths are `keys`.
    pub(super) fn pairs(&self) -> f64 {
        let (t, s) = (self.queries as f64, self.keys as f64);
        let window = self.window.map_or(f64::INFINITY, |w| w as f64);
        // The keys that the query at position p sees.
        let visible = |p: f64| {
            let above = if self.causal { p + 1.0 } else { (p + window).min(s) };
            (above.clamp(0.0, s) - (p - window + 1.0).clamp(0.0, s)).max(0.0)
        };
        if (self.causal || self.window.is_some()) && self.queries > 0 {
            // The mean of up to 1024 samples: the function is piecewise linear.
            let steps = self.queries.min(1024);
            let mean: f64 =
                (0..steps).map(|i| visible(s - t + ((i as f64 + 0.5) * t / steps as f64 - 0.5))).sum::<f64>()
                    / steps as f64;
            mean * t
        } else {
            t * s
        }
    }

    pub(crate) fn cost(&self, operands: &[Operand]) -> Cost {
        let sizes = (self.head_size + self.value_size) as f64;
        let flop = 2.0 * (self.batch * self.heads) as f64 * sizes * self.pairs();
        Cost::of(flop, operands)
    }

    /// Checks everything except the variant, and lists the operands.
    pub(super) fn prepare<'a>(
        &'a self, op: &'static str, dtype: DType, profile: &'a DeviceProfile,
    ) -> Result<(AttentionLowering<'a>, Vec<Operand>)> {
        let name = self.name(op);
        self.check(&name)?;
        let kv = self.kv.unwrap_or(if dtype == DType::F16 { KvType::F16 } else { KvType::F32 });
        let operands = self.operands(&name, dtype, kv)?;
        let remedy = "split the batch or the heads";
        profile.check_buffers(&name, &operands, remedy)?;
        for operand in &operands {
            if matches!(operand.name, "scales" | "table" | "lengths" | "scores" | "logsumexp") {
                profile.check_bindings(&name, std::slice::from_ref(operand), remedy)?;
            }
        }
        let rows = self.kv_rows(&name)?;
        Ok((AttentionLowering { op: self, name, dtype, kv, rows, profile }, operands))
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (lowering, operands) = self.prepare("attention", dtype, profile)?;
        let (variant, decision) = choose("attention", &self.variant, VARIANTS, profile, || policy(&lowering))?;
        let way = AttentionWay::of(variant.name, &lowering)?;
        let mut program = Program::new("attention", decision);
        program.cost = self.cost(&operands);
        program.operands = operands;
        if self.batch * self.heads * self.queries == 0 {
            return Ok(program);
        }
        if self.keys == 0 {
            lowering.lower_zero(&mut program)?;
            if self.logsumexp {
                let at = program.operands.len() - 1;
                let bits = f32::NEG_INFINITY.to_bits();
                let filled = fill(program.operands[at].len, [bits; 2], profile)?;
                program.append(filled, &[Resource::Operand(at)]);
            }
        } else {
            way.lower(&lowering, &mut program)?;
        }
        let pairs = (self.batch * self.heads) as f64 * self.pairs();
        let size = lowering.kv.dtype().size() as f64;
        let (head, both) = (self.head_size as f64, (self.head_size + self.value_size) as f64);
        let again = match &way {
            // A score loads a row of q and one of k; a weight is loaded for each vec4 of v.
            AttentionWay::Naive => pairs * (head * dtype.size() as f64 + both * size + self.value_size as f64),
            // A tile of rows loads its keys and values once.
            AttentionWay::Flash(tile) => pairs * both * size / f64::from(tile.rows),
            AttentionWay::Coop(tile) => pairs * both * size / f64::from(tile.all_rows()),
            AttentionWay::SplitKv => 0.0,
        };
        program.traffic = program.requested().map(|bytes| bytes + again);
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Attention, T [cuda] {
        fn record<K>(q: T, k: K, v: K, output: T);
        /// Takes the scales of quantised rows: those of `k`, then those of `v`.
        optional with_scales(scales: f32);
        /// Takes the pages of each sequence.
        optional with_table(table: u32);
        /// Takes the number of keys of each sequence.
        optional with_lengths(lengths: u32);
        /// Takes the mask, which is added to the scores.
        optional with_mask(mask: f32);
        /// Takes the buffer that receives the scores.
        optional with_scores(scores: f32);
        /// Takes the buffer that receives the logarithm of the sum of exponentials of each query.
        optional with_logsumexp(logsumexp: f32);
    }
}

lowered_as!(Attention: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "attention",
    about: "softmax(scale Q K^T + mask) V of each head",
    inputs: by_name::ATTENTION_INPUTS,
    outputs: &[("output", "(B, H, T, E)"), ("[scores]", "f32 (B, H, T, S)"), ("[logsumexp]", "f32 (B, H, T)")],
    types: &[DType::F32, DType::F16],
    options: by_name::ATTENTION_OPTIONS,
    make: Some(by_name::make),
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
            Attention::new([1, 2, 70, 64], [2, 70]).softcap(2.0),
            Attention::new([1, 2, 70, 64], [2, 70]).causal().logsumexp(),
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
        // Rows that fill no vec4s, or no pairs of them.
        Attention::new([2, 4, 5, 33], [2, 40]).value_size(20),
        Attention::new([1, 4, 70, 36], [2, 70]).value_size(7).causal().softcap(2.0).kv(KvType::F16),
        Attention::new([1, 2, 5, 7], [1, 40]).paged(Paging { tokens: 16, pages: 3 }).kv(KvType::Int8),
        Attention::new([1, 2, 5, 100], [1, 40]).value_size(33).lengths().kv(KvType::Fp8),
        Attention::new([1, 2, 5, 64], [1, 0]).value_size(30).logsumexp(),
        Attention::new([1, 2, 5, 64], [1, 40]).causal().logsumexp(),
    ] {
        let op = op.variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
    }
    for stage in ScoreStage::ALL.into_iter().filter(|_| variant == "naive") {
        let op = Attention::new([1, 2, 5, 32], [1, 40]).softcap(2.0).masked([1, 1]).scores(stage);
        programs.push(Op::<f32>::lower(&op.variant(variant), profile)?);
    }
    Ok(programs)
}
