use super::attention::Attention;
use super::backward_coop;
use super::backward_flash::{self, GradientTile};
use super::backward_layout::{GradientLowering, lower_naive, naive_rounds};
use super::backward_padding;
use super::backward_stored::{self, StoredSteps};
use super::by_name;
use crate::program::prelude::*;

/// Computes the gradients of [`Attention`] with respect to q, k and v, from the gradient `dy` of its output: of each
/// head, with `P = softmax(scale Q K^T)` and `S = P (dY V^T - rowsum(P dY V^T))` by elements, `dQ = scale S K`,
/// `dK = scale S^T Q` and `dV = P^T dY`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::AttentionBackward;
/// use tilework::prelude::*;
///
/// // Two queries and two keys of equal score: the second query sees both.
/// let gpu = Gpu::new()?;
/// let (q, k) = (gpu.upload(&[0.0f32; 16])?, gpu.upload(&[0.0f32; 16])?);
/// let v = gpu.upload(&[[1.0f32; 8], [3.0; 8]].concat())?;
/// let dy = gpu.upload(&[[1.0f32; 8], [2.0; 8]].concat())?;
/// let (dq, dk, dv) = (gpu.alloc::<f32>(16)?, gpu.alloc::<f32>(16)?, gpu.alloc::<f32>(16)?);
/// let plan = AttentionBackward::new([1, 1, 2, 8], [1, 2]).causal().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &q, &k, &v, &dy, &dq, &dk, &dv)?;
/// rec.submit()?;
/// assert_eq!(dv.read()?, [[2.0; 8], [1.0; 8]].concat());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `q` and `dq` are (batch, heads, queries, head size), `k` and `dk` (batch, kv heads, keys, head size), `v` and `dv`
/// (batch, kv heads, keys, value size), `dy` (batch, heads, queries, value size): dense and row-major. Sizes of heads
/// and values are at least 1; the other extents may be 0, and an empty sum is 0. If heads share a kv head, its
/// gradients are the sums over them. Outputs must not share wgpu buffers with other operands.
///
/// # Visible keys
/// As for [`Attention`], by [`causal`](Self::causal) and [`window`](Self::window). A query that sees no key, or only
/// scores of -infinity, has the gradient 0 and adds nothing to others.
///
/// # Types
/// f32 or f16, all operands alike. Only `coop` needs a device feature.
///
/// # Precision and determinism
/// Scores are computed again; nothing of the forward pass is needed, but [`saved`](Self::saved) takes its results. All
/// sums are f32, and results are rounded once.
/// [`reference::attention_backward_bound`](crate::reference::attention_backward_bound) bounds the error. `coop` and
/// `coop-stored`, of which `auto` takes one for f16 where it can, round the elements of P and S to f16 before they
/// multiply them: elements of S above 65,504 become infinite, and the bound is wider. The same device, inputs and
/// variant give the same bits: no atomics.
///
/// NaN and infinities propagate as in f32 arithmetic. Besides, they may make any gradient of the heads that share keys
/// with them NaN, since a kernel may multiply them by a weight of 0.
///
/// # Cost
/// 10 heads x queries x keys x head size flop for each sequence, half of that if causal. `flash` computes 1.6 times as
/// many and `coop` 1.8 times, since they compute scores again: two dispatches (`coop` three), and 8 bytes of scratch
/// for each query. `stored` computes each score once, in steps of six dispatches or more, and takes scratch of 8 bytes
/// for each score of a step, at most 1 GiB. `coop-stored` computes 1.4 times as many flop, in steps of three
/// dispatches, and takes scratch of 2 bytes for each score of a step, at most 1 GiB.
///
/// With [`saved`](Self::saved) a dispatch that reads dy and the output takes the place of the statistics' computation:
/// `coop` then computes 1.4 times as many flop, `coop-stored` just as many; `stored` computes weights and slopes at the
/// end of products.
///
/// # Variants
/// `naive` computes a row of a gradient with each workgroup. `flash` keeps tiles of scores in registers; it takes heads
/// and values of up to 256 elements. `coop` does the same on cooperative matrices, for f16 and up to 128 elements.
/// `stored` keeps scores in scratch and multiplies by [`GemmBatched`](crate::GemmBatched), for f32 and up to 16,384
/// keys. `coop-stored` is `coop`, except that the kernel of keys stores S, of which dq is a product: for up to 1 GiB of
/// S of the heads that share keys. `auto`, the default, takes `coop-stored`, then `coop` where it can, then `stored` on
/// discrete cards and software drivers, then `flash`. Heads and values of different sizes, or of a size that is not a
/// multiple of 16 for `coop` and `coop-stored`, of 4 for `flash` and `stored`, or of 2 for `naive` and f16, are copied
/// to padded rows in scratch and back.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): a size of 0, heads that are not a multiple of kv heads.
/// - [`Unsupported`](ErrorKind::Unsupported): a size that the variant does not take; operands or a device that
///   `coop` cannot use.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a window of 0, a scale that is not finite, an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, the heads that share keys above the
///   largest binding, or more queries or keys than the loops of a software driver can take.
///
/// # Algorithm
/// Dao, *FlashAttention-2*, 2023, without atomics: a kernel of queries writes dq and the statistics of each row, then a
/// kernel of keys writes dk and dv. `stored` follows the formulas above, matrix by matrix.
/// `shaders/attention/attention_backward_naive.wgsl`, `attention_backward_flash.wgsl`, `attention_backward_coop.wgsl`,
/// `attention_backward_slopes.wgsl`, `attention_backward_scores.wgsl`, `attention_backward_rows.wgsl`,
/// `attention_backward_statistics.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionBackward {
    pub(crate) forward: Attention,
    pub(crate) value_size: usize,
    pub(crate) saved: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "a workgroup for each row of a gradient, which computes its scores again"),
    Variant::portable("flash", "tiles of scores in registers, once over queries and once over keys"),
    Variant::portable("stored", "for f32: scores in scratch, between matrix products as `gemm-batched` chooses them"),
    Variant {
        name: "coop",
        about: "`flash` on cooperative matrices, for f16: weights and slopes are rounded to f16, sums are f32",
        requires: Requires { subgroups: true, f16: true, cooperative: true },
        // naga translates matrices of 16 x 16 to SPIR-V only; Tint and standard WGSL have none.
        translations: &[Translation::SpirV],
        any_order: false,
    },
    Variant {
        name: "coop-stored",
        about: "`coop` with slopes in scratch, so that each score is computed once for all gradients",
        requires: Requires { subgroups: true, f16: true, cooperative: true },
        translations: &[Translation::SpirV],
        any_order: false,
    },
];

