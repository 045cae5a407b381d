use super::attention::Attention;
use super::by_name;
use super::kv_storage::{KvType, Paging};
use super::layout::{AttentionLowering, AttentionOperand};
use crate::program::prelude::*;

/// Appends the keys and values of new tokens to a cache in place: row `lengths[b] + i` of sequence b becomes new row i.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::attention::KvAppend;
/// use tilework::prelude::*;
///
/// // One sequence, one head of size 8, one new token; the cache holds one of two tokens.
/// let gpu = Gpu::new()?;
/// let (new_k, new_v) = (gpu.upload(&[1.0f32; 8])?, gpu.upload(&[2.0f32; 8])?);
/// let (k, v) = (gpu.alloc_zeroed::<f32>(16)?, gpu.alloc_zeroed::<f32>(16)?);
/// let lengths = gpu.upload(&[1u32])?;
/// let plan = KvAppend::new([1, 1, 1, 8], 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &new_k, &new_v, &lengths, &k, &v)?;
/// rec.submit()?;
/// assert_eq!(k.read()?, [[0.0; 8], [1.0; 8]].concat());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `new_k` and `new_v` are (batch, kv heads, tokens, head size); [`value_size`](Self::value_size) sets another last
/// extent of values. The caches `k` and `v` are those of an [`Attention`] over `keys` keys: (batch,
/// kv heads, keys, head size), or pages ([`paged`](Self::paged)). Without tokens or keys nothing changes. Operands are
/// `new_k`, `new_v`, `table` (with pages), `lengths` (u32: the tokens that each sequence had before), `k`, `v`,
/// `scales` (with a quantised cache). Tokens beyond `keys`, or in a page that does not exist, are dropped. Other rows
/// of the cache do not change.
///
/// # Types
/// `new_k` and `new_v` are f32 or f16, caches any [`KvType`]. A quantised row x has the scale `max |x| / 127` (int8) or
/// `max |x| / 448` (fp8), 0 for a row of zeros, and the codes of `x / scale`, rounded to nearest, ties to even.
///
/// # Precision and determinism
/// Floats are rounded once; NaN, infinities, zeros of both signs and subnormal numbers are kept. The quotient of a code
/// is computed in f32 and may differ between devices in the last bit, so that a value midway between two codes may get
/// either. The same device and inputs give the same bits.
///
/// # Cost
/// Each new element is read and written once. Two dispatches, one for keys and one for values; no scratch.
///
/// # Variants
/// `rows`, the only one.
///
/// # Errors
/// Those of [`Attention`] for its shapes, pages and sizes, and for an unknown variant.
/// [`Unsupported`](ErrorKind::Unsupported): a head or value size above 1024.
///
/// # Algorithm
/// `shaders/attention/kv_append.wgsl`. Pages as in Kwon et al., *Efficient Memory Management for Large Language Model
/// Serving with PagedAttention*, 2023.
#[derive(Debug, Clone, PartialEq)]
pub struct KvAppend {
    /// An attention whose queries are the new tokens, over the cache.
    pub(crate) over: Attention,
}

const VARIANTS: &[Variant] = &[Variant::portable("rows", "threads share a row, four elements each")];

/// The largest head size: a workgroup of 256 threads holds a row.
const MAX_SIZE: usize = 1024;

const INPUTS: [AttentionOperand; 3] = [AttentionOperand::Q, AttentionOperand::Table, AttentionOperand::Lengths];

impl KvAppend {
    /// Takes the shape of the new keys and values, (batch, kv heads, tokens, head size), and the `keys` that the cache
    /// holds for each sequence.
    pub fn new([batch, kv_heads, tokens, head_size]: [usize; 4], keys: usize) -> Self {
        Self { over: Attention::new([batch, kv_heads, tokens, head_size], [kv_heads, keys]).lengths() }
    }

    /// Sets the type of the caches. The default is that of the new tokens.
    #[must_use]
    pub fn kv(mut self, kv: KvType) -> Self {
        self.over = self.over.kv(kv);
        self
    }

    /// Appends to pages: see [`Attention::paged`](super::Attention::paged). Two sequences must not append to the same
    /// page.
    #[must_use]
    pub fn paged(mut self, paging: Paging) -> Self {
        self.over = self.over.paged(paging);
        self
    }

    /// Sets the size of value heads, if it is not that of key heads: the last extent of `new_v` and `v`.
    #[must_use]
    pub fn value_size(mut self, size: usize) -> Self {
        self.over = self.over.value_size(size);
        self
    }

    variants!(over.variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (of, read) = self.over.prepare("kv-append", dtype, profile)?;
        let mut program = Program::of_only_variant("kv-append", &self.over.variant, VARIANTS, profile)?;
        let named = |name| read.iter().find(|o: &&Operand| o.name == name).cloned();
        let cache = |name| named(name).map(|o| Operand { access: Access::ReadWrite, ..o });
        let new = |name, like| named(like).map(|o| Operand { name, access: Access::Read, ..o });
        let operands = [
            new("new_k", "q"),
            new("new_v", "output"),
            named("table"),
            named("lengths"),
            cache("k"),
            cache("v"),
            cache("scales"),
        ];
        program.operands = operands.into_iter().flatten().collect();
        let row = of.dtype.size() + of.kv.dtype().size();
        let elements = program.operands[0].len + program.operands[1].len;
        let rows = program.operands[0].len / self.over.head_size;
        let scales = if of.kv.is_scaled() { 2 * rows * 4 } else { 0 };
        program.cost = Cost { flop: 0.0, bytes: (elements * row + scales) as f64 };
        if elements > 0 && self.over.keys > 0 {
            self.dispatch(&of, &mut program)?;
        }
        Ok(program)
    }

