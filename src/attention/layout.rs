//! The parameters, bindings and chunks that the kernels of attention share.

use super::attention::Attention;
use super::kv_storage::{KvType, Paging};
use crate::program::fit::BoundSpan;
use crate::program::prelude::*;
use std::fmt;

/// Declares parameters: those that every kernel has, and more.
macro_rules! attention_params {
    ($(#[$doc:meta])* $name:ident { $($more:ident: $ty:ty),* }) => {
        kernel_params! {
            $(#[$doc])*
            pub(super) struct $name {
                heads: u32,
                kv_heads: u32,
                queries: u32,
                keys: u32,
                first_pair: u32,
                pairs: u32,
                base_q: u32,
                base_kv: u32,
                kv_rows: u32,
                window: u32,
                mask_batch: u32,
                mask_head: u32,
                pages: u32,
                pages_each: u32,
                first_row: u32,
                rows: u32,
                parts: u32,
                part_keys: u32,
                row_tiles: u32,
                scale: f32,
                $($more: $ty),*
            }
        }
    };
}
attention_params! {
    /// The parameters of kernels without `GENERAL`.
    PlainParams {}
}
attention_params! {
    /// The parameters of kernels with `GENERAL`; its beginning is a `PlainParams`.
    AttentionParams { base_v: u32, base_output: u32, cap: f32 }
}

pub(super) struct AttentionLowering<'a> {
    pub(super) op: &'a Attention,
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) kv: KvType,
    pub(super) rows: usize,
    pub(super) profile: &'a DeviceProfile,
}

/// A run of (sequence, kv head) pairs that fits the bindings of a dispatch. The rows of `k`, `v` and `q` of consecutive
/// pairs are consecutive in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadChunk {
    pub(super) first: usize,
    pub(super) pairs: usize,
    q: BoundSpan,
    k: BoundSpan,
    v: BoundSpan,
    output: BoundSpan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttentionOperand {
    Q,
    K,
    V,
    Scales,
    Table,
    Lengths,
    Mask,
    Output,
    Scores,
    Logsumexp,
}

impl AttentionOperand {
    fn name(self) -> &'static str {
        match self {
            Self::Q => "q",
            Self::K => "k",
            Self::V => "v",
            Self::Scales => "scales",
            Self::Table => "table",
            Self::Lengths => "lengths",
            Self::Mask => "mask",
            Self::Output => "output",
            Self::Scores => "scores",
            Self::Logsumexp => "logsumexp",
        }
    }

    fn constant(self) -> &'static str {
        match self {
            Self::Q => "Q_BINDING",
            Self::K => "K_BINDING",
            Self::V => "V_BINDING",
            Self::Scales => "SCALES_BINDING",
            Self::Table => "TABLE_BINDING",
            Self::Lengths => "LENGTHS_BINDING",
            Self::Mask => "MASK_BINDING",
            Self::Output => "OUTPUT_BINDING",
            Self::Scores => "RESULT_BINDING",
            Self::Logsumexp => "LOGSUMEXP_BINDING",
        }
    }
}

impl AttentionParams {
    pub(super) fn plain(&self) -> &PlainParams {
        bytemuck::from_bytes(&bytemuck::bytes_of(self)[..size_of::<PlainParams>()])
    }
}