enum BackwardWay {
    Naive,
    Flash(GradientTile),
    Stored(StoredSteps),
    /// With slopes in scratch or without.
    Coop(bool),
}

impl AttentionBackward {
    /// Takes the shape of `q`, (batch, heads, queries, head size). `k` and `v` are (batch, `kv_heads`, `keys`, head
    /// size). `heads` must be a multiple of `kv_heads`.
    pub fn new(q: [usize; 4], [kv_heads, keys]: [usize; 2]) -> Self {
        Self { forward: Attention::new(q, [kv_heads, keys]), value_size: q[3], saved: false, variant: "auto".into() }
    }

    /// Sets the size of value heads, the last extent of `v`, `dy` and `dv`. The default is the head size of `q` and
    /// `k`.
    #[must_use]
    pub fn value_size(mut self, size: usize) -> Self {
        self.value_size = size;
        self
    }

    /// Hides keys after i + keys - queries from query i: the last query is aligned with the last key.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.forward = self.forward.causal();
        self
    }

    /// Hides keys at a distance of `window` or more; with [`causal`](Self::causal) a query sees the last `window` keys.
    #[must_use]
    pub fn window(mut self, window: usize) -> Self {
        self.forward = self.forward.window(window);
        self
    }

    /// Sets the factor of the products of q and k. The default is 1 / sqrt(head size).
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.forward = self.forward.scale(scale);
        self
    }

    /// Takes what the forward pass saved, and does not compute it again: operands `output` as `dy` and `logsumexp` of
    /// f32, (batch, heads, queries), after `dy`. They are results of [`Attention`] with the same options and
    /// [`logsumexp`](Attention::logsumexp).
    #[must_use]
    pub fn saved(mut self) -> Self {
        self.saved = true;
        self
    }

    /// Returns the index of the operand dq, which dk and dv follow.
    pub(super) fn first_result(&self) -> usize {
        if self.saved { 6 } else { 4 }
    }

    variants!(variant);

    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let of = &self.forward;
        let name = of.name("attention-backward");
        self.check(&name)?;
        let rows = |name: &'static str, heads, rows, size| elements(name, name, &[of.batch, heads, rows, size]);
        let q = rows("q", of.heads, of.queries, of.head_size)?;
        let dy = rows("dy", of.heads, of.queries, self.value_size)?;
        let k = rows("k", of.kv_heads, of.keys, of.head_size)?;
        let v = rows("v", of.kv_heads, of.keys, self.value_size)?;
        let operand = |(name, len, access)| Operand { name, dtype, len, access };
        let mut operands: Vec<Operand> =
            [("q", q, Access::Read), ("k", k, Access::Read), ("v", v, Access::Read), ("dy", dy, Access::Read)]
                .map(operand)
                .into();
        if self.saved {
            let len = elements("logsumexp", "logsumexp", &[of.batch, of.heads, of.queries])?;
            operands.push(operand(("output", dy, Access::Read)));
            operands.push(Operand { name: "logsumexp", dtype: DType::F32, len, access: Access::Read });
        }
        let results = [("dq", q, Access::Write), ("dk", k, Access::Write), ("dv", v, Access::Write)];
        operands.extend(results.map(operand));
        profile.check_buffers(&name, &operands, "split the batch or the heads")?;
        let lowering = GradientLowering { op: self, name, dtype, profile };
        let (variant, decision) = choose("attention-backward", &self.variant, VARIANTS, profile, || policy(&lowering))?;
        let way = BackwardWay::of(variant.name, &lowering)?;
        let mut program = Program::new("attention-backward", decision);
        program.operands = operands;
        let padded = self.padded(way.unit(dtype), variant.name);
        match way {
            // Empty sums.
            _ if program.operands[..4].iter().any(|operand| operand.len == 0) => {
                for at in self.first_result()..program.operands.len() {
                    let words = program.operands[at].bytes().div_ceil(4) as usize;
                    program.append(fill(words, [0; 2], profile)?, &[Resource::Operand(at)]);
                }
            }
            _ if padded.forward.head_size != of.head_size || of.head_size != self.value_size => {
                backward_padding::lower(&padded, &lowering, &mut program)?;
            }
            BackwardWay::Naive => lower_naive(&lowering, &mut program)?,
            BackwardWay::Coop(stores) => backward_coop::lower(stores, &lowering, &mut program)?,
            BackwardWay::Flash(tile) => backward_flash::lower(tile, &lowering, &mut program)?,
            BackwardWay::Stored(steps) => backward_stored::lower(steps, &lowering, &mut program)?,
        }
        // Products with q, k and their gradients, and with v, dy and dv.
        let flop = (6 * of.head_size + 4 * self.value_size) as f64 * (of.batch * of.heads) as f64;
        let pairs = if of.queries * of.keys == 0 { 0.0 } else { of.pairs() };
        program.cost = Cost::of(flop * pairs, &program.operands);
        Ok(program)
    }

    /// Fails if extents or options contradict each other. No sequences, queries or keys are valid.
    fn check(&self, name: &str) -> Result<()> {
        let of = &self.forward;
        for (what, size) in [("head", of.head_size), ("value", self.value_size)] {
            if size == 0 {
                return Err(err!(Shape, "{name}: the {what} size is 0; it must be at least 1"));
            }
            index_u32(name, what, size)?;
        }
        let [batch, queries, keys] = [of.batch, of.queries, of.keys].map(|extent| extent.max(1));
        let head_size = 8;
        Attention { batch, queries, keys, head_size, scale: Some(of.factor()), ..of.clone() }.check(name)
    }

    /// Returns the larger of the sizes of heads and of values, up to a multiple of `unit`.
    pub(super) fn padded_size(&self, unit: usize) -> usize {
        let size = self.forward.head_size.max(self.value_size);
        size.checked_next_multiple_of(unit).unwrap_or(size)
    }

    fn padded(&self, unit: usize, variant: &str) -> Self {
        let mut padded = self.clone().scale(self.forward.factor()).variant(variant);
        padded.value_size = self.padded_size(unit);
        padded.forward.head_size = padded.value_size;
        padded
    }
}