    /// Returns the threads of a workgroup, and of a row of `size` elements.
    fn threads(size: usize) -> [u32; 2] {
        let lanes = size.div_ceil(4).next_power_of_two() as u32;
        [lanes.max(64), lanes]
    }

    fn kernel(&self, of: &AttentionLowering<'_>, size: usize) -> Kernel {
        let [threads, lanes] = Self::threads(size);
        let bytes = of.kv.is_scaled();
        let stored = if of.kv == KvType::F16 { DType::F16 } else { DType::F32 };
        let bound = of.count(&INPUTS) as u32;
        let mut spec = of
            .spec(&INPUTS)
            .constant("DIMS", size as u32)
            .flag("GENERAL", false)
            .slot("element", element_fragment(stored))
            .constant("WORKGROUP_SIZE", threads)
            .constant("LANES", lanes)
            .constant("CACHE_BINDING", bound + 1)
            .flag("LENGTHS", true)
            .flag("PAGED", of.op.paging.is_some())
            .flag("BYTES", bytes)
            .flag("HALVES", of.kv == KvType::F16);
        if let Some(paging) = of.op.paging {
            spec = spec.constant("PAGE", paging.tokens as u32);
        }
        if bytes {
            let fp8 = of.kv == KvType::Fp8;
            spec = spec
                .flag("FP8", fp8)
                .constant("LARGEST", if fp8 { "448.0" } else { "127.0" })
                .constant("SCALES_BINDING", bound + 2);
        }
        Kernel::of_file("attention/kv_append", spec)
    }

    fn dispatch(&self, of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
        let widest = of.op.head_size.max(of.op.value_size);
        if widest > MAX_SIZE {
            return Err(err!(
                Unsupported,
                "{}: the head size is {widest}; a workgroup appends rows of at most {MAX_SIZE} elements",
                of.name
            ));
        }
        let rows_of_pair = of.op.queries;
        let (k, v) = (self.kernel(of, of.op.head_size), self.kernel(of, of.op.value_size));
        let (k, v) = (program.kernel(k), program.kernel(v));
        for chunk in of.chunks()? {
            for (kernel, new, cache) in [(k, "new_k", "k"), (v, "new_v", "v")] {
                let mut params = of.params(&chunk);
                let (bound_new, bound_cache) = if cache == "k" {
                    (AttentionOperand::Q, AttentionOperand::K)
                } else {
                    (params.base_q, params.base_kv) = (params.base_output, params.base_v);
                    (AttentionOperand::Output, AttentionOperand::V)
                };
                params.first_row = (chunk.first * rows_of_pair) as u32;
                params.rows = (chunk.pairs * rows_of_pair) as u32;
                // Scales of `v` follow those of `k`.
                params.kv_rows = if cache == "k" { 0 } else { params.kv_rows };
                let mut bindings = vec![of.binding(program, &chunk, bound_new, new)];
                bindings.extend(of.bindings(program, &chunk, &INPUTS[1..]));
                bindings.push(of.binding(program, &chunk, bound_cache, cache));
                if of.kv.is_scaled() {
                    bindings.push(of.binding(program, &chunk, AttentionOperand::Scales, "scales"));
                }
                let size = if cache == "k" { of.op.head_size } else { of.op.value_size };
                let [threads, lanes] = Self::threads(size);
                let workgroups = u64::from(params.rows).div_ceil(u64::from(threads / lanes));
                program.dispatch(kernel, params.plain(), bindings, Grid::fold(workgroups));
            }
        }
        Ok(())
    }
}

operands! {
    impl[T: Element,] KvAppend, T {
        fn record<K>(new_k: T, new_v: T, lengths: u32, k: K, v: K);
        /// Takes the pages of each sequence.
        optional with_table(table: u32);
        /// Takes the scales of quantised rows: those of `k`, then those of `v`.
        optional with_scales(scales: f32);
    }
}

lowered_as!(KvAppend: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "kv-append",
    about: "keys and values of new tokens, appended to a cache",
    inputs: by_name::APPEND_INPUTS,
    outputs: &[("k", "as k"), ("v", "as k"), ("[scales]", "f32 (2, rows)")],
    types: &[DType::F32, DType::F16],
    options: by_name::APPEND_OPTIONS,
    make: Some(by_name::make_append),
    variants: KvAppend::variants,
    samples,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for kv in KvType::ALL {
        let op = KvAppend::new([2, 2, 3, 64], 40).kv(kv).variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op.paged(Paging { tokens: 16, pages: 7 }), profile)?);
        let op = KvAppend::new([2, 2, 3, 33], 40).value_size(20).kv(kv).variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
    }
    Ok(programs)
}