impl AttentionLowering<'_> {
    /// Returns the vec4s of a row of `q` and `k`.
    pub(super) fn vec4s(&self) -> u32 {
        self.op.head_size.div_ceil(4) as u32
    }

    pub(super) fn value_vec4s(&self) -> u32 {
        self.op.value_size.div_ceil(4) as u32
    }

    fn is_general(&self) -> bool {
        self.op.value_size != self.op.head_size || self.op.softcap.is_some()
    }

    pub(super) fn pairs(&self) -> usize {
        self.op.batch * self.op.kv_heads
    }

    /// Returns the number of rows of `q` that share a kv head.
    pub(super) fn rows_of_pair(&self) -> usize {
        self.op.group() * self.op.queries
    }

    /// Returns the bytes of `q`, `k`, `v` and the output of the heads that share a kv head.
    fn bytes_of_pair(&self) -> [u64; 4] {
        let op = self.op;
        let bytes = |rows: usize, size: usize, dtype: DType| (rows * size * dtype.size()) as u64;
        let keys = if op.paging.is_some() { 0 } else { op.keys };
        let (rows, kv) = (self.rows_of_pair(), self.kv.dtype());
        [
            bytes(rows, op.head_size, self.dtype),
            bytes(keys, op.head_size, kv),
            bytes(keys, op.value_size, kv),
            bytes(rows, op.value_size, self.dtype),
        ]
    }

    /// Fails if an indivisible part does not fit a binding.
    fn check_chunks(&self) -> Result<()> {
        let (name, profile, pairs) = (&self.name, self.profile, self.pairs() as u64);
        let names = [
            "q of the heads that share keys",
            "k of one head",
            "v of one head",
            "the output of the heads that share keys",
        ];
        for (bytes, what) in self.bytes_of_pair().into_iter().zip(names) {
            if !profile.binds_all(pairs, bytes) {
                let what = format_args!("{what}");
                profile.check_row(name, what, bytes, "use fewer queries or keys at a time")?;
            }
        }
        if let Some(Paging { tokens, pages }) = self.op.paging {
            for (name_of, size) in [("k in pages", self.op.head_size), ("v in pages", self.op.value_size)] {
                let len = pages * self.op.kv_heads * tokens * size;
                let access = Access::ReadWrite;
                let pages = Operand { name: name_of, dtype: self.kv.dtype(), len, access };
                profile.check_bindings(name, &[pages], "use fewer pages")?;
            }
        }
        if let Some([batch, heads]) = self.op.mask {
            let len = batch * heads * self.op.queries * self.op.keys;
            let mask = Operand { name: "mask", dtype: DType::F32, len, access: Access::Read };
            profile.check_bindings(name, &[mask], "use fewer queries at a time, or one mask for all heads")?;
        }
        Ok(())
    }

    /// Splits the work into as few chunks as bindings allow.
    pub(super) fn chunks(&self) -> Result<Vec<HeadChunk>> {
        self.check_chunks()?;
        let [q, k, v, output] = self.bytes_of_pair();
        let of = |chunk: BoundChunk| HeadChunk {
            first: chunk.first as usize,
            pairs: chunk.count as usize,
            q: chunk.span(q),
            k: chunk.span(k),
            v: chunk.span(v),
            output: chunk.span(output),
        };
        let largest = q.max(k).max(v).max(output);
        Ok(self.profile.chunks(self.pairs() as u64, largest).map(of).collect())
    }

    pub(super) fn params(&self, chunk: &HeadChunk) -> AttentionParams {
        let op = self.op;
        let [mask_batch, mask_head] = op.mask.map_or([0; 2], |[batch, heads]| {
            let each = op.queries * op.keys;
            [if batch > 1 { heads * each } else { 0 }, if heads > 1 { each } else { 0 }]
        });
        // Vec4s before a binding.
        let base = |span: BoundSpan, dtype: DType| (span.offset / (4 * dtype.size() as u64)) as u32;
        AttentionParams {
            heads: op.heads as u32,
            kv_heads: op.kv_heads as u32,
            queries: op.queries as u32,
            keys: op.keys as u32,
            first_pair: chunk.first as u32,
            pairs: chunk.pairs as u32,
            base_q: base(chunk.q, self.dtype),
            base_kv: base(chunk.k, self.kv.dtype()),
            kv_rows: self.rows as u32,
            window: op.window.map_or(0, |w| w.min(1 << 30)) as u32,
            mask_batch: mask_batch as u32,
            mask_head: mask_head as u32,
            pages: op.paging.map_or(0, |p| p.pages) as u32,
            pages_each: op.pages_each() as u32,
            first_row: 0,
            rows: 0,
            parts: 0,
            part_keys: 0,
            row_tiles: 0,
            scale: op.factor(),
            base_v: base(chunk.v, self.kv.dtype()),
            base_output: base(chunk.output, self.dtype),
            cap: op.softcap.unwrap_or(0.0),
        }
    }

    /// Adds a dispatch, with the parameters that the spec of the op declares.
    pub(super) fn dispatch(
        &self, program: &mut Program, kernel: usize, params: &AttentionParams, bindings: Vec<Binding>, grid: Grid,
    ) {
        if self.is_general() {
            program.dispatch(kernel, params, bindings, grid);
        } else {
            program.dispatch(kernel, params.plain(), bindings, grid);
        }
    }

    /// Fails if a tile needs more threads or workgroup memory than the device has.
    pub(super) fn check_room(&self, tile: &dyn fmt::Debug, threads: u32, bytes: u32) -> Result<()> {
        let limits = &self.profile.limits;
        if threads <= limits.max_invocations.min(limits.max_workgroup_size[0]) && bytes <= limits.max_workgroup_bytes {
            return Ok(());
        }
        Err(err!(
            TooLarge,
            "{}: {tile:?} needs {threads} threads and {bytes} bytes of workgroup memory; {} has {} and {}; \
             use a smaller tile",
            self.name,
            self.profile.name,
            limits.max_invocations,
            limits.max_workgroup_bytes
        ))
    }

    /// Dispatches a kernel whose workgroups each compute `rows` rows of `q` of a head.
    pub(super) fn dispatch_rows(
        &self, program: &mut Program, kernel: Kernel, rows: u32, wanted: &[AttentionOperand],
    ) -> Result<()> {
        let kernel = program.kernel(kernel);
        let tiles = self.op.queries.div_ceil(rows as usize);
        for chunk in self.chunks()? {
            let workgroups = (chunk.pairs * self.op.group() * tiles) as u64;
            let params = AttentionParams { rows: workgroups as u32, parts: tiles as u32, ..self.params(&chunk) };
            let bindings = self.bindings(program, &chunk, wanted);
            self.dispatch(program, kernel, &params, bindings, Grid::fold(workgroups));
        }
        Ok(())
    }

    /// Sets the output to 0, if there are no keys.
    pub(super) fn lower_zero(&self, program: &mut Program) -> Result<()> {
        let (wanted, threads) = ([AttentionOperand::Output], 256);
        let spec = self.spec(&wanted).constant("WORKGROUP_SIZE", threads);
        let kernel = program.kernel(Kernel::of_file("attention/attention_zero", spec));
        for chunk in self.chunks()? {
            let rows = self.rows_of_pair();
            let mut params = self.params(&chunk);
            params.first_row = (chunk.first * rows) as u32;
            params.rows = (chunk.pairs * rows) as u32;
            let vec4s = u64::from(params.rows) * u64::from(self.value_vec4s());
            let bindings = self.bindings(program, &chunk, &wanted);
            self.dispatch(program, kernel, &params, bindings, Grid::fold(vec4s.div_ceil(threads.into())));
        }
        Ok(())
    }

    /// Returns the operands of `wanted` that the options ask for, in the order of their bindings.
    fn present(&self, wanted: &[AttentionOperand]) -> Vec<AttentionOperand> {
        let asked = |bound: &AttentionOperand| match bound {
            AttentionOperand::Scales => self.kv.is_scaled(),
            AttentionOperand::Table => self.op.paging.is_some(),
            AttentionOperand::Lengths => self.op.lengths,
            AttentionOperand::Mask => self.op.mask.is_some(),
            AttentionOperand::Scores => self.op.scores.is_some(),
            AttentionOperand::Logsumexp => self.op.logsumexp,
            AttentionOperand::Q | AttentionOperand::K | AttentionOperand::V | AttentionOperand::Output => true,
        };
        wanted.iter().copied().filter(asked).collect()
    }

    pub(super) fn count(&self, wanted: &[AttentionOperand]) -> usize {
        self.present(wanted).len()
    }

    pub(super) fn bindings(&self, program: &Program, chunk: &HeadChunk, wanted: &[AttentionOperand]) -> Vec<Binding> {
        let of = |bound: AttentionOperand| self.binding(program, chunk, bound, bound.name());
        self.present(wanted).into_iter().map(of).collect()
    }

    /// Binds the operand `name` like `bound`.
    pub(super) fn binding(&self, program: &Program, chunk: &HeadChunk, bound: AttentionOperand, name: &str) -> Binding {
        let at = program.operands.iter().position(|o| o.name == name).unwrap_or(0);
        match bound {
            AttentionOperand::Q => chunk.q.of(Resource::Operand(at)),
            AttentionOperand::Output => chunk.output.of(Resource::Operand(at)),
            AttentionOperand::K if self.op.paging.is_none() => chunk.k.of(Resource::Operand(at)),
            AttentionOperand::V if self.op.paging.is_none() => chunk.v.of(Resource::Operand(at)),
            _ => Binding::operand(at, &program.operands),
        }
    }

    pub(super) fn spec(&self, wanted: &[AttentionOperand]) -> Spec {
        let op = self.op;
        let has = |bound: AttentionOperand| wanted.contains(&bound);
        let mut spec = Spec::new()
            .constant("DIMS", op.head_size as u32)
            .constant("VALUE_DIMS", op.value_size as u32)
            .flag("GENERAL", self.is_general());
        if has(AttentionOperand::K) || has(AttentionOperand::V) {
            spec = spec
                .flag("CAUSAL", op.causal)
                .flag("WINDOWED", op.window.is_some())
                .flag("PAGED", op.paging.is_some())
                .flag("LENGTHS", op.lengths)
                .flag("KEYS", has(AttentionOperand::K))
                .flag("VALUES", has(AttentionOperand::V))
                .slot("kv", self.kv_fragment());
            if self.kv.is_scaled() {
                let bytes = if self.kv == KvType::Fp8 { "attention/bytes_fp8" } else { "attention/bytes_int8" };
                spec = spec.slot("bytes", Fragment::Library(bytes));
            }
            if let Some(paging) = op.paging {
                spec = spec.constant("PAGE", paging.tokens as u32);
            }
        }
        if has(AttentionOperand::Q) && has(AttentionOperand::K) {
            spec = spec.flag("CAPPED", op.softcap.is_some());
        }
        if has(AttentionOperand::Mask) {
            spec = spec.flag("MASKED", op.mask.is_some());
        }
        if has(AttentionOperand::Logsumexp) {
            spec = spec.flag("LOGSUMEXP", op.logsumexp);
        }
        for (i, bound) in self.present(wanted).into_iter().enumerate() {
            spec = spec.constant(bound.constant(), i as u32 + 1);
        }
        if has(AttentionOperand::Q) {
            spec = spec.slot("queries", Fragment::Library(self.floats("attention/q_f32", "attention/q_f16")));
        }
        if has(AttentionOperand::Output) {
            spec = spec.flag("HALVES", self.dtype == DType::F16).slot("element", element_fragment(self.dtype));
        }
        spec
    }

    fn floats(&self, single: &'static str, half: &'static str) -> &'static str {
        if self.dtype == DType::F16 { half } else { single }
    }

    fn kv_fragment(&self) -> Fragment {
        Fragment::Library(match self.kv {
            KvType::F32 => "attention/kv_f32",
            KvType::F16 => "attention/kv_f16",
            KvType::Int8 | KvType::Fp8 => "attention/kv_bytes",
        })
    }
}