impl BackwardWay {
    /// Returns what head sizes must be multiples of.
    fn unit(&self, dtype: DType) -> usize {
        match self {
            // Words.
            Self::Naive => 4 / dtype.size(),
            Self::Flash(_) => backward_flash::UNIT,
            Self::Stored(steps) => steps.unit,
            Self::Coop(_) => backward_coop::UNIT,
        }
    }

    fn of(variant: &str, of: &GradientLowering<'_>) -> Result<Self> {
        match variant {
            "naive" => Ok(Self::Naive),
            "coop" => backward_coop::check(of).map(|()| Self::Coop(false)),
            "coop-stored" => backward_coop::check_stored(of).map(|()| Self::Coop(true)),
            "stored" => backward_stored::check(of).map(Self::Stored),
            _ => backward_flash::check(of).map(Self::Flash),
        }
    }
}

/// Tells whether a device may run a backward pass of f16 on cooperative matrices, which round weights and slopes.
pub(crate) fn may_differentiate_on_matrices(op: &AttentionBackward) -> bool {
    ["coop", "coop-stored"].contains(&op.variant.as_str()) || op.variant == "auto" && backward_coop::takes_heads(op)
}

/// Chooses a variant, with the reason.
fn policy(of: &GradientLowering<'_>) -> (&'static str, String) {
    if backward_coop::check_stored(of).is_ok() {
        return ("coop-stored", "the device multiplies f16 on cooperative matrices, and scratch holds slopes".into());
    }
    if backward_coop::check(of).is_ok() {
        return ("coop", "the device multiplies f16 on cooperative matrices".into());
    }
    if backward_stored::suits(of) {
        return ("stored", "products through memory compute each score once".into());
    }
    // us of `naive` and `flash`, 4 heads of 10 x 32 (H100, Vulkan, driver 580.159.04): 15.1, 23.9; 40 x 32 22.7, 23.9.
    let forward = &of.op.forward;
    let few =
        forward.queries.max(forward.keys) * of.op.padded_size(1) <= 1 << 10 && forward.batch * forward.heads <= 64;
    let runs = of.profile.runs_rounds(naive_rounds(of));
    match backward_flash::check(of) {
        _ if few && runs && of.profile.class == DeviceClass::Discrete => ("naive", "few products".into()),
        Err(_) if runs => ("naive", "`flash` cannot run".into()),
        _ => ("flash", "scores stay in registers".into()),
    }
}

