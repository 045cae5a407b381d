//! New keys and values to their places in a cache.

use super::attention::{Attention, KvType, Paging};
use super::form;
use super::layout::{AttentionLowering, AttentionOperand};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Access, Cost, DeviceProfile, Example, Grid, Kernel, Op, Operand, Operation, Program, Variant, choose,
    element_fragment, operands,
};
use half::f16;

/// Writes keys and values of new tokens behind those that a cache holds: rows `lengths[b]` and on of sequence b.
///
/// # Shapes
/// `new_k` and `new_v` are (batch, kv heads, tokens, head size), the caches `k` and `v` what an
/// [`Attention`](super::Attention) over `keys` keys reads: (batch, kv heads, keys, head size), or pages
/// ([`paged`](Self::paged)). Operands are `new_k`, `new_v`, `table` where there are pages, `lengths` (u32: tokens in the
/// cache of each sequence before), `k`, `v`, and `scales` where the cache is quantised. Tokens beyond `keys`, and those
/// whose page does not exist, are not written; nor is anything else but their rows.
///
/// # Types
/// `new_k` and `new_v` of f32 or f16; caches of any [`KvType`]. Quantised rows x have the factor
/// `max |x| / 127` (int8) or `max |x| / 448` (fp8), 0 for a row of zeros, and the codes of `x / factor`, to nearest, ties
/// to even.
///
/// # Precision and determinism
/// Floats are rounded once. Codes are those of a quotient in f32, which devices may round to either side: where that
/// lies between two codes, either may come. Same device, same bits.
/// NaN, infinities, zeros of both signs and subnormal numbers are moved as they are.
///
/// # Cost
/// Every element is read and written once; one dispatch for keys, one for values. No scratch.
///
/// # Errors
/// Those of [`Attention`](super::Attention) for its shapes, pages and sizes, and for an unknown variant.
///
/// # Algorithm
/// `shaders/attention/kv_append.wgsl`; pages as in Kwon et al., *Efficient memory management for large language model
/// serving with PagedAttention*, 2023.
///
/// # Example
/// ```
/// use tilework::attention::{KvAppend, KvType};
/// use tilework::program::{DeviceProfile, Op};
///
/// // One token for each of 16 sequences, 8 heads of 128, at most 4096 tokens.
/// let op = KvAppend::new([16, 8, 1, 128], 4096).kv(KvType::Int8);
/// let program = Op::<f32>::lower(&op, &DeviceProfile::h100())?;
/// assert_eq!(program.operands[0].len, 16 * 8 * 128);
/// assert_eq!(program.operands[5].len, 2 * 16 * 8 * 4096);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct KvAppend {
    /// An attention of the new tokens over the cache.
    pub(crate) over: Attention,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("rows", "lanes of a workgroup share a row, four elements each")];

const WORKGROUP_SIZE: u32 = 64;

impl KvAppend {
    /// New keys and values of shape (batch, kv heads, tokens, head size), for a cache of `keys` tokens a sequence.
    pub fn new([batch, kv_heads, tokens, head_size]: [usize; 4], keys: usize) -> Self {
        Self { over: Attention::new([batch, kv_heads, tokens, head_size], [kv_heads, keys]).lengths() }
    }

    /// How the caches are stored; as the new tokens by default.
    #[must_use]
    pub fn kv(mut self, kv: KvType) -> Self {
        self.over = self.over.kv(kv);
        self
    }

    /// The caches lie in pages: see [`Attention::paged`](super::Attention::paged). No two sequences may append to one
    /// page.
    #[must_use]
    pub fn paged(mut self, paging: Paging) -> Self {
        self.over = self.over.paged(paging);
        self
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        self.over = self.over.variant(name);
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (of, read) = self.over.prepare("kv-append", dtype, profile)?;
        let (_, decision) = choose("kv-append", &self.over.variant, VARIANTS, profile, || {
            ("rows", "reads and writes every element once".to_owned())
        })?;
        let mut program = Program::new("kv-append", decision);
        let named = |name| read.iter().find(|o: &&Operand| o.name == name).cloned();
        let cache = |name| named(name).map(|o| Operand { access: Access::ReadWrite, ..o });
        let new = |name| named("q").map(|o| Operand { name, ..o });
        let operands = [
            new("new_k"),
            new("new_v"),
            named("table"),
            named("lengths"),
            cache("k"),
            cache("v"),
            cache("scales"),
        ];
        program.operands = operands.into_iter().flatten().collect();
        let row = of.dtype.size() + of.kv.dtype().size();
        let elements = program.operands[0].len;
        let scale = if of.kv.is_scaled() { elements / self.over.head_size * 4 } else { 0 };
        program.cost = Cost { flop: 0.0, bytes: 2.0 * (elements * row + scale) as f64 };
        self.dispatch(&of, &mut program)?;
        Ok(program)
    }

    fn dispatch(&self, of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
        let lanes = of.fours().next_power_of_two();
        let bytes = of.kv.is_scaled();
        let stored = if of.kv == KvType::F16 { DType::F16 } else { DType::F32 };
        let wanted = [AttentionOperand::Q, AttentionOperand::Table, AttentionOperand::Lengths];
        let behind = of.count(&wanted) as u32;
        let mut spec = of
            .spec(&wanted)
            .slot("element", element_fragment(stored))
            .constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
            .constant("LANES", lanes)
            .constant("CACHE_BINDING", behind + 1)
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
                .constant("SCALES_BINDING", behind + 2);
        }
        let kernel = program.kernel(Kernel::library("attention/kv_append", "kv_append", spec));
        let rows_of_pair = of.op.queries;
        for chunk in of.chunks()? {
            for (new, cache) in [("new_k", "k"), ("new_v", "v")] {
                let mut params = of.params(&chunk);
                params.first_row = (chunk.first * rows_of_pair) as u32;
                params.rows = (chunk.pairs * rows_of_pair) as u32;
                // Factors of v lie behind those of k.
                params.kv_rows = if cache == "k" { 0 } else { params.kv_rows };
                let mut bindings = vec![of.binding(program, &chunk, AttentionOperand::Q, new)];
                bindings.extend(of.bindings(program, &chunk, &wanted[1..]));
                bindings.push(of.binding(program, &chunk, AttentionOperand::K, cache));
                if bytes {
                    bindings.push(of.binding(program, &chunk, AttentionOperand::Scales, "scales"));
                }
                let rows_each = u64::from(WORKGROUP_SIZE / lanes);
                let workgroups = u64::from(params.rows).div_ceil(rows_each);
                program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
            }
        }
        Ok(())
    }
}

operands! {
    impl[T: Element,] KvAppend, T {
        fn record<K>(new_k: T, new_v: T, lengths: u32, k: K, v: K);
        /// The pages of each sequence.
        optional with_table(table: u32);
        /// Factors of the rows of quantised k, then of those of v.
        optional with_scales(scales: f32);
    }
}

crate::program::lowers! {
    impl[] KvAppend as [f32, f16], |op, dtype, profile| op.lower_as(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "kv-append",
    about: "new keys and values to their places in a cache",
    inputs: form::APPEND_INPUTS,
    outputs: &[("k", "as k"), ("v", "as k"), ("[scales]", "f32 (2, rows)")],
    types: &[DType::F32, DType::F16],
    options: form::APPEND_OPTIONS,
    make: Some(form::make_append),
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
    }
    Ok(programs)
}