operands! {
    impl[T: Element,] AttentionBackward, T {
        fn record(q: T, k: T, v: T, dy: T, dq: T, dk: T, dv: T);
        /// Takes what the forward pass saved.
        optional with_saved(output: T, logsumexp: f32);
    }
}

lowered_as!(AttentionBackward: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "attention-backward",
    about: "the gradients of attention: of q, k and v",
    inputs: by_name::BACKWARD_INPUTS,
    outputs: &[("dq", "as q"), ("dk", "as k"), ("dv", "as v")],
    types: &[DType::F32, DType::F16],
    options: by_name::BACKWARD_OPTIONS,
    make: Some(by_name::make_backward),
    variants: AttentionBackward::variants,
    samples,
    comparison: Some(Comparison::Sums),
    domains: &[("output", Domain::Meaningful), ("logsumexp", Domain::Meaningful)],
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let new = AttentionBackward::new;
    let mut programs = Vec::new();
    if ["coop", "coop-stored"].contains(&variant) {
        for op in [
            new([1, 4, 70, 64], [2, 70]).causal(),
            new([1, 2, 30, 80], [1, 64]).window(9),
            new([2, 2, 150, 128], [2, 40]),
            new([1, 2, 70, 64], [2, 70]).saved(),
        ] {
            programs.push(Op::<f16>::lower(&op.variant(variant), profile)?);
        }
        return Ok(programs);
    }
    for op in [
        new([2, 4, 5, 33], [2, 40]).value_size(20),
        new([1, 4, 70, 64], [4, 70]).causal(),
        new([1, 2, 37, 72], [1, 40]).window(9),
        new([1, 2, 40, 128], [2, 33]).causal().window(9),
        new([1, 1, 3, 256], [1, 5]),
        new([1, 4, 70, 64], [2, 70]).causal().saved(),
        new([1, 2, 9, 33], [2, 9]).saved(),
    ] {
        let op = op.variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        if variant != "stored" {
            programs.push(Op::<f16>::lower(&op, profile)?);
        }
    }
    Ok(programs)
}
